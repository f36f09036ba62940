//! Operators that a cluster installs or monitors.
//!
//! Source: the installer API description (wire names, presence rules).

use serde::{Deserialize, Serialize};

use crate::ids::ClusterId;
use crate::time::DateTime;
use crate::wire::{is_false, is_zero, null_as_default, wire_enum};

/// `monitored-operator` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitoredOperator {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subscription_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_type: Option<OperatorType>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub properties: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub timeout_seconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<OperatorStatus>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status_info: String,
    pub status_updated_at: DateTime,
    #[serde(deserialize_with = "null_as_default")]
    pub bundles: Vec<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub dependency_only: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub source_bundles: Vec<String>,
}

/// `operator-monitor-report` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OperatorMonitorReport {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<OperatorStatus>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status_info: String,
}

/// `operator-create-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OperatorCreateParams {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub properties: String,
}

/// `bundle-create-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleCreateParams {
    pub id: String,
    /// Sent as `null` when unset.
    #[serde(default)]
    pub optional_operators: Option<Vec<String>>,
}

/// `bundle` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BundleDescription {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(deserialize_with = "null_as_default")]
    pub operators: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub optional_operators: Vec<String>,
}

wire_enum! {
    /// Values of `OperatorStatus`.
    pub enum OperatorStatus {
        Failed = "failed",
        Progressing = "progressing",
        Available = "available",
    }
}

wire_enum! {
    /// Values of `OperatorType`.
    pub enum OperatorType {
        Builtin = "builtin",
        Olm = "olm",
    }
}
