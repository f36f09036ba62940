//! Hardware and network of the host, as the installer API takes them.
//!
//! Source: openshift/assisted-installer-agent, src/inventory; the records are `model::inventory`.

mod bmc;
mod boot;
mod cpu;
mod disks;
mod dmi;
mod gpus;
mod host_id;
mod interfaces;
mod memory;
mod truncate;
mod vendor;

use model::host::FORBIDDEN_HOSTNAMES;
use model::inventory::{Interface, Inventory, TpmVersion};

pub(crate) use self::host_id::host_id;
pub(crate) use self::truncate::{SizeLimits, truncate};

use self::bmc::BmcAddresses;
use self::dmi::DmiTables;
use crate::HostFiles;
use crate::links::LinkTable;
use crate::mounts::Mounts;

/// Names of the kernel before any other is set.
const UNSET_NAMES: [&str; 2] = ["", "(none)"];

/// Reads the inventory. Parts that cannot be read are empty.
pub(crate) fn inventory(files: &HostFiles, table: &LinkTable) -> Inventory {
    let mounts = Mounts::read(files);
    let bmc = BmcAddresses::read(files);
    let dmi = DmiTables::read(files);
    let cpu = cpu::cpu(files, &dmi);
    let system_vendor = vendor::vendor(files, &cpu.flags);
    let mut inventory = Inventory {
        hostname: files.text("/proc/sys/kernel/hostname").unwrap_or_default(),
        bmc_address: bmc.v4_text(),
        bmc_v6address: bmc.v6_text(),
        interfaces: interfaces::interfaces(files, table),
        disks: disks::disks(files, &mounts),
        boot: Some(boot::boot(files, &mounts)),
        system_vendor: Some(system_vendor),
        memory: Some(memory::memory(files, &dmi)),
        cpu: Some(cpu),
        gpus: gpus::gpus(files),
        routes: interfaces::routes(table),
        tpm_version: Some(tpm(files).into()),
        truncation: None,
    };
    if !has_own_name(&inventory.hostname)
        && let Some(name) = name_by_hardware(&inventory.interfaces)
    {
        inventory.hostname = name;
    }
    inventory
}

/// Whether a node may have the name; hosts without one are named by their hardware.
fn has_own_name(name: &str) -> bool {
    !UNSET_NAMES.contains(&name) && !FORBIDDEN_HOSTNAMES.contains(&name)
}

fn tpm(files: &HostFiles) -> TpmVersion {
    match files
        .text("/sys/class/tpm/tpm0/tpm_version_major")
        .as_deref()
    {
        Some("1") => TpmVersion::V12,
        Some("2") => TpmVersion::V20,
        _ => TpmVersion::None,
    }
}

/// The address of the first network interface that other hosts reach, as a host name.
fn name_by_hardware(interfaces: &[Interface]) -> Option<String> {
    let is_usable = |interface: &&Interface| {
        matches!(interface.r#type.as_str(), "physical" | "vlan" | "bond")
            && !interface.mac_address.is_empty()
            && !(interface.ipv4_addresses.is_empty() && interface.ipv6_addresses.is_empty())
    };
    let first = interfaces
        .iter()
        .filter(is_usable)
        .min_by_key(|interface| &interface.name)?;
    Some(first.mac_address.to_lowercase().replace(':', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn this_machine_has_an_inventory() {
        let files = HostFiles::default();
        let table = LinkTable::read(&files).await.unwrap();
        let inventory = inventory(&files, &table);
        let cpu = inventory.cpu.unwrap();
        assert!(cpu.count > 0 && cpu.architecture == std::env::consts::ARCH);
        assert!(inventory.memory.unwrap().usable_bytes > 0);
        assert!(!inventory.hostname.is_empty());
    }

    #[test]
    fn names_that_every_machine_has_are_replaced() {
        let table = LinkTable {
            links: vec![crate::links::NetworkLink {
                name: "eno1".to_owned(),
                mac_address: "AA:00:00:00:00:01".to_owned(),
                kind: "physical".to_owned(),
                addresses: vec!["10.0.0.1/24".parse().unwrap()],
                ..crate::links::NetworkLink::default()
            }],
            ..LinkTable::default()
        };
        let root = tempfile::tempdir().unwrap();
        let kernel = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&kernel).unwrap();
        let files = HostFiles::below(root.path());
        let named = |name: &str, table: &LinkTable| {
            std::fs::write(kernel.join("hostname"), format!("{name}\n")).unwrap();
            inventory(&files, table).hostname
        };
        for name in [
            "",
            "(none)",
            "localhost",
            "localhost.localdomain",
            "localhost4",
            "localhost4.localdomain4",
            "localhost6",
            "localhost6.localdomain6",
        ] {
            assert_eq!(named(name, &table), "aa-00-00-00-00-01", "{name}");
            assert_eq!(named(name, &LinkTable::default()), name);
        }
        for name in ["Localhost", "localhost5", "localhost.example.com", "node-1"] {
            assert_eq!(named(name, &table), name);
        }
    }

    #[test]
    fn hosts_without_a_name_are_named_by_their_hardware() {
        let interface = |name: &str, mac: &str, address: Option<&str>| Interface {
            name: name.to_owned(),
            mac_address: mac.to_owned(),
            r#type: "physical".to_owned(),
            ipv4_addresses: address.into_iter().map(str::to_owned).collect(),
            ..Interface::default()
        };
        let interfaces = [
            interface("eno2", "AA:00:00:00:00:02", Some("10.0.0.2/24")),
            interface("eno1", "AA:00:00:00:00:01", Some("10.0.0.1/24")),
            interface("eno0", "AA:00:00:00:00:00", None),
        ];
        assert_eq!(
            name_by_hardware(&interfaces).as_deref(),
            Some("aa-00-00-00-00-01")
        );
        assert_eq!(name_by_hardware(&interfaces[2..]), None);
    }
}
