//! The inventory: hardware and network of a host, as its agent reports them.
//!
//! Source: the installer API description (wire names, presence rules).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::wire::{Reported, is_false, is_zero, is_zero_f64, null_as_default, wire_enum};

/// Part of `inventory`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InventoryTruncation {
    #[serde(deserialize_with = "null_as_default")]
    pub r#type: Reported<Type>,
    #[serde(deserialize_with = "null_as_default")]
    pub reasons: Vec<String>,
}

/// `inventory` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inventory {
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub hostname: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub bmc_address: String,
    #[serde(deserialize_with = "null_as_default")]
    pub interfaces: Vec<Interface>,
    #[serde(deserialize_with = "null_as_default")]
    pub disks: Vec<Disk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_vendor: Option<SystemVendor>,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub bmc_v6address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    #[serde(deserialize_with = "null_as_default")]
    pub gpus: Vec<Gpu>,
    #[serde(deserialize_with = "null_as_default")]
    pub routes: Vec<Route>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpm_version: Option<Reported<TpmVersion>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<InventoryTruncation>,
}

/// `boot` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Boot {
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub current_boot_mode: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub pxe_interface: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub command_line: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_boot_state: Option<Reported<SecureBootState>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_type: Option<Reported<DeviceType>>,
}

/// `cpu` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub count: i64,
    #[serde(
        skip_serializing_if = "is_zero_f64",
        deserialize_with = "null_as_default"
    )]
    pub frequency: f64,
    #[serde(deserialize_with = "null_as_default")]
    pub flags: Vec<String>,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub model_name: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub architecture: String,
}

/// Part of `disk`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallationEligibility {
    #[serde(skip_serializing_if = "is_false", deserialize_with = "null_as_default")]
    pub eligible: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub not_eligible_reasons: Vec<String>,
}

/// `disk` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_type: Option<Reported<DriveType>>,
    #[serde(skip_serializing_if = "is_false", deserialize_with = "null_as_default")]
    pub has_uuid: bool,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub vendor: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub name: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub path: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub hctl: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub by_path: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub by_id: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub model: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub wwn: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub serial: String,
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub size_bytes: i64,
    #[serde(skip_serializing_if = "is_false", deserialize_with = "null_as_default")]
    pub bootable: bool,
    #[serde(skip_serializing_if = "is_false", deserialize_with = "null_as_default")]
    pub removable: bool,
    #[serde(
        rename = "partitionTypes",
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub partition_types: String,
    #[serde(skip_serializing_if = "is_false", deserialize_with = "null_as_default")]
    pub is_installation_media: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub installation_eligibility: InstallationEligibility,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub smart: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_perf: Option<IoPerf>,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub holders: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iscsi: Option<Iscsi>,
}

impl Disk {
    /// Its drive type; unknown if it has none, or one of a newer agent.
    pub fn known_type(&self) -> DriveType {
        let reported = self.drive_type.as_ref();
        reported.and_then(Reported::known).unwrap_or_default()
    }
}

/// `gpu` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub vendor: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub vendor_id: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub device_id: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub name: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub address: String,
}

/// `interface` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    #[serde(deserialize_with = "null_as_default")]
    pub ipv6_addresses: Vec<String>,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub vendor: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub name: String,
    #[serde(skip_serializing_if = "is_false", deserialize_with = "null_as_default")]
    pub has_carrier: bool,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub product: String,
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub mtu: i64,
    #[serde(deserialize_with = "null_as_default")]
    pub ipv4_addresses: Vec<String>,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub biosdevname: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub client_id: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub mac_address: String,
    #[serde(deserialize_with = "null_as_default")]
    pub flags: Vec<String>,
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub speed_mbps: i64,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub r#type: String,
}

/// `memory` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub physical_bytes: i64,
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub usable_bytes: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_bytes_method: Option<Reported<MemoryMethod>>,
}

/// `route` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub interface: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub gateway: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub destination: String,
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub family: i64,
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub metric: i64,
}

impl Route {
    /// Whether it is a default route.
    pub fn is_default(&self) -> bool {
        matches!(
            self.destination.as_str(),
            "0.0.0.0" | "0.0.0.0/0" | "::" | "::/0"
        )
    }
}

/// `system_vendor` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemVendor {
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub serial_number: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub product_name: String,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub manufacturer: String,
    #[serde(skip_serializing_if = "is_false", deserialize_with = "null_as_default")]
    pub r#virtual: bool,
}

/// `io_perf` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoPerf {
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub sync_duration: i64,
}

/// `iscsi` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Iscsi {
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub host_ip_address: String,
}

/// `disk_info` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskInfo {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    #[serde(
        skip_serializing_if = "String::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_speed: Option<DiskSpeed>,
}

/// `disk_speed` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskSpeed {
    #[serde(skip_serializing_if = "is_false", deserialize_with = "null_as_default")]
    pub tested: bool,
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub exit_code: i64,
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_as_default")]
    pub speed_ms: i64,
}

wire_enum! {
    /// Values of `TpmVersion`.
    pub enum TpmVersion {
        None = "none",
        V12 = "1.2",
        V20 = "2.0",
    }
}

wire_enum! {
    /// Values of `Type`.
    pub enum Type {
        Partial = "partial",
        Full = "full",
    }
}

wire_enum! {
    /// Values of `DeviceType`.
    pub enum DeviceType {
        Persistent = "persistent",
        Ephemeral = "ephemeral",
    }
}

wire_enum! {
    /// Values of `SecureBootState`.
    pub enum SecureBootState {
        Unknown = "Unknown",
        NotSupported = "NotSupported",
        Enabled = "Enabled",
        Disabled = "Disabled",
    }
}

wire_enum! {
    /// Values of `DriveType`.
    pub enum DriveType {
        Unknown = "Unknown",
        HDD = "HDD",
        FDD = "FDD",
        ODD = "ODD",
        SSD = "SSD",
        Virtual = "virtual",
        Multipath = "Multipath",
        ISCSI = "iSCSI",
        FC = "FC",
        LVM = "LVM",
        RAID = "RAID",
        ECKD = "ECKD",
        ECKDESE = "ECKD (ESE)",
        FBA = "FBA",
    }
}

wire_enum! {
    /// Values of `MemoryMethod`.
    pub enum MemoryMethod {
        Dmidecode = "dmidecode",
        Ghw = "ghw",
        Meminfo = "meminfo",
    }
}
