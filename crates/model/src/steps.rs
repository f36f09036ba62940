//! The agent protocol: instructions, their arguments and their replies.
//!
//! Source: the installer API description (wire names, presence rules).

use serde::{Deserialize, Serialize};

use crate::cluster::HighAvailabilityMode;
use crate::host::HostRole;
use crate::ids::{ClusterId, HostId, InfraEnvId};
use crate::network::{Proxy, VipVerification};
use crate::wire::{is_false, is_zero, is_zero_f64, null_as_default, null_when_empty, wire_enum};

/// `steps` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steps {
    #[serde(skip_serializing_if = "is_zero")]
    pub next_instruction_seconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_step_action: Option<PostStepAction>,
    #[serde(
        deserialize_with = "null_as_default",
        serialize_with = "null_when_empty"
    )]
    pub instructions: Vec<AgentStep>,
}

/// `step` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentStep {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_type: Option<StepType>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step_id: String,
    #[serde(deserialize_with = "null_as_default")]
    pub args: Vec<String>,
}

/// `step-reply` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepReply {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_type: Option<StepType>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub step_id: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub exit_code: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// `next_step_cmd_request` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NextStepCmdRequest {
    pub infra_env_id: InfraEnvId,
    pub host_id: HostId,
    pub agent_version: String,
}

/// `connectivity-check-host` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectivityCheckHost {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<HostId>,
    #[serde(deserialize_with = "null_as_default")]
    pub nics: Vec<ConnectivityCheckNic>,
}

/// `connectivity-check-nic` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectivityCheckNic {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac: String,
    #[serde(deserialize_with = "null_as_default")]
    pub ip_addresses: Vec<String>,
}

/// `connectivity-report` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectivityReport {
    #[serde(deserialize_with = "null_as_default")]
    pub remote_hosts: Vec<ConnectivityRemoteHost>,
}

/// `connectivity-remote-host` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectivityRemoteHost {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<HostId>,
    #[serde(
        deserialize_with = "null_as_default",
        serialize_with = "null_when_empty"
    )]
    pub l2_connectivity: Vec<L2Connectivity>,
    #[serde(
        deserialize_with = "null_as_default",
        serialize_with = "null_when_empty"
    )]
    pub l3_connectivity: Vec<L3Connectivity>,
    #[serde(
        deserialize_with = "null_as_default",
        serialize_with = "null_when_empty"
    )]
    pub mtu_report: Vec<MtuReport>,
}

/// `l2-connectivity` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct L2Connectivity {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outgoing_nic: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outgoing_ip_address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_ip_address: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_mac: String,
    #[serde(skip_serializing_if = "is_false")]
    pub successful: bool,
}

/// `l3-connectivity` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct L3Connectivity {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outgoing_nic: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_ip_address: String,
    #[serde(skip_serializing_if = "is_false")]
    pub successful: bool,
    #[serde(skip_serializing_if = "is_zero_f64")]
    pub average_rtt_ms: f64,
    #[serde(skip_serializing_if = "is_zero_f64")]
    pub packet_loss_percentage: f64,
}

/// `mtu-report` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MtuReport {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub outgoing_nic: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remote_ip_address: String,
    #[serde(skip_serializing_if = "is_false")]
    pub mtu_successful: bool,
}

/// `free_network_addresses` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FreeNetworkAddresses {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub network: String,
    #[serde(deserialize_with = "null_as_default")]
    pub free_addresses: Vec<String>,
}

/// `dhcp_allocation_request` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DhcpAllocationRequest {
    pub interface: String,
    pub api_vip_mac: String,
    pub ingress_vip_mac: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_vip_lease: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ingress_vip_lease: String,
}

/// `dhcp_allocation_response` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DhcpAllocationResponse {
    pub api_vip_address: String,
    pub ingress_vip_address: String,
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub api_vip_lease: String,
    #[serde(
        deserialize_with = "null_as_default",
        skip_serializing_if = "String::is_empty"
    )]
    pub ingress_vip_lease: String,
}

