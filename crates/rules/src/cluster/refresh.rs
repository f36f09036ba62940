//! Refresh: derived data and validations, then the tables, until a fixpoint.
//!
//! Idempotent: a second refresh at the same time changes nothing and emits no event.
//! Source: assisted-service, internal/host/monitor.go, internal/cluster/cluster.go (ClusterMonitoring).

use model::LargeText;
use model::cluster::ClusterStatus;
use model::events::EventSeverity;
use model::host::{HostRole, HostStatus};
use model::time::Timestamp;

use crate::cluster::counting;
use crate::cluster::facts::{Facts as ClusterFacts, Judged};
use crate::cluster::role_assignment;
use crate::cluster::transition;
use crate::cluster::update;
use crate::cluster::usage;
use crate::event::{NewEvent, about_cluster, about_host};
use crate::explain::validations::{
    self, ClusterJudgement, ClusterSubject, HostJudgement, HostSubject, Ignored,
};
use crate::hardware::requirements::Requirements;
use crate::host::inventory;
use crate::host::progress;
use crate::host::retry;
use crate::host::{self, ClusterInputs, Facts};
use crate::network::connectivity;
use crate::network::vip_leases;
use crate::policy::InstallationPolicy;
use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;
use crate::snapshot::host_texts::HostTexts;
use crate::snapshot::roles;

/// Bound on the rounds: each advances a host or the cluster by a status, and no chain of rules is longer.
const ROUNDS: usize = 12;

