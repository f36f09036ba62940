//! Clusters: the record, its parameters and its parts.
//!
//! Source: the installer API description (wire names, presence rules).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::host::Host;
use crate::ids::ClusterId;
use crate::infra_env::ImageType;
use crate::logs::LogsState;
use crate::network::{
    ApiVip, ClusterNetwork, HostNetwork, IngressVip, MachineNetwork, NetworkType, ServiceNetwork,
};
use crate::operators::{BundleCreateParams, MonitoredOperator, OperatorCreateParams};
use crate::time::{DateTime, GoTime};
use crate::versions::CpuArchitecture;
use crate::wire::{is_false, is_zero, null_as_default, wire_enum};

/// `cluster` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cluster {
    pub kind: ClusterKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_availability_mode: Option<HighAvailabilityMode>,
    pub id: ClusterId,
    pub href: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub org_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email_domain: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ocp_release_image: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openshift_cluster_id: Option<Uuid>,
    pub image_info: ImageInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<ClusterPlatform>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub base_dns_domain: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_network_cidr: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub cluster_network_host_prefix: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_network_cidr: String,
    #[serde(deserialize_with = "null_as_default")]
    pub api_vips: Vec<ApiVip>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vip_dns_name: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine_network_cidr: String,
    #[serde(deserialize_with = "null_as_default")]
    pub ingress_vips: Vec<IngressVip>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ssh_public_key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub http_proxy: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub https_proxy: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub no_proxy: String,
    pub status: ClusterStatus,
    pub status_info: String,
    pub status_updated_at: DateTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<ClusterProgressInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_encryption: Option<DiskEncryption>,
    #[serde(deserialize_with = "null_as_default")]
    pub hosts: Vec<Host>,
    #[serde(skip_serializing_if = "is_zero")]
    pub ready_host_count: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub enabled_host_count: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub total_host_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedulable_masters: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedulable_masters_forced_true: Option<bool>,
    pub updated_at: GoTime,
    pub created_at: GoTime,
    pub install_started_at: DateTime,
    pub install_completed_at: DateTime,
    #[serde(deserialize_with = "null_as_default")]
    pub host_networks: Vec<HostNetwork>,
    #[serde(skip_serializing_if = "is_false")]
    pub pull_secret_set: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_dhcp_allocation: Option<bool>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub validations_info: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs_info: Option<LogsState>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub install_config_overrides: String,
    pub controller_logs_collected_at: DateTime,
    pub controller_logs_started_at: DateTime,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub connectivity_majority_groups: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ip_collisions: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignored_host_validations: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignored_cluster_validations: String,
    pub deleted_at: Option<GoTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_managed_networking: Option<bool>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub additional_ntp_source: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    #[serde(deserialize_with = "null_as_default")]
    pub monitored_operators: Vec<MonitoredOperator>,
    #[serde(deserialize_with = "null_as_default")]
    pub operator_bundles: Vec<BundleCreateParams>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ams_subscription_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperthreading: Option<Hyperthreading>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub feature_usage: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_type: Option<NetworkType>,
    #[serde(deserialize_with = "null_as_default")]
    pub cluster_networks: Vec<ClusterNetwork>,
    #[serde(deserialize_with = "null_as_default")]
    pub service_networks: Vec<ServiceNetwork>,
    #[serde(deserialize_with = "null_as_default")]
    pub machine_networks: Vec<MachineNetwork>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_architecture: Option<CpuArchitecture>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<bool>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tags: String,
    #[serde(rename = "last-installation-preparation")]
    pub last_installation_preparation: LastInstallationPreparation,
    #[serde(skip_serializing_if = "is_false")]
    pub org_soft_timeouts_enabled: bool,
    #[serde(skip_serializing_if = "is_zero")]
    pub control_plane_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    /// Its nodes are of this stream of the release's operating systems, not of the default one. An addition to the peer's
    /// API.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub os_stream: String,
}