/// `ntp_synchronization_request` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NtpSynchronizationRequest {
    pub ntp_source: String,
}

/// `ntp_synchronization_response` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NtpSynchronizationResponse {
    #[serde(deserialize_with = "null_as_default")]
    pub ntp_sources: Vec<NtpSource>,
}

/// `ntp_source` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NtpSource {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_state: Option<SourceState>,
}

/// Part of `domain_resolution_request`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainResolutionRequestDomainsItem {
    pub domain_name: String,
}

/// `domain_resolution_request` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainResolutionRequest {
    #[serde(deserialize_with = "null_as_default")]
    pub domains: Vec<DomainResolutionRequestDomainsItem>,
}

/// Part of `domain_resolution_response`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainResolutionResponseResolutionsItem {
    pub domain_name: String,
    #[serde(deserialize_with = "null_as_default")]
    pub ipv4_addresses: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub ipv6_addresses: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    pub cnames: Vec<String>,
}

/// `domain_resolution_response` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainResolutionResponse {
    #[serde(deserialize_with = "null_as_default")]
    pub resolutions: Vec<DomainResolutionResponseResolutionsItem>,
}

/// `verify_vip` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifyVip {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vip: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_type: Option<VipType>,
}

/// `verified_vip` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct VerifiedVip {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vip: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vip_type: Option<VipType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<VipVerification>,
}

/// `tang_connectivity_request` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TangConnectivityRequest {
    pub tang_servers: String,
}

/// Part of `tang_connectivity_response`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TangServerResponse {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tang_url: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub payload: String,
    #[serde(deserialize_with = "null_as_default")]
    pub signatures: Vec<TangSignature>,
}

/// Part of `tang_connectivity_response`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TangSignature {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub protected: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub signature: String,
}

/// `tang_connectivity_response` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TangConnectivityResponse {
    #[serde(skip_serializing_if = "is_false")]
    pub is_success: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub tang_server_response: Vec<TangServerResponse>,
}

/// `api_vip_connectivity_request` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiVipConnectivityRequest {
    pub url: String,
    #[serde(skip_serializing_if = "is_false")]
    pub verify_cidr: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint_token: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub request_headers: Vec<ApiVipConnectivityAdditionalRequestHeader>,
}

/// `api_vip_connectivity_additional_request_header` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiVipConnectivityAdditionalRequestHeader {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// `api_vip_connectivity_response` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApiVipConnectivityResponse {
    #[serde(skip_serializing_if = "is_false")]
    pub is_success: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub download_error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignition: String,
}

/// `disk_speed_check_request` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskSpeedCheckRequest {
    pub path: String,
}

/// `disk_speed_check_response` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskSpeedCheckResponse {
    #[serde(skip_serializing_if = "is_zero")]
    pub io_sync_duration: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
}

/// `container_image_availability_request` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerImageAvailabilityRequest {
    #[serde(skip_serializing_if = "is_zero")]
    pub timeout: i64,
    #[serde(deserialize_with = "null_as_default")]
    pub images: Vec<String>,
}

/// `container_image_availability_response` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerImageAvailabilityResponse {
    #[serde(deserialize_with = "null_as_default")]
    pub images: Vec<ContainerImageAvailability>,
}

/// `container_image_availability` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerImageAvailability {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "is_zero_f64")]
    pub size_bytes: f64,
    #[serde(skip_serializing_if = "is_zero_f64")]
    pub time: f64,
    #[serde(skip_serializing_if = "is_zero_f64")]
    pub download_rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<ContainerImageAvailabilityResult>,
}