/// Refreshes a cluster and its hosts, and returns the events.
pub fn cluster(
    snapshot: &mut Snapshot,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Vec<NewEvent> {
    let before = StoredValidations::of(snapshot);
    let mut events = Vec::new();
    let requirements = Requirements::of(policy, &snapshot.cluster.openshift_version);
    let texts: Vec<HostTexts> = snapshot.hosts.iter().map(HostTexts::of).collect();
    let mut reached = None;
    for _ in 0..ROUNDS {
        let state = RoundState::of(snapshot);
        derive(snapshot, policy, &requirements, &mut events);
        events.extend(vip_leases::refresh(snapshot, now));
        store_connectivity(snapshot, &texts, &mut reached);
        let verdicts = judge_hosts(snapshot, &texts, policy, &requirements, now);
        transition_hosts(snapshot, verdicts, policy, now, &mut events);
        let verdict = judge_cluster(snapshot, &texts, policy);
        if let Some(verdict) = &verdict {
            snapshot.cluster.validations_info.clone_from(&verdict.text);
        }
        transition_cluster(snapshot, verdict, policy, now, &mut events);
        snapshot.cluster.progress = progress::cluster_progress(snapshot);
        if state == RoundState::of(snapshot) {
            break;
        }
    }
    set_can_retry(snapshot);
    snapshot.cluster.feature_usage = usage::feature_usage(snapshot);
    before.flips(snapshot).into_iter().chain(events).collect()
}

/// Refreshes a host without cluster, which is to run the agent of `agent_image`, and returns the events.
pub fn unbound_host(
    host: &mut HostState,
    agent_image: &str,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Vec<NewEvent> {
    let before = host.record.validations_info.clone();
    let mut events = Vec::new();
    let requirements = Requirements::of(policy, "");
    let texts = HostTexts::of(host);
    for _ in 0..ROUNDS {
        let status = host.record.status;
        inventory::derive(host, None, &requirements);
        let subject = HostSubject {
            host,
            texts: &texts,
            cluster: None,
            policy,
            agent_image,
            requirements: &requirements,
            now,
        };
        let verdict = validations::judge_host(&subject, &Ignored::default());
        host.record.validations_info.set(&verdict.text);
        let facts = Facts::of(
            host,
            None,
            cluster_inputs(verdict, None, false),
            policy,
            now,
        );
        host::refresh(host, None, &facts, &mut events);
        if status == host.record.status {
            break;
        }
    }
    host_flips(host, &before)
        .into_iter()
        .chain(events)
        .collect()
}

/// Derives data from the hosts' own reports: eligible disks, roles, stages, machine networks.
fn derive(
    snapshot: &mut Snapshot,
    policy: &InstallationPolicy,
    requirements: &Requirements,
    events: &mut Vec<NewEvent>,
) {
    let choosing = matches!(
        snapshot.cluster.status,
        ClusterStatus::Insufficient
            | ClusterStatus::Ready
            | ClusterStatus::PendingForInput
            | ClusterStatus::AddingHosts
    );
    for host in &mut snapshot.hosts {
        inventory::derive(host, Some(&snapshot.cluster), requirements);
    }
    if choosing {
        role_assignment::suggest(snapshot, policy, events);
    }
    for host in &mut snapshot.hosts {
        let stages = progress::stages(&host.record, &snapshot.cluster);
        if host.record.progress_stages != stages {
            host.record.progress_stages = stages.to_vec();
        }
    }
    let forced = roles::is_single_node(&snapshot.cluster) || roles::workers(snapshot) < 2;
    snapshot.cluster.schedulable_masters_forced_true = Some(forced);
    set_machine_networks(snapshot);
}

/// Stores which failed hosts can be retried alone, so that clients need not know the conditions.
fn set_can_retry(snapshot: &mut Snapshot) {
    let possible = retry::possible(snapshot);
    for host in &mut snapshot.hosts {
        host.record.can_retry = possible.contains(&host.record.id);
    }
}

/// Derives the machine networks, and the member from which older clients read the first of them.
fn set_machine_networks(snapshot: &mut Snapshot) {
    update::derive_machine_networks(snapshot);
    let cluster = &mut snapshot.cluster;
    let first = cluster.machine_networks.first();
    let cidr = first.map_or("", |network| network.cidr.as_str());
    if cluster.machine_network_cidr != cidr {
        cluster.machine_network_cidr = cidr.to_owned();
    }
}

/// Stores groups and collisions until the installation starts. They follow from the reports alone, so that one
/// computation per refresh is enough.
/// Source: assisted-service, internal/cluster/cluster.go, SetConnectivityMajorityGroupsForCluster,
/// DetectAndStoreCollidingIPsForCluster.
fn store_connectivity(
    snapshot: &mut Snapshot,
    texts: &[HostTexts],
    reached: &mut Option<(String, String)>,
) {
    let open = matches!(
        snapshot.cluster.status,
        ClusterStatus::PendingForInput | ClusterStatus::Insufficient | ClusterStatus::Ready
    );
    if !open {
        return;
    }
    let (groups, collisions) = reached.get_or_insert_with(|| {
        let collisions = connectivity::ip_collisions(texts);
        // Maps of texts cannot fail to be printed.
        let groups = serde_json::to_string(&connectivity::groups(snapshot, texts));
        let collisions = if collisions.is_empty() {
            String::new()
        } else {
            serde_json::to_string(&collisions).unwrap_or_default()
        };
        (groups.unwrap_or_default(), collisions)
    });
    snapshot
        .cluster
        .connectivity_majority_groups
        .clone_from(groups);
    snapshot.cluster.ip_collisions.clone_from(collisions);
}

fn judge_hosts(
    snapshot: &Snapshot,
    texts: &[HostTexts],
    policy: &InstallationPolicy,
    requirements: &Requirements,
    now: Timestamp,
) -> Vec<HostJudgement> {
    let subject = ClusterSubject::new(snapshot, texts, policy);
    let ignored = Ignored::of(&snapshot.cluster);
    let judge = |(host, texts)| {
        let subject = HostSubject {
            host,
            texts,
            cluster: Some(&subject),
            policy,
            agent_image: &snapshot.components.agent,
            requirements,
            now,
        };
        validations::judge_host(&subject, &ignored)
    };
    snapshot.hosts.iter().zip(texts).map(judge).collect()
}

fn transition_hosts(
    snapshot: &mut Snapshot,
    verdicts: Vec<HostJudgement>,
    policy: &InstallationPolicy,
    now: Timestamp,
    events: &mut Vec<NewEvent>,
) {
    let status = snapshot.cluster.status;
    let lacked: Vec<bool> = snapshot
        .hosts
        .iter()
        .map(|host| {
            host.record.status == HostStatus::InstallingPendingUserAction
                && counting::fails_without(snapshot, host.record.id)
        })
        .collect();
    let cluster = &snapshot.cluster;
    for ((host, verdict), lacked) in snapshot.hosts.iter_mut().zip(verdicts).zip(lacked) {
        host.record.validations_info.set(&verdict.text);
        let facts = Facts::of(
            host,
            Some(cluster),
            cluster_inputs(verdict, Some(status), lacked),
            policy,
            now,
        );
        host::refresh(host, Some(cluster), &facts, events);
    }
}

fn cluster_inputs(
    verdict: HostJudgement,
    cluster: Option<ClusterStatus>,
    lacked: bool,
) -> ClusterInputs {
    ClusterInputs {
        connected: verdict.connected,
        hardware_ok: verdict.hardware_ok,
        input_ok: verdict.input_ok,
        vsphere_ok: verdict.disk_ids_ok,
        sufficient: verdict.sufficient,
        blocking: verdict.blocking,
        cluster_needs_it: lacked,
        cluster_status: cluster,
    }
}

/// Judges a cluster while it can still be changed.
fn judge_cluster(
    snapshot: &Snapshot,
    texts: &[HostTexts],
    policy: &InstallationPolicy,
) -> Option<ClusterJudgement> {
    let judged = matches!(
        snapshot.cluster.status,
        ClusterStatus::Insufficient
            | ClusterStatus::Ready
            | ClusterStatus::PendingForInput
            | ClusterStatus::PreparingForInstallation
    );
    judged.then(|| {
        let subject = ClusterSubject::new(snapshot, texts, policy);
        validations::judge_cluster(&subject, &Ignored::of(&snapshot.cluster))
    })
}

fn transition_cluster(
    snapshot: &mut Snapshot,
    verdict: Option<ClusterJudgement>,
    policy: &InstallationPolicy,
    now: Timestamp,
    events: &mut Vec<NewEvent>,
) {
    let verdict = verdict.unwrap_or_default();
    let judged = Judged {
        input_missing: verdict.input_missing,
        ready: verdict.ready,
        blocking: verdict.blocking,
    };
    let facts = ClusterFacts::of(snapshot, judged, policy, now);
    transition::refresh(snapshot, &facts, policy, events);
}

/// The state that a round may change and the next one reads.
#[derive(PartialEq, Eq)]
struct RoundState {
    cluster: ClusterStatus,
    hosts: Vec<(HostStatus, Option<HostRole>, String)>,
}

impl RoundState {
    fn of(snapshot: &Snapshot) -> Self {
        let of = |host: &HostState| {
            let record = &host.record;
            (
                record.status,
                record.suggested_role,
                record.installation_disk_id.clone(),
            )
        };
        Self {
            cluster: snapshot.cluster.status,
            hosts: snapshot.hosts.iter().map(of).collect(),
        }
    }
}

/// The validations before the refresh.
struct StoredValidations {
    cluster: String,
    hosts: Vec<LargeText>,
}

impl StoredValidations {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            cluster: snapshot.cluster.validations_info.clone(),
            hosts: snapshot
                .hosts
                .iter()
                .map(|host| host.record.validations_info.clone())
                .collect(),
        }
    }

    fn flips(&self, snapshot: &Snapshot) -> Vec<NewEvent> {
        let hosts = snapshot.hosts.iter().zip(&self.hosts);
        let mut events: Vec<NewEvent> = hosts
            .flat_map(|(host, text)| host_flips(host, text))
            .collect();
        let flips = validations::flips(&self.cluster, &snapshot.cluster.validations_info);
        events.extend(flips.into_iter().map(|flip| cluster_flip(snapshot, &flip)));
        events
    }
}

