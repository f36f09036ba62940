//! `atoll host inspect`: hosts as their BMCs see them.

use std::collections::BTreeMap;

use clap::Args;
use redfish::{BmcDisk, BmcInventory, InventoryJob};
use serde::Serialize;
use service::{Error, ResultExt as _};

use super::bmcs::{HostBmcArgs, HostResult, cell, print_failures};
use crate::catalog::table::table;
use crate::output_format::FormatArgs;
use crate::terminal;

/// Arguments of `inspect`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostInspectArgs {
    #[command(flatten)]
    bmcs: HostBmcArgs,
    #[command(flatten)]
    format: FormatArgs,
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
    if arguments.format.is_json() {
        let text = serde_json::to_string(&hosts);
        terminal::print(&text.doing("writing the hosts")?);
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
        cell(&joined(Some(bmc), inventory.bmc_firmware.as_deref())),
        cell(&joined(
            inventory.manufacturer.as_deref(),
            inventory.model.as_deref(),
        )),
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

/// A name and its detail. The name is left out where the detail repeats it, or its first word, as `iLO 5 v2.72` of an
/// `iLO 5` or `Dell PowerEdge R650` of `Dell Inc.`.
fn joined(name: Option<&str>, detail: Option<&str>) -> String {
    let name = name.unwrap_or_default();
    let Some(detail) = detail else {
        return name.to_owned();
    };
    let lower = |text: &str| format!(" {} ", text.to_lowercase());
    if lower(name).contains(&lower(detail)) {
        return name.to_owned();
    }
    let first = |text: &str| text.split([' ', ',']).next().map(str::to_lowercase);
    if name.is_empty() || first(name) == first(detail) {
        detail.to_owned()
    } else {
        format!("{name} {detail}")
    }
}

/// Equal disks together, as `2x 480 GB SSD`; those of unknown size by their kind.
fn disks(disks: &[BmcDisk]) -> String {
    let mut kinds = BTreeMap::<String, usize>::new();
    for disk in disks {
        let media = match disk.protocol.as_deref() {
            Some("NVMe") => "NVMe",
            _ => disk.media.as_deref().unwrap_or_default(),
        };
        let kind = match (disk.size_bytes.map(size), media) {
            (None, "") => "disk".to_owned(),
            (None, media) => media.to_owned(),
            (Some(size), media) => format!("{size} {media}").trim_end().to_owned(),
        };
        *kinds.entry(kind).or_default() += 1;
    }
    let kinds = kinds.iter().map(|(kind, count)| format!("{count}x {kind}"));
    kinds.collect::<Vec<_>>().join(", ")
}

/// Units: powers of ten, as on disks.
fn size(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];
    match units.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
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
            disk(None, Some("SSD"), Some("SATA")),
            disk(Some(512_000_000), None, Some("SD")),
        ];
        assert_eq!(
            disks(&found),
            "1x 4000 GB, 1x 480 GB NVMe, 2x 480 GB SSD, 1x 512 MB, 1x SSD, 1x disk"
        );
        assert_eq!(disks(&[]), "");
    }

    #[test]
    fn details_that_repeat_their_name_are_alone() {
        for (name, detail, expected) in [
            (Some("iLO 5"), Some("iLO 5 v2.72"), "iLO 5 v2.72"),
            (Some("iLO 5"), Some("iLO 5"), "iLO 5"),
            (Some("iLO 5"), Some("2.72"), "iLO 5 2.72"),
            (
                Some("HPE"),
                Some("HPE ProLiant DL360"),
                "HPE ProLiant DL360",
            ),
            (
                Some("Dell Inc."),
                Some("PowerEdge R650"),
                "Dell Inc. PowerEdge R650",
            ),
            (
                Some("Dell Inc."),
                Some("Dell PowerEdge R650"),
                "Dell PowerEdge R650",
            ),
            (
                Some("LENOVO"),
                Some("Lenovo ThinkSystem"),
                "Lenovo ThinkSystem",
            ),
            (Some("Lenovo XCC"), Some("XCC"), "Lenovo XCC"),
            (Some("Supermicro"), None, "Supermicro"),
            (None, Some("3500"), "3500"),
            (None, None, ""),
        ] {
            assert_eq!(joined(name, detail), expected, "{name:?} {detail:?}");
        }
    }
}