/// `install_cmd_request` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallCmdRequest {
    pub cluster_id: ClusterId,
    pub infra_env_id: InfraEnvId,
    pub host_id: HostId,
    pub role: HostRole,
    pub boot_device: String,
    pub controller_image: String,
    pub installer_image: String,
    /// For agents and installers before 4.19, which do not know `control_plane_count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high_availability_mode: Option<HighAvailabilityMode>,
    #[serde(skip_serializing_if = "is_zero")]
    pub control_plane_count: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_cvo: Option<bool>,
    #[serde(deserialize_with = "null_as_default")]
    pub disks_to_format: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub must_gather_image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mco_image: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub openshift_version: String,
    #[serde(
        deserialize_with = "null_as_default",
        serialize_with = "null_when_empty"
    )]
    pub service_ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installer_args: String,
    #[serde(skip_serializing_if = "is_false")]
    pub skip_installation_disk_cleanup: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub enable_skip_mco_reboot: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub notify_num_reboots: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub coreos_image: String,
}

/// `upgrade_agent_response` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UpgradeAgentResponse {
    pub agent_image: String,
    /// `success`, `failure`, or empty while another upgrade runs.
    pub result: String,
}

/// `logs_gather_cmd_request` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogsGatherCmdRequest {
    pub cluster_id: ClusterId,
    pub infra_env_id: InfraEnvId,
    pub host_id: HostId,
    pub bootstrap: bool,
    pub installer_gather: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub master_ips: Vec<String>,
}

wire_enum! {
    /// Values of `PostStepAction`.
    pub enum PostStepAction {
        Exit = "exit",
        Continue = "continue",
    }
}

wire_enum! {
    /// Values of `StepType`.
    pub enum StepType {
        ConnectivityCheck = "connectivity-check",
        Execute = "execute",
        Inventory = "inventory",
        Install = "install",
        FreeNetworkAddresses = "free-network-addresses",
        DhcpLeaseAllocate = "dhcp-lease-allocate",
        ApiVipConnectivityCheck = "api-vip-connectivity-check",
        TangConnectivityCheck = "tang-connectivity-check",
        NtpSynchronizer = "ntp-synchronizer",
        InstallationDiskSpeedCheck = "installation-disk-speed-check",
        ContainerImageAvailability = "container-image-availability",
        DomainResolution = "domain-resolution",
        StopInstallation = "stop-installation",
        LogsGather = "logs-gather",
        NextStepRunner = "next-step-runner",
        UpgradeAgent = "upgrade-agent",
        DownloadBootArtifacts = "download-boot-artifacts",
        RebootForReclaim = "reboot-for-reclaim",
        VerifyVips = "verify-vips",
    }
}

wire_enum! {
    /// Values of `SourceState`.
    pub enum SourceState {
        Synced = "synced",
        Combined = "combined",
        NotCombined = "not_combined",
        Error = "error",
        Variable = "variable",
        Unreachable = "unreachable",
    }
}

wire_enum! {
    /// Values of `VipType`.
    pub enum VipType {
        Api = "api",
        Ingress = "ingress",
    }
}

wire_enum! {
    /// Values of `ContainerImageAvailabilityResult`.
    pub enum ContainerImageAvailabilityResult {
        Success = "success",
        Failure = "failure",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_instruction_is_null() {
        let steps = Steps {
            next_instruction_seconds: 60,
            post_step_action: Some(PostStepAction::Continue),
            instructions: Vec::new(),
        };
        assert_eq!(
            serde_json::to_string(&steps).unwrap(),
            r#"{"next_instruction_seconds":60,"post_step_action":"continue","instructions":null}"#
        );
        assert_eq!(
            serde_json::from_value::<Steps>(serde_json::json!(steps)).unwrap(),
            steps
        );
    }

    #[test]
    fn probes_that_were_not_made_are_null() {
        let host = "00000000-0000-4000-8000-000000000001";
        let sent = format!(
            r#"{{"extra":1,"remote_hosts":[{{"host_id":"{host}","l2_connectivity":null,"l3_connectivity":[]}}]}}"#
        );
        let report: ConnectivityReport = serde_json::from_str(&sent).unwrap();
        assert_eq!(
            serde_json::to_string(&report).unwrap(),
            format!(
                r#"{{"remote_hosts":[{{"host_id":"{host}","l2_connectivity":null,"l3_connectivity":null,"mtu_report":null}}]}}"#
            )
        );
    }
}
