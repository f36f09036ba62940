//! The inventory of a machine, as its agent reports it.

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{Disk, Hardware, Nic};

impl Hardware {
    /// The inventory as the agent reports it.
    pub fn inventory(&self) -> Value {
        let disks = self.disks.iter().map(disk).chain([media()]);
        json!({
            "hostname": self.hostname,
            "bmc_address": "0.0.0.0",
            "bmc_v6address": "::/0",
            "boot": {
                "current_boot_mode": "uefi",
                "device_type": "ephemeral",
                "secure_boot_state": "Disabled",
                "command_line": "BOOT_IMAGE=/images/pxeboot/vmlinuz coreos.liveiso=rhcos-418 ignition.firstboot ignition.platform.id=metal\n",
            },
            "cpu": self.cpu(),
            "disks": disks.collect::<Vec<_>>(),
            "gpus": self.gpus(),
            "interfaces": self.nics.iter().map(interface).collect::<Vec<_>>(),
            "memory": { "physical_bytes": self.ram_bytes, "physical_bytes_method": "dmidecode",
                "usable_bytes": self.ram_bytes - self.ram_bytes / 40 },
            "routes": self.route_list(),
            "system_vendor": { "manufacturer": "Contoso", "product_name": "Edge R240", "serial_number": self.serial },
            "tpm_version": "2.0",
        })
    }

    fn cpu(&self) -> Value {
        let (model, flags) = if self.architecture == "x86_64" {
            ("Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz", X86_FLAGS)
        } else {
            ("Neoverse-N1", ARM_FLAGS)
        };
        json!({
            "architecture": self.architecture,
            "count": self.cpus,
            "frequency": 2900.0,
            "model_name": model,
            "flags": flags.split(' ').collect::<Vec<_>>(),
        })
    }

    fn gpus(&self) -> Value {
        let console = json!({ "address": "0000:00:01.0", "device_id": "1050", "name": "Virtio 1.0 GPU",
            "vendor": "Red Hat, Inc.", "vendor_id": "1af4" });
        let computing = json!({ "address": "0000:3b:00.0", "device_id": "1eb8", "name": "TU104GL [Tesla T4]",
            "vendor": "NVIDIA Corporation", "vendor_id": "10de" });
        if self.has_gpu {
            json!([console, computing])
        } else {
            json!([console])
        }
    }

    fn route_list(&self) -> Value {
        let route = |destination: IpNet, gateway: String, interface: &str| {
            let mut route = json!({ "destination": destination.addr().to_string(), "family": family(&destination),
                "interface": interface, "metric": 100 });
            if !gateway.is_empty() {
                route["gateway"] = gateway.into();
            }
            route
        };
        let far = self.routes.iter().filter(|one| self.link_of(one).is_some());
        let far = far.map(|one| route(one.destination, one.gateway.to_string(), &one.interface));
        let near = self.nics.iter().flat_map(|nic| {
            let networks = nic.addresses.iter().map(IpNet::trunc);
            networks.map(|network| route(network, String::new(), &nic.name))
        });
        let loopback =
            json!({ "destination": "::1", "family": 10, "interface": "lo", "metric": 256 });
        far.chain(near).chain([loopback]).collect()
    }
}

const X86_FLAGS: &str = "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 ht syscall nx pdpe1gb rdtscp lm constant_tsc rep_good nopl xtopology cpuid pni pclmulqdq vmx ssse3 fma cx16 pcid sse4_1 sse4_2 x2apic movbe popcnt aes xsave avx f16c rdrand hypervisor lahf_lm abm 3dnowprefetch avx2 bmi1 bmi2 avx512f avx512dq";
const ARM_FLAGS: &str = "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics";

/// Numbers of address families as Linux has them.
fn family(network: &IpNet) -> u8 {
    match network {
        IpNet::V4(_) => 2,
        IpNet::V6(_) => 10,
    }
}

fn disk(disk: &Disk) -> Value {
    json!({
        "id": disk.by_id(),
        "by_id": disk.by_id(),
        "by_path": "/dev/disk/by-path/pci-0000:00:1f.2-ata-1",
        "drive_type": if disk.rotational { "HDD" } else { "SSD" },
        "has_uuid": true,
        "hctl": disk.hctl,
        "installation_eligibility": { "eligible": true, "not_eligible_reasons": [] },
        "model": disk.model,
        "name": disk.path.trim_start_matches("/dev/"),
        "path": disk.path,
        "serial": disk.serial,
        "size_bytes": disk.size_bytes,
        "smart": r#"{"json_format_version":[1,0],"smart_status":{"passed":true},"temperature":{"current":31}}"#,
        "vendor": disk.vendor,
        "wwn": disk.wwn,
    })
}

fn interface(nic: &Nic) -> Value {
    let has_carrier = !nic.addresses.is_empty();
    let flags: &[&str] = if has_carrier {
        &["up", "broadcast", "multicast", "running"]
    } else {
        &["up", "broadcast", "multicast"]
    };
    let addresses = |is_v4: bool| -> Vec<String> {
        let own = nic.addresses.iter();
        let of_family = own.filter(|one| matches!(one, IpNet::V4(_)) == is_v4);
        of_family.map(ToString::to_string).collect()
    };
    json!({
        "name": nic.name,
        "mac_address": nic.mac,
        "ipv4_addresses": addresses(true),
        "ipv6_addresses": addresses(false),
        "flags": flags,
        "has_carrier": has_carrier,
        "mtu": nic.mtu,
        "product": "0x1572",
        "speed_mbps": if has_carrier { 10_000 } else { -1 },
        "type": nic.kind,
        "vendor": "0x8086",
    })
}

/// The virtual drive from which the machine booted.
fn media() -> Value {
    json!({
        "id": "/dev/disk/by-path/pci-0000:00:1f.2-ata-2",
        "by_path": "/dev/disk/by-path/pci-0000:00:1f.2-ata-2",
        "bootable": true,
        "drive_type": "ODD",
        "hctl": "1:0:0:0",
        "installation_eligibility": { "not_eligible_reasons": ["Disk is removable", "Disk is too small"] },
        "is_installation_media": true,
        "model": "Virtual CD-ROM",
        "name": "sr0",
        "path": "/dev/sr0",
        "removable": true,
        "size_bytes": 1_154_482_176,
        "vendor": "Contoso",
    })
}

#[cfg(test)]
mod tests {
    use crate::Role;
    use crate::hardware::tests::machine;

    #[test]
    fn the_inventory_has_the_members_that_the_service_reads() {
        let inventory = machine(0, Role::Master, &[]).inventory();
        assert_eq!(
            inventory["interfaces"][0]["ipv4_addresses"][0],
            "192.168.126.10/24"
        );
        assert_eq!(inventory["routes"][0]["gateway"], "192.168.126.1");
        assert_eq!(inventory["routes"][1]["destination"], "192.168.126.0");
        assert_eq!(inventory["memory"]["physical_bytes"], 24_u64 << 30);
        assert!(
            inventory["disks"][0]["id"]
                .as_str()
                .unwrap()
                .starts_with("/dev/disk/by-id/wwn-0x50")
        );
    }
}
