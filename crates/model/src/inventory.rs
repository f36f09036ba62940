//! The inventory: hardware and network of a host, as its agent reports them.
//!
//! Source: the installer API description (wire names, presence rules).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::wire::{is_false, is_zero, is_zero_f64, null_as_default, wire_enum};

/// Part of `inventory`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InventoryTruncation {
    pub r#type: Type,
    #[serde(deserialize_with = "null_as_default")]
    pub reasons: Vec<String>,
}

/// `inventory` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Inventory {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bmc_address: String,
    #[serde(deserialize_with = "null_as_default")]
    pub interfaces: Vec<Interface>,
    #[serde(deserialize_with = "null_as_default")]
    pub disks: Vec<Disk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_vendor: Option<SystemVendor>,
    #[serde(skip_serializing_if = "String::is_empty")]
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
    pub tpm_version: Option<TpmVersion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<InventoryTruncation>,
}

/// `boot` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Boot {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub current_boot_mode: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pxe_interface: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command_line: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secure_boot_state: Option<SecureBootState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_type: Option<DeviceType>,
}

/// `cpu` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cpu {
    #[serde(skip_serializing_if = "is_zero")]
    pub count: i64,
    #[serde(skip_serializing_if = "is_zero_f64")]
    pub frequency: f64,
    #[serde(deserialize_with = "null_as_default")]
    pub flags: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub architecture: String,
}

/// Part of `disk`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallationEligibility {
    #[serde(skip_serializing_if = "is_false")]
    pub eligible: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub not_eligible_reasons: Vec<String>,
}

/// `disk` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disk {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive_type: Option<DriveType>,
    #[serde(skip_serializing_if = "is_false")]
    pub has_uuid: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hctl: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by_path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub wwn: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub size_bytes: i64,
    #[serde(skip_serializing_if = "is_false")]
    pub bootable: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub removable: bool,
    #[serde(rename = "partitionTypes", skip_serializing_if = "String::is_empty")]
    pub partition_types: String,
    #[serde(skip_serializing_if = "is_false")]
    pub is_installation_media: bool,
    pub installation_eligibility: InstallationEligibility,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub smart: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_perf: Option<IoPerf>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub holders: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iscsi: Option<Iscsi>,
}

/// `gpu` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vendor_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub device_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub address: String,
}

/// `interface` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    #[serde(deserialize_with = "null_as_default")]
    pub ipv6_addresses: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "is_false")]
    pub has_carrier: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub product: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub mtu: i64,
    #[serde(deserialize_with = "null_as_default")]
    pub ipv4_addresses: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub biosdevname: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac_address: String,
    #[serde(deserialize_with = "null_as_default")]
    pub flags: Vec<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub speed_mbps: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub r#type: String,
}

/// `memory` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    #[serde(skip_serializing_if = "is_zero")]
    pub physical_bytes: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub usable_bytes: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub physical_bytes_method: Option<MemoryMethod>,
}

/// `route` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Route {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub interface: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub gateway: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub destination: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub family: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub metric: i64,
}

/// `system_vendor` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemVendor {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub serial_number: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub product_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manufacturer: String,
    #[serde(skip_serializing_if = "is_false")]
    pub r#virtual: bool,
}

/// `io_perf` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoPerf {
    #[serde(skip_serializing_if = "is_zero")]
    pub sync_duration: i64,
}

/// `iscsi` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Iscsi {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host_ip_address: String,
}

/// `disk_info` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskInfo {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Uuid>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_speed: Option<DiskSpeed>,
}

/// `disk_speed` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskSpeed {
    #[serde(skip_serializing_if = "is_false")]
    pub tested: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub exit_code: i64,
    #[serde(skip_serializing_if = "is_zero")]
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