impl Cluster {
    /// The type of its platform; bare metal by default.
    pub fn platform_type(&self) -> PlatformType {
        self.platform
            .as_ref()
            .map_or(PlatformType::Baremetal, |platform| platform.r#type)
    }
}

/// `cluster-create-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterCreateParams {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_availability_mode: Option<HighAvailabilityMode>,
    pub openshift_version: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ocp_release_image: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base_dns_domain: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network_cidr: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_network_host_prefix: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_network_cidr: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_vips: Option<Vec<ApiVip>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_vips: Option<Vec<IngressVip>>,
    pub pull_secret: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ssh_public_key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vip_dhcp_allocation: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_managed_networking: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_ntp_source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub olm_operators: Option<Vec<OperatorCreateParams>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_bundles: Option<Vec<BundleCreateParams>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hyperthreading: Option<Hyperthreading>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_type: Option<NetworkType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedulable_masters: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_networks: Option<Vec<ServiceNetwork>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_networks: Option<Vec<MachineNetwork>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<ClusterPlatform>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_architecture: Option<CpuArchitecture>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_encryption: Option<DiskEncryption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane_count: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_stream: Option<String>,
}

/// `import-cluster-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportClusterParams {
    pub name: String,
    pub api_vip_dnsname: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    pub openshift_cluster_id: Uuid,
}

/// `disconnected-cluster-create-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisconnectedClusterCreateParams {
    pub name: String,
    pub openshift_version: String,
}

/// `v2-cluster-update-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterUpdateParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_dns_domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_cidr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<ClusterPlatform>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_network_host_prefix: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_network_cidr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vips: Option<Vec<ApiVip>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress_vips: Option<Vec<IngressVip>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_vip_dns_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_network_cidr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_public_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_dhcp_allocation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_managed_networking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_ntp_source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntp_sources: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub olm_operators: Option<Vec<OperatorCreateParams>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_bundles: Option<Vec<BundleCreateParams>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperthreading: Option<Hyperthreading>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_type: Option<NetworkType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedulable_masters: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_networks: Option<Vec<ClusterNetwork>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_networks: Option<Vec<ServiceNetwork>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_networks: Option<Vec<MachineNetwork>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_encryption: Option<DiskEncryption>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint: Option<IgnitionEndpoint>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_plane_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_balancer: Option<LoadBalancer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_stream: Option<String>,
}

/// `cluster-progress-info` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterProgressInfo {
    #[serde(skip_serializing_if = "is_zero")]
    pub total_percentage: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub preparing_for_installation_stage_percentage: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub installing_stage_percentage: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub finalizing_stage_percentage: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizing_stage: Option<FinalizingStage>,
    pub finalizing_stage_started_at: DateTime,
    #[serde(skip_serializing_if = "is_false")]
    pub finalizing_stage_timed_out: bool,
}

/// `cluster-finalizing-progress` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterFinalizingProgress {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizing_stage: Option<FinalizingStage>,
}

/// `image_info` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ssh_public_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub download_url: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generator_version: String,
    pub created_at: GoTime,
    pub expires_at: DateTime,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub static_network_config: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<ImageType>,
}

/// `completion-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompletionParams {
    pub is_success: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error_info: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<BTreeMap<String, serde_json::Value>>,
}

/// `last-installation-preparation` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastInstallationPreparation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PreparationStatus>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// `credentials` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterCredentials {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub password: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub console_url: String,
}

/// `cluster_default_config` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterDefaultConfig {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster_network_cidr: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub cluster_network_host_prefix: i64,
    #[serde(skip_serializing_if = "is_zero")]
    pub inactive_deletion_hours: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_network_cidr: String,
    pub ntp_source: String,
    #[serde(deserialize_with = "null_as_default")]
    pub cluster_networks_ipv4: Vec<ClusterNetwork>,
    #[serde(deserialize_with = "null_as_default")]
    pub cluster_networks_dualstack: Vec<ClusterNetwork>,
    #[serde(deserialize_with = "null_as_default")]
    pub service_networks_ipv4: Vec<ServiceNetwork>,
    #[serde(deserialize_with = "null_as_default")]
    pub service_networks_dualstack: Vec<ServiceNetwork>,
    #[serde(deserialize_with = "null_as_default")]
    pub forbidden_hostnames: Vec<String>,
}

