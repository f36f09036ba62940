//! Hardware requirements by platform version and role.
//!
//! Source: the installer API description (wire names, presence rules).

use serde::{Deserialize, Serialize};

use crate::wire::{is_false, is_zero, null_as_default, null_when_empty, wire_enum};

/// `cluster-host-requirements-details` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterHostRequirementsDetails {
    #[serde(skip_serializing_if = "is_zero")]
    pub cpu_cores: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub ram_mib: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub disk_size_gb: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub installation_disk_speed_threshold_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_latency_threshold_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_loss_percentage: Option<f64>,
    #[serde(skip_serializing_if = "is_false")]
    pub tpm_enabled_in_bios: bool,
}

/// `versioned-cluster-host-requirements-details` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionedClusterHostRequirementsDetails {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_cores: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ram_mib: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_size_gb: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installation_disk_speed_threshold_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_latency_threshold_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_loss_percentage: Option<f64>,
}

/// `versioned-host-requirements` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VersionedHostRequirements {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub match_type: Option<MatchType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<VersionedClusterHostRequirementsDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arbiter: Option<VersionedClusterHostRequirementsDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<VersionedClusterHostRequirementsDetails>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sno: Option<VersionedClusterHostRequirementsDetails>,
    #[serde(rename = "edge-worker", skip_serializing_if = "Option::is_none")]
    pub edge_worker: Option<VersionedClusterHostRequirementsDetails>,
}

/// `preflight-hardware-requirements` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PreflightHardwareRequirements {
    #[serde(deserialize_with = "null_as_default")]
    pub operators: Vec<OperatorHardwareRequirements>,
    pub ocp: RoleHardwareRequirements,
}

/// `operator-hardware-requirements` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorHardwareRequirements {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub operator_name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub dependencies: Vec<String>,
    pub requirements: RoleHardwareRequirements,
}

/// `host-type-hardware-requirements-wrapper` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleHardwareRequirements {
    pub worker: HostTypeHardwareRequirements,
    pub master: HostTypeHardwareRequirements,
}

/// `host-type-hardware-requirements` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostTypeHardwareRequirements {
    pub quantitative: ClusterHostRequirementsDetails,
    #[serde(
        deserialize_with = "null_as_default",
        serialize_with = "null_when_empty"
    )]
    pub qualitative: Vec<String>,
}

wire_enum! {
    /// Values of `MatchType`.
    pub enum MatchType {
        Exact = "exact",
        MinVersion = "min_version",
    }
}
