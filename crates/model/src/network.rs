//! Networks, virtual addresses and proxies, as clusters and infra-envs carry them.
//!
//! Source: the installer API description (wire names, presence rules).

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::ClusterId;
use crate::wire::{is_zero, null_as_default, wire_enum};

/// `api_vip` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApiVip {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<VipVerification>,
}

/// `ingress_vip` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IngressVip {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<VipVerification>,
}

/// `cluster_network` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterNetwork {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cidr: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub host_prefix: i64,
}

/// `service_network` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceNetwork {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cidr: String,
}

/// `machine_network` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MachineNetwork {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cidr: String,
}

/// `host_network` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostNetwork {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cidr: String,
    #[serde(deserialize_with = "null_as_default")]
    pub host_ids: Vec<Uuid>,
}

/// `proxy` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Proxy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
}

wire_enum! {
    /// Values of `NetworkType`.
    pub enum NetworkType {
        OpenShiftSDN = "OpenShiftSDN",
        OVNKubernetes = "OVNKubernetes",
        CiscoACI = "CiscoACI",
        Cilium = "Cilium",
        Calico = "Calico",
        None = "None",
    }
}

wire_enum! {
    /// Values of `VipVerification`.
    pub enum VipVerification {
        Unverified = "unverified",
        Failed = "failed",
        Succeeded = "succeeded",
    }
}
