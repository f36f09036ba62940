//! Inputs of checks: records with their parsed texts.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::cluster::Cluster;
use model::host::{HostKind, HostRole, HostStage, HostStatus};
use model::inventory::{Disk, Inventory};
use model::time::Timestamp;

use super::verdict::Verdict;
use crate::hardware::requirements::Requirements;
use crate::host::cluster_ignition::ClusterIgnition;
use crate::host::identity::serial_number;
use crate::host::progress;
use crate::host::{is_day2, is_fully_truncated};
use crate::network::connectivity::Groups;
use crate::network::networking;
use crate::policy::InstallationPolicy;
use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;
use crate::snapshot::host_texts::HostTexts;
use crate::snapshot::hosts::HostPositions;
use crate::snapshot::networks::NetworkSet;
use crate::snapshot::roles;

/// A cluster, with values computed once for all its hosts.
pub struct ClusterSubject<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) cluster: &'a Cluster,
    pub(crate) texts: &'a [HostTexts],
    pub(crate) policy: &'a InstallationPolicy,
    pub(crate) networks: NetworkSet,
    pub(crate) single_node: bool,
    pub(crate) user_managed: bool,
    pub(crate) user_load_balancer: bool,
    pub(crate) day2: bool,
    /// Whether the cluster resolves its own names; none while that of an imported one is unknown.
    pub(crate) resolves_names: Option<bool>,
    pub(crate) names: HashMap<String, usize>,
    /// Positions of the hosts by serial number.
    pub(crate) serial_numbers: HashMap<&'a str, Vec<usize>>,
    /// Number of hosts that have tried to reach each host, by position, and of all that try.
    pub(crate) tried: Vec<usize>,
    pub(crate) trying: usize,
    pub(crate) groups: Option<Groups>,
    pub(crate) group_size: usize,
    pub(crate) collisions: BTreeMap<String, Vec<String>>,
    pub(crate) operators: BTreeSet<&'a str>,
}

impl<'a> ClusterSubject<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        texts: &'a [HostTexts],
        policy: &'a InstallationPolicy,
    ) -> Self {
        let cluster = &snapshot.cluster;
        let mut names = HashMap::new();
        let mut serial_numbers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, host) in snapshot.hosts.iter().enumerate() {
            if let Some(serial) = host.inventory.as_deref().and_then(serial_number) {
                serial_numbers.entry(serial).or_default().push(at);
            }
            if let Some(name) = hostname(host) {
                *names.entry(name.to_lowercase()).or_default() += 1;
            }
        }
        let positions = HostPositions::new(&snapshot.hosts);
        let mut tried = vec![0; snapshot.hosts.len()];
        let mut trying = 0;
        for (host, texts) in snapshot.hosts.iter().zip(texts) {
            if host.inventory.is_none() || host.record.status == HostStatus::Disconnected {
                continue;
            }
            trying += 1;
            if let Some(reaches) = &texts.reaches {
                for (at, _) in positions.of_reaches(reaches) {
                    tried[at] += 1;
                }
            }
        }
        Self {
            snapshot,
            cluster,
            texts,
            policy,
            networks: NetworkSet::of(cluster),
            single_node: roles::is_single_node(cluster),
            user_managed: networking::is_user_managed(cluster),
            user_load_balancer: networking::has_user_load_balancer(cluster),
            day2: is_day2(cluster),
            resolves_names: resolves_names(cluster, texts),
            names,
            serial_numbers,
            tried,
            trying,
            groups: Groups::parse(&cluster.connectivity_majority_groups),
            group_size: crate::network::connectivity::least(snapshot),
            collisions: serde_json::from_str(&cluster.ip_collisions).unwrap_or_default(),
            operators: cluster
                .monitored_operators
                .iter()
                .map(|one| one.name.as_str())
                .collect(),
        }
    }

    /// `<name>.<base domain>`, when both are known.
    pub(crate) fn domain(&self) -> Option<String> {
        let (name, base) = (&self.cluster.name, &self.cluster.base_dns_domain);
        (!name.is_empty() && !base.is_empty()).then(|| format!("{name}.{base}"))
    }
}

