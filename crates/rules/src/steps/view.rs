//! Inputs of step arguments.

use std::collections::BTreeSet;

use model::cluster::{Cluster, ClusterKind};
use model::host::{HostKind, IgnitionEndpointHttpHeadersParams};
use model::infra_env::InfraEnv;
use model::release_payload::ComponentImages;
use model::steps::StepType;
use model::time::Timestamp;

use crate::HostState;
use crate::InstallationPolicy;
use crate::Snapshot;
use crate::hardware::disks::installation_disk;
use crate::urls::BootArtifacts;
use crate::versions::{agent_version, at_least};

/// Settings of the operator that steps depend on; built once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `DISABLED_STEPS`.
    pub disabled: BTreeSet<StepType>,
    /// `CHECK_CLUSTER_VERSION`.
    pub check_cluster_version: bool,
    /// `ENABLE_SKIP_MCO_REBOOT`.
    pub skip_mco_reboot: bool,
    /// `NOTIFY_NUM_REBOOTS`.
    pub notify_num_reboots: bool,
    /// `SERVICE_IPS`.
    pub service_ips: Vec<String>,
    /// `AGENT_INVENTORY_MAX_SIZE`. Units: bytes.
    pub inventory_max_size: Option<u64>,
    /// `AGENT_INVENTORY_DISK_MIN_SIZE`. Units: bytes.
    pub inventory_disk_min_size: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            disabled: BTreeSet::new(),
            check_cluster_version: false,
            skip_mco_reboot: true,
            notify_num_reboots: false,
            service_ips: Vec::new(),
            inventory_max_size: None,
            inventory_disk_min_size: None,
        }
    }
}

/// Images of the release that a cluster installs; unknown ones are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReleaseImages {
    /// The release image itself.
    pub release: String,
    /// `machine-config-operator` of the release.
    pub machine_config_operator: String,
    /// `must-gather` of the release: a reference, or a JSON map by operator.
    pub must_gather: String,
    /// The operating system of the release, for hosts that boot from a persistent disk.
    pub operating_system: String,
}

/// Credentials of a day-2 host for its ignition endpoint; secret, so not in the records.
#[derive(Debug, Clone, Default)]
pub struct IgnitionAccess {
    /// Bearer token.
    pub token: Option<String>,
    /// Headers to send along.
    pub headers: Vec<IgnitionEndpointHttpHeadersParams>,
    /// Certificate authorities of the endpoint: base64 of a PEM bundle.
    pub certificates: Option<String>,
}

impl IgnitionAccess {
    /// The bearer token, when there is one.
    pub fn bearer(&self) -> Option<&str> {
        self.token.as_deref().filter(|token| !token.is_empty())
    }

    /// Name and value of every header of the request, the token's first.
    pub fn request_headers(&self) -> impl Iterator<Item = (String, String)> {
        let token = self
            .bearer()
            .map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
        let others = self.headers.iter();
        let others = others.map(|header| (header.key.clone(), header.value.clone()));
        token.into_iter().chain(others)
    }
}

/// Inputs of instructions besides the host and its cluster.
#[derive(Debug, Clone, Copy)]
pub struct StepContext<'a> {
    /// Switches of the operator.
    pub policy: &'a InstallationPolicy,
    /// Settings of the operator.
    pub settings: &'a Settings,
    /// The infra-env that the host registered to.
    pub infra_env: &'a InfraEnv,
    /// Images that the host runs.
    pub components: &'a ComponentImages,
    /// Images of the cluster's release.
    pub release: &'a ReleaseImages,
    /// Access to the ignition endpoint.
    pub ignition: &'a IgnitionAccess,
    /// Boot artifacts of a reclaimed host.
    pub boot_artifacts: Option<&'a BootArtifacts>,
}

/// All inputs of an argument.
#[derive(Clone, Copy)]
pub(super) struct StepView<'a> {
    pub(super) snapshot: Option<&'a Snapshot>,
    pub(super) host: &'a HostState,
    pub(super) ctx: &'a StepContext<'a>,
    pub(super) now: Timestamp,
}

impl<'a> StepView<'a> {
    pub(super) fn cluster(&self) -> Option<&'a Cluster> {
        self.snapshot.map(|snapshot| &snapshot.cluster)
    }

    /// The release whose agent and installer the host runs: that of its cluster or, if that has no version, of its
    /// infra-env. Empty when unknown.
    fn release_version(&self) -> &'a str {
        let cluster = self.cluster();
        let own = cluster.map(|cluster| cluster.openshift_version.as_str());
        own.filter(|version| !version.is_empty())
            .unwrap_or(&self.ctx.infra_env.openshift_version)
    }

    /// Whether the installer of the host is that of release `major.minor` or later; one of an unknown release is.
    pub(super) fn has_installer_of(&self, major: u64, minor: u64) -> bool {
        let version = self.release_version();
        version.is_empty() || at_least(version, major, minor)
    }

    /// Whether the agent of the host has the features of release `major.minor`. An agent without cluster, or inside
    /// the discovery image, has all.
    pub(super) fn has_agent_of(&self, major: u64, minor: u64) -> bool {
        let agent = &self.host.record.discovery_agent_version;
        self.snapshot.is_none()
            || agent_version::has_features_of(agent, self.release_version(), (major, minor))
    }

    /// Whether the host joins an installed cluster.
    pub(super) fn is_adding_host(&self) -> bool {
        self.host.record.kind == HostKind::AddToExistingClusterHost
            || self
                .cluster()
                .is_some_and(|cluster| cluster.kind == ClusterKind::AddHostsCluster)
    }

    /// The other hosts of the cluster.
    pub(super) fn others(&self) -> impl Iterator<Item = &'a HostState> {
        let own = self.host.record.id;
        self.snapshot
            .iter()
            .flat_map(|snapshot| &snapshot.hosts)
            .filter(move |host| host.record.id != own)
    }
}

/// Most stable path of the installation disk; empty without a disk.
pub(crate) fn installation_path(host: &HostState) -> String {
    let record = &host.record;
    if record.installation_disk_id.starts_with("/dev/") {
        return record.installation_disk_id.clone();
    }
    match installation_disk(host) {
        Some(disk) => [&disk.by_id, &disk.by_path, &disk.path]
            .into_iter()
            .find(|path| !path.is_empty())
            .cloned()
            .unwrap_or_default(),
        None => record.installation_disk_path.clone(),
    }
}

/// FNV-1a, which is the same in every build.
pub(super) struct Fnv(u32);

impl Fnv {
    pub(super) const fn new() -> Self {
        Self(0x811c_9dc5)
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }

    pub(super) const fn finish(&self) -> u32 {
        self.0
    }
}
