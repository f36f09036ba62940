//! Infra-envs: the inputs of a discovery image.
//!
//! Source: the installer API description (wire names, presence rules).

use serde::{Deserialize, Serialize};

use crate::ids::{ClusterId, InfraEnvId};
use crate::network::Proxy;
use crate::time::{DateTime, GoTime};
use crate::versions::CpuArchitecture;
use crate::wire::{is_false, null_as_default, wire_enum};

/// `infra-env` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InfraEnv {
    pub kind: InfraEnvKind,
    pub id: InfraEnvId,
    pub href: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub org_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email_domain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub additional_ntp_sources: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ssh_authorized_key: String,
    #[serde(skip_serializing_if = "is_false")]
    pub pull_secret_set: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub static_network_config: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
    pub r#type: ImageType,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignition_config_override: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub download_url: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generator_version: String,
    pub updated_at: GoTime,
    pub created_at: GoTime,
    pub expires_at: DateTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_architecture: Option<CpuArchitecture>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub additional_trust_bundle: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_discovery_delay_seconds: Option<i64>,
    /// The discovery image has the agent inside: hosts are discovered without its container image. An addition to the
    /// peer's API.
    #[serde(skip_serializing_if = "is_false")]
    pub embedded_agent: bool,
    /// The discovery image is of this stream of the release's operating systems, not of the default one. An addition to the
    /// peer's API.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub os_stream: String,
}

/// `infra-env-create-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InfraEnvCreateParams {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_ntp_sources: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_authorized_key: Option<String>,
    pub pull_secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub static_network_config: Option<Vec<HostStaticNetworkConfig>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_type: Option<ImageType>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ignition_config_override: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_architecture: Option<CpuArchitecture>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<Vec<KernelArgument>>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub additional_trust_bundle: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_discovery_delay_seconds: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedded_agent: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_stream: Option<String>,
}

/// `infra-env-update-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InfraEnvUpdateParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_ntp_sources: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_authorized_key: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pull_secret: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub static_network_config: Option<Vec<HostStaticNetworkConfig>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rendezvous_ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_type: Option<ImageType>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignition_config_override: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_arguments: Option<Vec<KernelArgument>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_trust_bundle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_discovery_delay_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded_agent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_stream: Option<String>,
}

/// Part of `host_static_network_config`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MacInterfaceMapItem {
    pub mac_address: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub logical_nic_name: String,
}

/// `host_static_network_config` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostStaticNetworkConfig {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network_yaml: String,
    #[serde(deserialize_with = "null_as_default")]
    pub mac_interface_map: Vec<MacInterfaceMapItem>,
}

/// `kernel_argument` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KernelArgument {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<KernelArgumentOperation>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// `presigned-url` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PresignedUrl {
    pub url: String,
    pub expires_at: DateTime,
}

wire_enum! {
    /// Values of `InfraEnvKind`.
    pub enum InfraEnvKind {
        InfraEnv = "InfraEnv",
    }
}

wire_enum! {
    /// Values of `KernelArgumentOperation`.
    pub enum KernelArgumentOperation {
        Append = "append",
        Replace = "replace",
        Delete = "delete",
    }
}

wire_enum! {
    /// Values of `ImageType`.
    pub enum ImageType {
        FullIso = "full-iso",
        MinimalIso = "minimal-iso",
        DisconnectedIso = "disconnected-iso",
    }
}