/// A host, with the inputs of its checks.
pub struct HostSubject<'a> {
    pub(crate) host: &'a HostState,
    pub(crate) texts: &'a HostTexts,
    pub(crate) cluster: Option<&'a ClusterSubject<'a>>,
    pub(crate) policy: &'a InstallationPolicy,
    /// Image of the agent that the host is to run; empty if it is unknown.
    pub(crate) agent_image: &'a str,
    pub(crate) requirements: &'a Requirements,
    pub(crate) now: Timestamp,
}

/// Pending input of most checks.
pub(crate) const INVENTORY: &str = "the host's inventory";

impl<'a> HostSubject<'a> {
    /// The inventory, or a pending verdict.
    pub(crate) fn inventory(&self) -> Result<&'a Inventory, Verdict> {
        self.host
            .inventory
            .as_deref()
            .ok_or_else(|| Verdict::wait(INVENTORY))
    }

    /// The cluster, or a hidden verdict.
    pub(crate) fn cluster(&self) -> Result<&'a ClusterSubject<'a>, Verdict> {
        self.cluster.ok_or(Verdict::Hidden)
    }

    pub(crate) fn stage(&self) -> Option<HostStage> {
        self.host.record.progress.as_ref()?.current_stage
    }

    /// Whether it has rebooted into the installed system, where no agent runs.
    pub(crate) fn has_rebooted(&self) -> bool {
        progress::has_rebooted(self.stage())
            || matches!(
                self.host.record.status,
                HostStatus::Installed | HostStatus::AddedToExistingCluster
            )
    }

    pub(crate) fn day2(&self) -> bool {
        self.host.record.kind == HostKind::AddToExistingClusterHost
    }

    pub(crate) fn single_node(&self) -> bool {
        self.cluster.is_some_and(|cluster| cluster.single_node)
    }

    /// Role, or the suggested one; none while neither is known.
    pub(crate) fn role(&self) -> Option<HostRole> {
        match roles::effective_role(&self.host.record) {
            HostRole::AutoAssign => None,
            role => Some(role),
        }
    }

    pub(crate) fn name(&self) -> Option<&'a str> {
        hostname(self.host)
    }

    /// A pending verdict before the name of the host can be known.
    pub(crate) fn inventory_or_name(&self) -> Result<(), Verdict> {
        match self.name() {
            Some(_) => Ok(()),
            None => self.inventory().map(|_| ()),
        }
    }

    /// Ids of the disks that the user skips formatting.
    pub(crate) fn skipped_disks(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let ids = self
            .host
            .record
            .skip_formatting_disks
            .split(',')
            .map(str::trim);
        ids.filter(|id| !id.is_empty())
    }

    pub(crate) fn eligible_disks(&self) -> impl Iterator<Item = &'a Disk> + use<'a> {
        let disks = self
            .host
            .inventory
            .iter()
            .flat_map(|inventory| &inventory.disks);
        disks.filter(|disk| disk.installation_eligibility.eligible)
    }
}

/// An imported cluster has its network settings in its ignition.
/// Source: assisted-service, internal/host/validator.go, shouldValidateDNSResolution.
fn resolves_names(cluster: &Cluster, texts: &[HostTexts]) -> Option<bool> {
    if cluster.imported != Some(true) {
        return Some(!networking::is_user_managed(cluster));
    }
    let reports = texts.iter().filter_map(|texts| texts.api_vip.as_ref());
    let mut reports = reports.filter(|report| report.is_success).peekable();
    reports.peek()?;
    let ignition = reports.find_map(ClusterIgnition::of);
    Some(ignition.is_none_or(|ignition| ignition.has_managed_network()))
}

/// Future name of the host, when known.
pub(crate) fn hostname(host: &HostState) -> Option<&str> {
    let requested = host.record.requested_hostname.as_str();
    let own = host
        .inventory
        .as_ref()
        .map_or("", |inventory| inventory.hostname.as_str());
    [requested, own].into_iter().find(|name| !name.is_empty())
}

/// Whether the inventory is truncated so far that no check can use it.
pub(crate) fn is_cut(inventory: &Inventory) -> bool {
    is_fully_truncated(inventory)
}
