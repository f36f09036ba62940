//! Records of machines: HardwareData, and BareMetalHost with the hardware that its status holds.

use model::Error;
use model::inventory::{Disk, DriveType};
use serde::Deserialize;
use serde_json::Value;

use crate::hosts::DeclaredInterface;

/// Content of the records of one host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostRecord {
    /// Name of the record.
    pub name: String,
    /// Measured hardware.
    pub hardware: Option<HostHardware>,
    /// Address of the board's management controller.
    pub bmc_address: Option<String>,
    /// MAC address that the board boots from, in lower case.
    pub boot_mac: Option<String>,
}

/// Hardware of a machine. Members of the record that no check reads are left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HostHardware {
    /// Processors.
    pub cpu: RecordedCpu,
    /// Units: MiB.
    pub ram_mebibytes: u64,
    /// NICs.
    pub nics: Vec<RecordedNic>,
    /// Disks.
    pub storage: Vec<RecordedDisk>,
    /// Maker and serial number.
    pub system_vendor: RecordedVendor,
}

/// Processors of a machine.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedCpu {
    /// Such as `x86_64`; empty if unknown.
    pub arch: String,
    /// Number of logical processors.
    pub count: u32,
}

/// A NIC.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RecordedNic {
    /// Name.
    pub name: String,
    /// MAC address, in lower case.
    pub mac: String,
}

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RecordedDisk {
    /// Path of the device, such as `/dev/sda`.
    pub name: String,
    /// Units: bytes.
    pub size_bytes: i64,
    /// Whether it has spinning platters.
    pub rotational: bool,
    /// Vendor.
    pub vendor: String,
    /// Model.
    pub model: String,
    /// Serial number.
    pub serial_number: String,
    /// World wide name.
    pub wwn: String,
    /// SCSI location.
    pub hctl: String,
}

/// Maker of a machine.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RecordedVendor {
    /// Serial number of the system; empty if unknown.
    pub serial_number: String,
}

impl RecordedDisk {
    /// The disk as an agent would report it.
    pub fn inventory(&self) -> Disk {
        Disk {
            name: self.name.trim_start_matches("/dev/").to_owned(),
            path: self.name.clone(),
            vendor: self.vendor.clone(),
            model: self.model.clone(),
            serial: self.serial_number.clone(),
            wwn: self.wwn.clone(),
            hctl: self.hctl.clone(),
            size_bytes: self.size_bytes,
            drive_type: Some(
                if self.rotational {
                    DriveType::HDD
                } else {
                    DriveType::SSD
                }
                .into(),
            ),
            ..Disk::default()
        }
    }
}

impl HostRecord {
    /// Whether the record is that of a host: by its name, else by a MAC address.
    pub(super) fn is_of(&self, host: &str, interfaces: &[DeclaredInterface]) -> bool {
        let has = |mac: &str| interfaces.iter().any(|one| one.mac_address == mac);
        let hardware = self.hardware.iter().flat_map(|one| &one.nics);
        self.name == host
            || self.boot_mac.as_deref().is_some_and(has)
            || hardware.map(|nic| nic.mac.as_str()).any(has)
    }

    /// Takes over the members that another record of the same host has.
    pub(super) fn merge(&mut self, other: Self) {
        self.name = other.name;
        self.hardware = other.hardware.or(self.hardware.take());
        self.bmc_address = other.bmc_address.or(self.bmc_address.take());
        self.boot_mac = other.boot_mac.or(self.boot_mac.take());
    }
}

/// Reads a document of kind HardwareData or BareMetalHost.
///
/// Errors: Invalid – no name, or a member of another type.
pub(super) fn read(document: &Value) -> Result<HostRecord, Error> {
    let kind = document["kind"].as_str().unwrap_or_default().to_owned();
    let name = document["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        let reason = "is missing: it is the name of the host in agent-config.yaml";
        return Err(Error::invalid(format!("{kind}: metadata.name"), reason));
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let spec = &document["spec"];
    let record = HostRecord {
        name: name.to_owned(),
        hardware: None,
        bmc_address: text(&spec["bmc"]["address"]),
        boot_mac: text(&spec["bootMACAddress"]).map(|mac| mac.to_lowercase()),
    };
    let is_measured = kind == "HardwareData";
    let member = if is_measured { "spec" } else { "status" };
    let hardware = document[member]["hardware"].clone();
    if hardware.is_null() {
        return Ok(record);
    }
    let mut hardware: HostHardware = serde_json::from_value(hardware).map_err(|error| {
        let field = format!("{kind} {}: {member}.hardware", record.name);
        Error::invalid(field, error.to_string())
    })?;
    for nic in &mut hardware.nics {
        nic.mac.make_ascii_lowercase();
    }
    Ok(HostRecord {
        hardware: Some(hardware),
        ..record
    })
}
