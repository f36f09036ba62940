//! Storage of simulated hosts. Source: DSP0268 Storage, Drive, SimpleStorage.

use serde_json::{Value, json};

use super::links::{collection, link};
use super::simulated::SimulatedBmc;
use crate::hardware::Disk;

/// Name of the only controller.
const CONTROLLER: &str = "1";

/// The name of the collection in the system.
pub(super) fn resource(bmc: &SimulatedBmc) -> &'static str {
    if bmc.profile.has_simple_storage {
        "SimpleStorage"
    } else {
        "Storage"
    }
}

/// A resource of storage, by its path below the system.
pub(super) fn read(bmc: &SimulatedBmc, rest: &str) -> Option<Value> {
    let base = resource(bmc);
    let path = format!("{}/{base}", bmc.profile.system_path());
    let below = rest.strip_prefix(base)?;
    if below.is_empty() {
        return Some(collection(bmc, &path, &[CONTROLLER.to_owned()]));
    }
    let below = below.strip_prefix('/')?.strip_prefix(CONTROLLER)?;
    let disks = bmc.host.disks.iter();
    if below.is_empty() && bmc.profile.has_simple_storage {
        let devices: Vec<_> = disks.map(device).collect();
        return Some(json!({ "Id": CONTROLLER, "Name": "Controller", "Devices": devices }));
    }
    let drives = format!("{path}/{CONTROLLER}/Drives");
    if below.is_empty() {
        let links = (1..=disks.len()).map(|id| link(bmc, &format!("{drives}/{id}")));
        let links: Vec<_> = links.collect();
        return Some(json!({ "Id": CONTROLLER, "Name": "Controller", "Drives": links }));
    }
    let id: usize = below.strip_prefix("/Drives/")?.parse().ok()?;
    bmc.host
        .disks
        .get(id.checked_sub(1)?)
        .map(|disk| drive(id, disk))
}

fn drive(id: usize, disk: &Disk) -> Value {
    json!({
        "Id": id.to_string(), "Name": format!("Disk {id}"), "CapacityBytes": disk.size_bytes,
        "MediaType": if disk.rotational { "HDD" } else { "SSD" },
        "Protocol": if disk.rotational { "SAS" } else { "NVMe" },
        "Manufacturer": disk.vendor, "Model": disk.model, "SerialNumber": disk.serial,
        "Identifiers": [{ "DurableName": disk.wwn, "DurableNameFormat": "NAA" }],
        "Status": { "State": "Enabled", "Health": "OK" },
    })
}

fn device(disk: &Disk) -> Value {
    json!({
        "Name": disk.path, "CapacityBytes": disk.size_bytes, "Manufacturer": disk.vendor,
        "Model": disk.model, "Status": { "State": "Enabled" },
    })
}
