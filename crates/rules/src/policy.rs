//! Settings of decisions: requirements, timeouts, switches.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::api_group_map::ApiGroupMap;
use model::hardware::VersionedHostRequirements;
use model::validations::{ClusterValidationId, HostValidationId};

/// Settings of decisions. The defaults are the specification's where it names one, else the peer's.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent switches, each one a setting"
)]
pub struct InstallationPolicy {
    /// `HW_VALIDATOR_REQUIREMENTS`; missing fields come from the built-in defaults.
    pub hardware: Vec<VersionedHostRequirements>,
    /// `DISABLED_HOST_VALIDATIONS`.
    pub disabled_host_validations: BTreeSet<HostValidationId>,
    /// `DISABLED_CLUSTER_VALIDATIONS`.
    pub disabled_cluster_validations: BTreeSet<ClusterValidationId>,
    /// `ENABLE_SINGLE_NODE_DNSMASQ`.
    pub single_node_dnsmasq: bool,
    /// `OPERATOR_CATALOG_SOURCES`: names of catalog sources in new clusters, by the platform's name.
    pub catalog_sources: BTreeMap<String, String>,
    /// `API_GROUP_MAP`.
    pub api_group_map: ApiGroupMap,
    /// Catalogs of the site that a cluster is installed with.
    pub catalogs: Vec<ClusterCatalog>,
    /// `DISK_ENCRYPTION_SUPPORT`.
    pub disk_encryption_support: bool,
    /// `IPV6_SUPPORT`.
    pub ipv6_support: bool,
    /// `ENABLE_SOFT_TIMEOUTS`: a stage that times out is reported and does not fail.
    pub soft_timeouts: bool,
    /// `ENABLE_UPGRADE_AGENT`.
    pub upgrade_agent: bool,
    /// `HOST_MAX_DISCONNECTION_TIME`.
    pub host_max_disconnection: Duration,
    /// `PREPARE_FOR_INSTALLATION_TIMEOUT`.
    pub prepare_timeout: Duration,
    /// `PREPARE_FOR_INSTALLATION_HOST_TIMEOUT`.
    pub prepare_host_timeout: Duration,
    /// `INSTALLATION_TIMEOUT`.
    pub installation_timeout: Duration,
    /// `FINALIZING_TIMEOUT`.
    pub finalizing_timeout: Duration,
    /// `HOST_INSTALLING_PENDING_USER_ACTION_TIMEOUT`.
    pub pending_user_action_timeout: Duration,
    /// `HOST_RETRY_TIMEOUT`: time for which a cluster waits for the retry of a failed host that it lacks.
    pub host_retry_timeout: Duration,
    /// `HOST_LOG_COLLECTION_TIMEOUT`.
    pub host_log_collection_timeout: Duration,
    /// `HOST_LOG_PENDING_TIMEOUT`.
    pub host_log_pending_timeout: Duration,
    /// `LOG_COLLECTION_TIMEOUT`.
    pub log_collection_timeout: Duration,
    /// `LOG_PENDING_TIMEOUT`.
    pub log_pending_timeout: Duration,
}

/// A catalog for new clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterCatalog {
    /// Name of its catalog source.
    pub name: String,
    /// `HOST/REPOSITORY:TAG`.
    pub image: String,
    /// Last component of the repository.
    pub repository: String,
    /// Mirrors of the repositories of which its operators name images by tag.
    pub tag_mirrors: BTreeMap<String, BTreeSet<String>>,
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

impl Default for InstallationPolicy {
    fn default() -> Self {
        Self {
            hardware: Vec::new(),
            disabled_host_validations: BTreeSet::new(),
            disabled_cluster_validations: BTreeSet::new(),
            single_node_dnsmasq: true,
            catalog_sources: BTreeMap::new(),
            api_group_map: ApiGroupMap::default(),
            catalogs: Vec::new(),
            disk_encryption_support: true,
            ipv6_support: false,
            soft_timeouts: false,
            upgrade_agent: true,
            host_max_disconnection: Duration::from_secs(3 * MINUTE),
            prepare_timeout: Duration::from_secs(10 * MINUTE),
            prepare_host_timeout: Duration::from_secs(8 * MINUTE),
            installation_timeout: Duration::from_secs(24 * HOUR),
            finalizing_timeout: Duration::from_secs(5 * HOUR),
            pending_user_action_timeout: Duration::from_secs(HOUR),
            host_retry_timeout: Duration::ZERO,
            host_log_collection_timeout: Duration::from_secs(10 * MINUTE),
            host_log_pending_timeout: Duration::from_secs(2 * MINUTE),
            log_collection_timeout: Duration::from_secs(HOUR),
            log_pending_timeout: Duration::from_secs(10 * MINUTE),
        }
    }
}
