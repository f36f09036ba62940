//! Retry of one failed host while its cluster is being installed.
//!
//! The other hosts continue meanwhile. A failed cluster cannot resume: the next poll of every agent stops its installer,
//! that of the bootstrap host included, and the installer's controller exits.
//! Source: assisted-service, internal/host/hostcommands/instruction_manager.go; assisted-installer,
//! src/main/assisted-installer-controller/assisted_installer_main.go, didInstallationFinish. The peer retries no host of
//! such a cluster.

use model::Error;
use model::cluster::ClusterStatus;
use model::host::{Host, HostKind, HostRole, HostStage, HostStatus};
use model::ids::HostId;
use model::time::Timestamp;

use super::timeout;
use super::transition::apply;
use super::trigger::Trigger;
use crate::event::NewEvent;
use crate::policy::InstallationPolicy;
use crate::snapshot::Snapshot;
use crate::snapshot::host_state::name_of;
use crate::snapshot::roles::effective_role;

/// Statuses of a cluster whose hosts can be retried.
pub(crate) const CLUSTER: &[ClusterStatus] = &[
    ClusterStatus::Installing,
    ClusterStatus::InstallingPendingUserAction,
    ClusterStatus::Finalizing,
];

/// Statuses between a retry and its installation. While a cluster is being installed, hosts have them only then.
pub(crate) const RETRIED: &[HostStatus] = &[
    HostStatus::ResettingPendingUserAction,
    HostStatus::Discovering,
    HostStatus::Insufficient,
    HostStatus::Known,
    HostStatus::PendingForInput,
    HostStatus::Disconnected,
];

/// A condition of a retry.
struct RetryCondition {
    is_met: fn(&Snapshot, &Host) -> bool,
    /// Why it is not met, and the remedy.
    refusal: fn(&Snapshot, &Host) -> String,
}

/// In the order in which they are checked.
static CONDITIONS: &[RetryCondition] = &[
    RetryCondition {
        is_met: |snapshot, _| CLUSTER.contains(&snapshot.cluster.status),
        refusal: |snapshot, _| {
            let status = snapshot.cluster.status;
            let remedy = match status {
                ClusterStatus::Error | ClusterStatus::Cancelled => {
                    "its installers are stopped: reset the cluster"
                }
                ClusterStatus::Installed | ClusterStatus::AddingHosts => {
                    "let the cluster accept further hosts, delete this one, and boot it from the discovery image again"
                }
                _ => "only hosts of a cluster that is being installed are retried",
            };
            format!("its cluster is {status}: {remedy}")
        },
    },
    RetryCondition {
        is_met: |_, host| has_failed(host),
        refusal: |_, host| {
            format!(
                "it is {}: only a host that failed or timed out is retried",
                host.status
            )
        },
    },
    RetryCondition {
        is_met: |_, host| !host.bootstrap,
        refusal: |_, _| {
            "it is the bootstrap host, which serves the configuration of the others: reset the cluster"
                .to_owned()
        },
    },
    RetryCondition {
        is_met: |_, host| !may_be_member(host),
        refusal: |_, _| {
            "it may be a member of etcd already: reset the cluster, or replace the host once the cluster is installed"
                .to_owned()
        },
    },
    // The controller observes nodes until every host is installed or failed.
    // Source: assisted-installer, src/assisted_installer_controller/assisted_installer_controller.go,
    // waitAndUpdateNodesStatus.
    RetryCondition {
        is_met: |snapshot, _| {
            let mut hosts = snapshot.hosts.iter();
            hosts.any(|host| {
                !matches!(
                    host.record.status,
                    HostStatus::Installed | HostStatus::Error
                )
            })
        },
        refusal: |_, _| {
            "no other host is being installed, so the controller no longer observes nodes: once the cluster is installed, let it accept further hosts, delete this one, and boot it from the discovery image again"
                .to_owned()
        },
    },
];

/// Failed, or took too long. A repeated request is idempotent.
fn has_failed(host: &Host) -> bool {
    let timed_out = host
        .progress
        .as_ref()
        .is_some_and(|one| one.stage_timed_out);
    match host.status {
        HostStatus::Error
        | HostStatus::InstallingPendingUserAction
        | HostStatus::ResettingPendingUserAction => true,
        HostStatus::InstallingInProgress => timed_out,
        _ => false,
    }
}

/// A host of the control plane whose installed system has started. A member of etcd that is installed anew does not
/// join again by itself.
fn may_be_member(host: &Host) -> bool {
    let stage = host.progress.as_ref().and_then(|one| one.current_stage);
    effective_role(host) != HostRole::Worker
        && matches!(
            stage,
            Some(
                HostStage::WaitingForIgnition
                    | HostStage::Configuring
                    | HostStage::Joined
                    | HostStage::Done
            )
        )
}

fn refusal(snapshot: &Snapshot, host: &Host) -> Option<String> {
    let failed = CONDITIONS
        .iter()
        .find(|condition| !(condition.is_met)(snapshot, host))?;
    Some((failed.refusal)(snapshot, host))
}

/// Retries a failed host alone: once it has booted the discovery image and is ready, its installation starts by itself.
///
/// Errors: NotFound – the host; Conflict – it cannot be retried alone.
pub fn retry(
    snapshot: &mut Snapshot,
    id: HostId,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Result<Vec<NewEvent>, Error> {
    let host = snapshot.host(id);
    let record = &host.ok_or_else(|| Error::not_found("host", id))?.record;
    if let Some(refusal) = refusal(snapshot, record) {
        return Err(Error::conflict(format!(
            "host {} ({id}) cannot be retried alone: {refusal}",
            name_of(record)
        )));
    }
    let cluster = snapshot.cluster.clone();
    let host = snapshot.host_mut(id);
    let host = host.ok_or_else(|| Error::not_found("host", id))?;
    apply(host, Some(&cluster), Trigger::Retry, policy, now)
}

/// Failed hosts that can be retried alone; those whose retry is under way are not among them.
pub(crate) fn possible(snapshot: &Snapshot) -> Vec<HostId> {
    // Most clusters are not being installed: no host has to be examined.
    if !CLUSTER.contains(&snapshot.cluster.status) {
        return Vec::new();
    }
    let records = snapshot.hosts.iter().map(|host| &host.record);
    records
        .filter(|host| host.kind == HostKind::Host)
        .filter(|host| host.status != HostStatus::ResettingPendingUserAction)
        .filter(|host| refusal(snapshot, host).is_none())
        .map(|host| host.id)
        .collect()
}

/// Failed hosts that a cluster which lacks them still awaits.
pub(crate) fn awaited(
    snapshot: &Snapshot,
    policy: &InstallationPolicy,
    now: Timestamp,
) -> Vec<HostId> {
    if policy.host_retry_timeout.is_zero() {
        return Vec::new();
    }
    let mut hosts = possible(snapshot);
    hosts.retain(|id| {
        snapshot.host(*id).is_some_and(|host| {
            host.record.status == HostStatus::Error
                && !timeout::host_retry(&host.record, policy).is_expired(now, host.observed)
        })
    });
    hosts
}