fn host_flips(host: &HostState, before: &LargeText) -> Vec<NewEvent> {
    let after = &host.record.validations_info;
    if before == after {
        return Vec::new();
    }
    validations::flips(&before.text(), &after.text())
        .into_iter()
        .map(|flip| {
            if flip.fixed {
                let message = format!("validation {} is now fixed", flip.id);
                return about_host(host, "host_validation_fixed", EventSeverity::Info, &message)
                    .prop("validation_id", flip.id);
            }
            let message = format!("validation {} now fails: {}", flip.id, flip.message);
            about_host(
                host,
                "host_validation_failed",
                EventSeverity::Warning,
                &message,
            )
            .prop("validation_id", flip.id)
            .prop("previous_status", flip.was)
            .prop("failure_message", flip.message)
        })
        .collect()
}

fn cluster_flip(snapshot: &Snapshot, flip: &validations::Flip) -> NewEvent {
    if flip.fixed {
        let message = format!("validation {} is now fixed", flip.id);
        return about_cluster(
            snapshot,
            "cluster_validation_fixed",
            EventSeverity::Info,
            &message,
        )
        .prop("validation_id", &flip.id)
        .prop("validation_msg", &flip.message);
    }
    let message = format!("validation {} now fails: {}", flip.id, flip.message);
    about_cluster(
        snapshot,
        "cluster_validation_failed",
        EventSeverity::Warning,
        &message,
    )
    .prop("validation_id", &flip.id)
    .prop("validation_msg", &flip.message)
    .prop("previous_status", &flip.was)
    .prop("failure_message", &flip.message)
}
