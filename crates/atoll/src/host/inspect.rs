//! `atoll host inspect`: hosts as their BMCs see them.

use std::collections::BTreeMap;

use clap::Args;
use nodes::redfish::{BmcDisk, BmcInventory, InventoryJob};
use serde::Serialize;
use service::Error;

use super::bmcs::{HostBmcArgs, HostResult, cell, print_failures};
use crate::catalog::table::table;
use crate::terminal;

/// Arguments of `inspect`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostInspectArgs {
    #[command(flatten)]
    bmcs: HostBmcArgs,
    /// Print the hosts as JSON: [{"name","namespace","inventory":{"manufacturer","model","serial","uuid","power","boot",
    /// "nics":[{"id","mac","speed_mbps","link"}],"disks":[{"id","size_bytes","media","protocol","vendor","model","serial","wwn"}],
    /// "memory_gib","processors",…},"error"}]
    #[arg(long)]
    json: bool,
}

/// An inspected host; an error may stand beside its inventory.
#[derive(Serialize)]
struct InspectedHost {
    name: String,
    namespace: String,
    #[serde(skip)]
    boot_mac: Option<String>,
    inventory: Option<BmcInventory>,
    error: Option<String>,
}

/// Inspects the hosts; returns whether all were read, and have their boot NICs.
///
/// Errors: a file cannot be read, or has no such host.
pub(super) fn run(arguments: &HostInspectArgs) -> Result<bool, Error> {
    let results = arguments.bmcs.run(InventoryJob)?;
    let hosts: Vec<_> = results.into_iter().map(InspectedHost::of).collect();
    if arguments.json {
        let text = serde_json::to_string(&hosts);
        terminal::print(&text.map_err(|error| Error::new("writing the hosts", error))?);
    } else {
        let rows = hosts
            .iter()
            .filter_map(|host| Some(row(host, host.inventory.as_ref()?)));
        let rows: Vec<_> = rows.collect();
        if !rows.is_empty() {
            terminal::print(&table(HEADS, &rows));
        }
    }
    let failures = hosts
        .iter()
        .map(|host| (host.name.as_str(), host.error.as_deref()));
    Ok(print_failures(failures))
}

impl InspectedHost {
    /// A host without its boot NIC has the BMC or the MAC address of another one.
    fn of(one: HostResult<BmcInventory>) -> Self {
        let HostResult { host, result } = one;
        let (inventory, error) = match result {
            Ok(inventory) => {
                let error = host.check_boot_nic(&inventory).err();
                (Some(inventory), error.map(|error| error.to_string()))
            }
            Err(error) => (None, Some(error)),
        };
        Self {
            name: host.name,
            namespace: host.namespace,
            boot_mac: host.boot_mac.map(|mac| mac.to_string()),
            inventory,
            error,
        }
    }
}

const HEADS: [&str; 10] = [
    "NAME", "BMC", "SYSTEM", "SERIAL", "POWER", "CPUS", "MEMORY", "DISKS", "BOOT", "NICS",
];

/// The NIC of the boot MAC address has an asterisk.
fn row(host: &InspectedHost, inventory: &BmcInventory) -> [String; 10] {
    let words = |words: [Option<&str>; 2]| {
        let words: Vec<_> = words.into_iter().flatten().collect();
        cell(&words.join(" "))
    };
    let number = |number: Option<u64>, unit: &str| match number {
        Some(number) => format!("{number}{unit}"),
        None => "-".to_owned(),
    };
    let nics = inventory.nics.iter().map(|nic| {
        let is_boot = host.boot_mac.as_ref() == Some(&nic.mac);
        format!("{}{}", nic.mac, if is_boot { "*" } else { "" })
    });
    let nics: Vec<_> = nics.collect();
    let boot = [
        inventory.boot.mode.as_deref(),
        inventory
            .secure_boot
            .and_then(|is_on| is_on.then_some("secure")),
        inventory.has_virtual_media.then_some("CD"),
        inventory.has_uefi_http.then_some("HTTP"),
    ];
    let boot: Vec<_> = boot.into_iter().flatten().collect();
    let bmc = inventory.bmc_model.as_deref().unwrap_or(inventory.family);
    [
        host.name.clone(),
        words([Some(bmc), inventory.bmc_firmware.as_deref()]),
        words([
            inventory.manufacturer.as_deref(),
            inventory.model.as_deref(),
        ]),
        cell(inventory.serial.as_deref().unwrap_or_default()),
        inventory.power.to_string(),
        number(inventory.processors, ""),
        number(inventory.memory_gib, " GiB"),
        cell(&disks(&inventory.disks)),
        cell(&boot.join(" ")),
        if nics.is_empty() {
            "-".to_owned()
        } else {
            nics.join(" ")
        },
    ]
}

/// Equal disks together, as `2x 480 GB SSD`. Units: 10^9 bytes, as on disks.
fn disks(disks: &[BmcDisk]) -> String {
    let mut kinds = BTreeMap::<String, usize>::new();
    for disk in disks {
        let size = disk.size_bytes.map(|bytes| bytes / 1_000_000_000);
        let size = size.map_or_else(|| "disk".to_owned(), |size| format!("{size} GB"));
        let media = match disk.protocol.as_deref() {
            Some("NVMe") => "NVMe",
            _ => disk.media.as_deref().unwrap_or_default(),
        };
        let kind = format!("{size} {media}").trim_end().to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    let kinds = kinds.iter().map(|(kind, count)| format!("{count}x {kind}"));
    kinds.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_disks_are_together() {
        let disk = |size_bytes, media: Option<&str>, protocol: Option<&str>| BmcDisk {
            id: "1".to_owned(),
            size_bytes,
            media: media.map(str::to_owned),
            protocol: protocol.map(str::to_owned),
            vendor: None,
            model: None,
            serial: None,
            wwn: None,
        };
        let (small, large) = (Some(480_103_981_056), Some(4_000_787_030_016));
        let found = [
            disk(small, Some("SSD"), Some("SATA")),
            disk(small, Some("SSD"), Some("SATA")),
            disk(small, Some("SSD"), Some("NVMe")),
            disk(large, None, None),
            disk(None, None, None),
        ];
        assert_eq!(
            disks(&found),
            "1x 4000 GB, 1x 480 GB NVMe, 2x 480 GB SSD, 1x disk"
        );
        assert_eq!(disks(&[]), "");
    }
}
