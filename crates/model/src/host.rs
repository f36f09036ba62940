//! Hosts: the record, registration, changes by the user, installation progress.
//!
//! Source: the installer API description (wire names, presence rules).

pub(crate) mod values;

use serde::{Deserialize, Serialize};

use crate::LargeText;
use crate::expected_hosts::{HostExpectation, IdentityChange};
use crate::ids::{ClusterId, HostId, InfraEnvId};
use crate::logs::LogsState;
use crate::time::{DateTime, GoTime};
use crate::wire::{is_false, is_zero, null_as_default};

pub use values::{
    CertificateVerification, DiskRole, HostKind, HostRole, HostStage, HostStatus, MediaStatus,
};

/// Names that every machine has.
/// Source: assisted-service, internal/host/hostutil/host_utils.go, ForbiddenHostnames.
pub const FORBIDDEN_HOSTNAMES: [&str; 6] = [
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
];

/// `host` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    pub kind: HostKind,
    pub id: HostId,
    pub href: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    pub infra_env_id: InfraEnvId,
    pub status: HostStatus,
    pub status_info: String,
    #[serde(skip_serializing_if = "LargeText::is_empty")]
    pub validations_info: LargeText,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logs_info: Option<LogsState>,
    pub status_updated_at: DateTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<HostProgressInfo>,
    pub stage_started_at: DateTime,
    pub stage_updated_at: DateTime,
    #[serde(deserialize_with = "null_as_default")]
    pub progress_stages: Vec<HostStage>,
    #[serde(skip_serializing_if = "LargeText::is_empty")]
    pub connectivity: LargeText,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_vip_connectivity: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tang_connectivity: String,
    #[serde(skip_serializing_if = "LargeText::is_empty")]
    pub inventory: LargeText,
    /// Of this API alone: the reason why the last inventory that the agent sent could not be read; absent otherwise.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub inventory_error: String,
    /// Of this API alone: the host failed, and `v2ResetHost` retries it while its cluster is installed; absent otherwise.
    #[serde(skip_serializing_if = "is_false")]
    pub can_retry: bool,
    #[serde(skip_serializing_if = "LargeText::is_empty")]
    pub free_addresses: LargeText,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ntp_sources: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disks_info: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<HostRole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_role: Option<HostRole>,
    #[serde(skip_serializing_if = "is_false")]
    pub bootstrap: bool,
    pub logs_collected_at: DateTime,
    pub logs_started_at: DateTime,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installer_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installation_disk_path: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installation_disk_id: String,
    pub updated_at: GoTime,
    pub created_at: GoTime,
    pub checked_in_at: DateTime,
    #[serde(skip_serializing_if = "is_false")]
    pub connection_timed_out: bool,
    pub registered_at: DateTime,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub discovery_agent_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub requested_hostname: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_status: Option<MediaStatus>,
    pub deleted_at: Option<GoTime>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ignition_config_overrides: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub installer_args: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub timestamp: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub machine_config_pool_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub images_status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub domain_name_resolutions: String,
    #[serde(skip_serializing_if = "is_false")]
    pub ignition_endpoint_token_set: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node_labels: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub disks_to_be_formatted: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skip_formatting_disks: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fencing_credentials: String,
    /// Of this API alone: absent, unless the infra-env has a list of expected hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expectation: Option<HostExpectation>,
    /// Of this API alone: absent, unless another machine used the host's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_change: Option<IdentityChange>,
}

/// `host-create-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostCreateParams {
    pub host_id: HostId,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub discovery_agent_version: String,
}

/// `host-update-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostUpdateParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_role: Option<HostRole>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks_selected_config: Option<Vec<DiskConfigParams>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disks_skip_formatting: Option<Vec<DiskSkipFormattingParams>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_config_pool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint_token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignition_endpoint_http_headers: Option<Vec<IgnitionEndpointHttpHeadersParams>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_labels: Option<Vec<NodeLabelParams>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fencing_credentials: Option<FencingCredentialsParams>,
}

/// `host-progress` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostProgress {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<HostStage>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub progress_info: String,
}

/// `host-progress-info` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostProgressInfo {
    #[serde(skip_serializing_if = "is_zero")]
    pub installation_percentage: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_stage: Option<HostStage>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub progress_info: String,
    pub stage_started_at: DateTime,
    pub stage_updated_at: DateTime,
    #[serde(skip_serializing_if = "is_false")]
    pub stage_timed_out: bool,
}

/// `disk-config-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskConfigParams {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<DiskRole>,
}

/// `disk-skip-formatting-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSkipFormattingParams {
    pub disk_id: String,
    pub skip_formatting: bool,
}

/// `node-label-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeLabelParams {
    pub key: String,
    pub value: String,
}

/// `ignition-endpoint-http-headers-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IgnitionEndpointHttpHeadersParams {
    pub key: String,
    pub value: String,
}

/// `fencing-credentials-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FencingCredentialsParams {
    pub address: String,
    pub username: String,
    pub password: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_verification: Option<CertificateVerification>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// `bind-host-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindHostParams {
    pub cluster_id: ClusterId,
}

/// `host-ignition-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostIgnitionParams {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub config: String,
}

/// `installer-args-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstallerArgsParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
}
