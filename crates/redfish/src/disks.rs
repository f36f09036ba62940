//! Disks of a host by its BMC. Source: DSP0268 Storage, Drive, SimpleStorage.

use serde::Serialize;
use serde_json::Value;

use super::bmc::Bmc;
use super::document::{RedfishDocument, named, quantity, whole};
use super::error::BmcError;
use super::link::RedfishPath;

/// Storage controllers of one host that are read.
const CONTROLLER_LIMIT: usize = 16;
/// Disks of one host that are read.
const DISK_LIMIT: usize = 64;

/// A disk of a host. Missing values were not sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BmcDisk {
    /// Its id at the BMC.
    pub id: String,
    /// Units: bytes.
    pub size_bytes: Option<u64>,
    /// `HDD`, `SSD`, `SMR`.
    pub media: Option<String>,
    /// As `SATA`, `SAS`, `NVMe`.
    pub protocol: Option<String>,
    /// Manufacturer.
    pub vendor: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Serial number.
    pub serial: Option<String>,
    /// World wide name, as the BMC spells it.
    pub wwn: Option<String>,
}

impl BmcDisk {
    /// The disk of a Drive; none of an empty slot.
    fn of(document: &RedfishDocument) -> Option<Self> {
        let id = document.text("/Id").unwrap_or(document.path.name());
        Self::read(id, &|pointer| document.at(pointer))
    }

    /// The disk of an entry of SimpleStorage.
    fn of_device(device: &Value) -> Option<Self> {
        let at = |pointer: &str| device.pointer(pointer).unwrap_or(&Value::Null);
        Self::read(at("/Name").as_str()?, &at)
    }

    fn read<'a>(id: &str, at: &dyn Fn(&str) -> &'a Value) -> Option<Self> {
        if at("/Status/State") == "Absent" {
            return None;
        }
        let text = |pointer| {
            let text = at(pointer).as_str().and_then(named);
            text.map(str::to_owned)
        };
        Some(Self {
            id: id.to_owned(),
            size_bytes: quantity(at("/CapacityBytes")).and_then(whole),
            media: text("/MediaType"),
            protocol: text("/Protocol"),
            vendor: text("/Manufacturer"),
            model: text("/Model"),
            serial: text("/SerialNumber"),
            wwn: world_wide_name(at("/Identifiers")),
        })
    }
}

fn world_wide_name(identifiers: &Value) -> Option<String> {
    let identifiers = identifiers.as_array()?.iter();
    let mut named = identifiers.filter(|it| {
        let format = it["DurableNameFormat"].as_str();
        matches!(format, Some("NAA" | "EUI"))
    });
    named.find_map(|it| Some(it["DurableName"].as_str()?.to_owned()))
}

impl Bmc {
    /// The disks of the system; none where the BMC does not see them: most see those of their own controllers alone.
    pub(super) async fn disks(
        &mut self,
        system: &RedfishDocument,
    ) -> Result<Vec<BmcDisk>, BmcError> {
        let mut disks = Vec::new();
        let mut seen: Vec<RedfishPath> = Vec::new();
        for controller in self.controllers(system.link("/Storage")?).await? {
            for path in controller.links("/Drives", DISK_LIMIT - disks.len())? {
                // Of a disk with two controllers.
                if seen.iter().any(|it| it.is_same(&path)) {
                    continue;
                }
                seen.push(path.clone());
                let drive = self.session.find(&path).await?;
                disks.extend(drive.as_ref().and_then(BmcDisk::of));
            }
        }
        if !disks.is_empty() {
            return Ok(disks);
        }
        for controller in self.controllers(system.link("/SimpleStorage")?).await? {
            let devices = controller.at("/Devices").as_array().into_iter().flatten();
            disks.extend(devices.filter_map(BmcDisk::of_device));
        }
        disks.truncate(DISK_LIMIT);
        Ok(disks)
    }

    async fn controllers(
        &mut self,
        collection: Option<RedfishPath>,
    ) -> Result<Vec<RedfishDocument>, BmcError> {
        let mut controllers = Vec::new();
        let Some(collection) = collection else {
            return Ok(controllers);
        };
        let Some(collection) = self.session.find(&collection).await? else {
            return Ok(controllers);
        };
        for path in collection.links("/Members", CONTROLLER_LIMIT)? {
            controllers.extend(self.session.find(&path).await?);
        }
        Ok(controllers)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::document::tests::document;
    use super::*;

    #[test]
    fn drives_are_read_and_empty_slots_are_none() {
        let drive = json!({
            "Id": "Disk.Bay.0", "CapacityBytes": 480_103_981_056_u64, "MediaType": "SSD", "Protocol": "NVMe",
            "Manufacturer": "Example", "Model": " M ", "SerialNumber": "", "Status": { "State": "Enabled" },
            "Identifiers": [
                { "DurableName": "a", "DurableNameFormat": "UUID" },
                { "DurableName": "eui.01", "DurableNameFormat": "EUI" },
            ],
        });
        let disk = BmcDisk::of(&document(drive)).unwrap();
        assert_eq!(
            (disk.id.as_str(), disk.size_bytes),
            ("Disk.Bay.0", Some(480_103_981_056))
        );
        assert_eq!((disk.model.as_deref(), disk.serial), (Some("M"), None));
        assert_eq!(disk.wwn.as_deref(), Some("eui.01"));
        for size in [json!(0), Value::Null, json!("unknown")] {
            let drive = json!({ "Id": "1", "CapacityBytes": size, "Model": "N/A" });
            let disk = BmcDisk::of(&document(drive)).unwrap();
            assert_eq!((disk.size_bytes, disk.model), (None, None), "{size}");
        }
        let empty = json!({ "Id": "1", "CapacityBytes": null, "Status": { "State": "Absent" } });
        assert_eq!(BmcDisk::of(&document(empty)), None);
    }

    #[test]
    fn other_types_read_as_missing() {
        let drive = json!({ "CapacityBytes": -1, "Model": [], "Identifiers": [7, { "DurableName": 1, "DurableNameFormat": "NAA" }] });
        let disk = BmcDisk::of(&document(drive)).unwrap();
        assert_eq!(
            (disk.id.as_str(), disk.size_bytes, disk.wwn),
            ("1", None, None)
        );
        assert_eq!(BmcDisk::of_device(&json!({ "CapacityBytes": 1 })), None);
        assert_eq!(BmcDisk::of_device(&json!({ "Name": "a" })).unwrap().id, "a");
    }
}
