//! Hardware in the status of a host. Source: metal3-io/baremetal-operator, apis/metal3.io/v1alpha1, `HardwareDetails`.

use serde_json::{Map, Value, json};

use redfish::{BmcDisk, BmcInventory, BmcNic};

/// Longest text. Units: characters.
const MAX_TEXT: usize = 256;

/// The hardware of an inventory. Values that the BMC does not show are left out.
pub(super) fn hardware_details(inventory: &BmcInventory, boot_mac: Option<&str>) -> Value {
    let text = |text: &Option<String>| text.as_deref().map_or(Value::Null, shown);
    let nics = inventory.nics.iter().map(|it| nic(it, boot_mac));
    filled(vec![
        (
            "systemVendor",
            filled(vec![
                ("manufacturer", text(&inventory.manufacturer)),
                ("productName", text(&inventory.model)),
                ("serialNumber", text(&inventory.serial)),
            ]),
        ),
        (
            "firmware",
            filled(vec![(
                "bios",
                filled(vec![("version", text(&inventory.bios_version))]),
            )]),
        ),
        (
            "ramMebibytes",
            json!(inventory.memory_gib.and_then(|gib| gib.checked_mul(1024))),
        ),
        ("nics", nics.collect()),
        ("storage", inventory.disks.iter().map(disk).collect()),
        (
            "cpu",
            filled(vec![
                ("count", json!(inventory.processors)),
                ("model", text(&inventory.processor_model)),
            ]),
        ),
    ])
}

fn nic(nic: &BmcNic, boot_mac: Option<&str>) -> Value {
    let is_boot = boot_mac.is_some_and(|mac| mac.eq_ignore_ascii_case(&nic.mac));
    filled(vec![
        ("name", shown(&nic.id)),
        ("mac", json!(nic.mac)),
        (
            "speedGbps",
            json!(nic.speed_mbps.map(|mbps| mbps / 1000).filter(|it| *it > 0)),
        ),
        ("pxe", json!(is_boot)),
    ])
}

/// A BMC does not know the device names of the system: the name is that of the drive.
fn disk(disk: &BmcDisk) -> Value {
    let text = |text: &Option<String>| text.as_deref().map_or(Value::Null, shown);
    let media = disk.media.as_deref();
    let kind = match (disk.protocol.as_deref(), media) {
        (Some("NVMe"), _) => Some("NVME"),
        (_, Some(media @ ("HDD" | "SSD"))) => Some(media),
        _ => None,
    };
    filled(vec![
        ("name", shown(&disk.id)),
        ("type", json!(kind)),
        ("rotational", json!(media.map(|media| media == "HDD"))),
        ("sizeBytes", json!(disk.size_bytes)),
        ("vendor", text(&disk.vendor)),
        ("model", text(&disk.model)),
        ("serialNumber", text(&disk.serial)),
        ("wwn", text(&disk.wwn)),
    ])
}

/// An object without members that are null.
fn filled(members: Vec<(&str, Value)>) -> Value {
    let members = members.into_iter().filter(|(_, value)| !value.is_null());
    let members = members.map(|(name, value)| (name.to_owned(), value));
    Value::Object(members.collect::<Map<_, _>>())
}

fn shown(text: &str) -> Value {
    let chars = text.chars().filter(|c| !c.is_control());
    chars.take(MAX_TEXT).collect::<String>().into()
}
