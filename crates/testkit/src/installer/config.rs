//! install-config.yaml, every member known or refused.
//!
//! Source: `openshift-install explain installconfig`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The whole file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct InstallConfig {
    pub(super) api_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<String>,
    pub(super) metadata: ConfigMetadata,
    pub(super) base_domain: String,
    pub(super) platform: ConfigPlatform,
    pub(super) pull_secret: String,
    #[serde(default)]
    pub(super) ssh_key: String,
    pub(super) control_plane: MachinePool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) compute: Vec<MachinePool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) arbiter: Option<MachinePool>,
    pub(super) networking: Networking,
    #[serde(default)]
    pub(super) fips: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) proxy: Option<ConfigProxy>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) image_content_sources: Vec<ConfigMirrors>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) image_digest_sources: Vec<ConfigMirrors>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) additional_trust_bundle: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) additional_trust_bundle_policy: Option<TrustBundlePolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bootstrap_in_place: Option<BootstrapInPlace>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) capabilities: Option<Capabilities>,
    #[serde(
        default,
        rename = "cpuPartitioningMode",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) cpu_partitioning: Option<CpuPartitioning>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) feature_set: Option<FeatureSet>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) feature_gates: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) publish: Option<Publish>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) credentials_mode: Option<CredentialsMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) os_image_stream: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ConfigMetadata {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) creation_timestamp: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MachinePool {
    pub(super) name: String,
    pub(super) replicas: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) hyperthreading: Option<Hyperthreading>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) architecture: Option<Architecture>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) platform: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fencing: Option<Fencing>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fencing {
    pub(super) credentials: Vec<FencingCredential>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FencingCredential {
    #[serde(default)]
    pub(super) host_name: String,
    #[serde(default, alias = "MACAddress")]
    pub(super) mac_address: String,
    pub(super) address: String,
    pub(super) username: String,
    pub(super) password: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) certificate_verification: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Networking {
    #[serde(default)]
    pub(super) network_type: String,
    #[serde(default)]
    pub(super) cluster_network: Vec<ClusterNetwork>,
    #[serde(default)]
    pub(super) machine_network: Vec<MachineNetwork>,
    #[serde(default)]
    pub(super) service_network: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClusterNetwork {
    pub(super) cidr: String,
    pub(super) host_prefix: u8,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MachineNetwork {
    pub(super) cidr: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConfigProxy {
    #[serde(default, rename = "httpProxy")]
    pub(super) http: String,
    #[serde(default, rename = "httpsProxy")]
    pub(super) https: String,
    #[serde(default, rename = "noProxy")]
    pub(super) exceptions: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ConfigMirrors {
    pub(super) source: String,
    #[serde(default)]
    pub(super) mirrors: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source_policy: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BootstrapInPlace {
    pub(super) installation_disk: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Capabilities {
    #[serde(default)]
    pub(super) baseline_capability_set: String,
    #[serde(default)]
    pub(super) additional_enabled_capabilities: Vec<String>,
}

/// Exactly one member is present; `check` says so.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ConfigPlatform {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) baremetal: Option<Baremetal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) none: Option<Nothing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) external: Option<External>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) vsphere: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nutanix: Option<Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct External {
    #[serde(default, alias = "PlatformName")]
    pub(super) platform_name: String,
    #[serde(default, alias = "CloudControllerManager")]
    pub(super) cloud_controller_manager: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Baremetal {
    #[serde(rename = "apiVIPs")]
    pub(super) api_vips: Vec<String>,
    #[serde(rename = "ingressVIPs")]
    pub(super) ingress_vips: Vec<String>,
    #[serde(rename = "apiVIP", skip_serializing_if = "Option::is_none")]
    pub(super) api_vip: Option<String>,
    #[serde(rename = "ingressVIP", skip_serializing_if = "Option::is_none")]
    pub(super) ingress_vip: Option<String>,
    pub(super) hosts: Vec<BaremetalHost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provisioning_network: Option<ProvisioningNetwork>,
    #[serde(rename = "additionalNTPServers", skip_serializing_if = "Vec::is_empty")]
    pub(super) additional_ntp_servers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) load_balancer: Option<LoadBalancer>,
    #[serde(
        rename = "clusterProvisioningIP",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) cluster_provisioning_ip: Option<String>,
    #[serde(
        rename = "bootstrapProvisioningIP",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) bootstrap_provisioning_ip: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BaremetalHost {
    pub(super) name: String,
    #[serde(default)]
    pub(super) role: String,
    #[serde(rename = "bootMACAddress")]
    pub(super) boot_mac_address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) boot_mode: Option<BootMode>,
    #[serde(default)]
    pub(super) hardware_profile: String,
    #[serde(default)]
    pub(super) bmc: Bmc,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) root_device_hints: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) network_config: Option<Value>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Bmc {
    pub(super) address: String,
    pub(super) username: String,
    pub(super) password: String,
    #[serde(rename = "disableCertificateVerification")]
    pub(super) insecure: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct LoadBalancer {
    pub(super) r#type: LoadBalancerType,
}

macro_rules! choices {
    ($($name:ident { $($(#[$meta:meta])* $choice:ident),+ $(,)? })+) => {
        $(
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
            pub(super) enum $name { $($(#[$meta])* $choice),+ }
        )+
    };
}

choices! {
    Hyperthreading { Enabled, Disabled }
    ProvisioningNetwork { Managed, Unmanaged, Disabled }
    LoadBalancerType { OpenShiftManagedDefault, UserManaged }
    TrustBundlePolicy { Proxyonly, Always }
    CpuPartitioning { None, AllNodes }
    FeatureSet { Default, TechPreviewNoUpgrade, DevPreviewNoUpgrade, CustomNoUpgrade, LatencySensitive, #[serde(rename = "OKD")] Okd }
    Publish { External, Internal, Mixed }
    CredentialsMode { Mint, Passthrough, Manual }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Architecture {
    #[serde(rename = "amd64")]
    Amd64,
    #[serde(rename = "arm64")]
    Arm64,
    #[serde(rename = "ppc64le")]
    Ppc64le,
    #[serde(rename = "s390x")]
    S390x,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum BootMode {
    #[serde(rename = "UEFI")]
    Uefi,
    #[serde(rename = "UEFISecureBoot")]
    UefiSecureBoot,
    #[serde(rename = "legacy")]
    Legacy,
}