/// `disk-encryption` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskEncryption {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_on: Option<DiskEncryptionTarget>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<DiskEncryptionMode>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tang_servers: String,
}

/// `ignition-endpoint` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IgnitionEndpoint {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
}

/// `load_balancer` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoadBalancer {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<LoadBalancerType>,
}

/// `platform` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterPlatform {
    pub r#type: PlatformType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<PlatformExternal>,
}

/// `platform_external` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlatformExternal {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_controller_manager: Option<CloudControllerManager>,
}

wire_enum! {
    /// Values of `ClusterKind`.
    pub enum ClusterKind {
        Cluster = "Cluster",
        AddHostsCluster = "AddHostsCluster",
        DisconnectedCluster = "DisconnectedCluster",
    }
}

wire_enum! {
    /// Values of `HighAvailabilityMode`.
    pub enum HighAvailabilityMode {
        Full = "Full",
        None = "None",
    }
}

wire_enum! {
    /// Values of `ClusterStatus`.
    pub enum ClusterStatus {
        Insufficient = "insufficient",
        Ready = "ready",
        Error = "error",
        PreparingForInstallation = "preparing-for-installation",
        PendingForInput = "pending-for-input",
        Installing = "installing",
        Finalizing = "finalizing",
        Installed = "installed",
        AddingHosts = "adding-hosts",
        Cancelled = "cancelled",
        InstallingPendingUserAction = "installing-pending-user-action",
        Unmonitored = "unmonitored",
    }
}

wire_enum! {
    /// Values of `Hyperthreading`.
    pub enum Hyperthreading {
        None = "none",
        Masters = "masters",
        Arbiters = "arbiters",
        Workers = "workers",
        MastersArbiters = "masters,arbiters",
        MastersWorkers = "masters,workers",
        ArbitersWorkers = "arbiters,workers",
        MastersArbitersWorkers = "masters,arbiters,workers",
        All = "all",
    }
}

wire_enum! {
    /// Values of `FinalizingStage`.
    pub enum FinalizingStage {
        WaitingForClusterOperators = "Waiting for cluster operators",
        AddingRouterCa = "Adding router ca",
        ApplyingOlmManifests = "Applying olm manifests",
        WaitingForOlmOperatorsCsvInitialization = "Waiting for olm operators csv initialization",
        WaitingForOlmOperatorsCsv = "Waiting for olm operators csv",
        WaitingForOLMOperatorSetupJobs = "Waiting for OLM operator setup jobs",
        Done = "Done",
    }
}

wire_enum! {
    /// Values of `PreparationStatus`.
    pub enum PreparationStatus {
        NotStarted = "not_started",
        Failed = "failed",
        Success = "success",
    }
}

wire_enum! {
    /// Values of `DiskEncryptionTarget`.
    pub enum DiskEncryptionTarget {
        None = "none",
        Masters = "masters",
        Arbiters = "arbiters",
        Workers = "workers",
        MastersArbiters = "masters,arbiters",
        MastersWorkers = "masters,workers",
        ArbitersWorkers = "arbiters,workers",
        MastersArbitersWorkers = "masters,arbiters,workers",
        All = "all",
    }
}

wire_enum! {
    /// Values of `DiskEncryptionMode`.
    pub enum DiskEncryptionMode {
        Tpmv2 = "tpmv2",
        Tang = "tang",
    }
}

wire_enum! {
    /// Values of `LoadBalancerType`.
    pub enum LoadBalancerType {
        ClusterManaged = "cluster-managed",
        UserManaged = "user-managed",
    }
}

wire_enum! {
    /// Values of `CloudControllerManager`.
    pub enum CloudControllerManager {
        Unset = "",
        External = "External",
    }
}

wire_enum! {
    /// Values of `PlatformType`.
    pub enum PlatformType {
        Baremetal = "baremetal",
        Nutanix = "nutanix",
        Vsphere = "vsphere",
        None = "none",
        External = "external",
    }
}
