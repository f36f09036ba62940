//! Inputs of a cluster's guards: plain values, computed once.

use model::cluster::{Cluster, FinalizingStage, PreparationStatus};
use model::host::{Host, HostStatus};
use model::operators::{MonitoredOperator, OperatorStatus, OperatorType};
use model::time::Timestamp;

use super::counting;
use crate::host::retry;
use crate::host::timeout;
use crate::policy::InstallationPolicy;
use crate::snapshot::Snapshot;
use crate::snapshot::roles;

/// Validation results of a cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judged {
    pub(crate) input_missing: bool,
    pub(crate) ready: bool,
    pub(crate) blocking: String,
}

/// Plain values about one cluster at one moment.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Time of the evaluation.
    pub now: Timestamp,
    /// A required input of the user is missing.
    pub input_missing: bool,
    /// Every blocking validation passes.
    pub ready: bool,
    /// Messages of exactly the blocking validations.
    pub blocking: String,
    /// The installation files are made.
    pub prepared: bool,
    /// Making them failed.
    pub preparation_failed: bool,
    /// Why it failed.
    pub preparation_reason: String,
    /// The preparation timed out.
    pub prepare_expired: bool,
    /// Every host is prepared.
    pub hosts_prepared: bool,
    /// Hosts that cannot be prepared, and why.
    pub hosts_failed_preparing: String,
    /// Hosts that have left the preparation, and their status.
    pub hosts_left_preparing: String,
    /// Hosts that wait for a boot from their installation disk.
    pub hosts_pending_action: String,
    /// Retried hosts that wait for a boot from the discovery image.
    pub hosts_pending_reset: String,
    /// Failed hosts that the cluster lacks and whose retry it awaits, and why they failed.
    pub hosts_pending_retry: String,
    /// Enough hosts are installing or installed.
    pub can_install: bool,
    /// Enough hosts are installed.
    pub can_finalize: bool,
    /// Hosts that failed.
    pub hosts_in_error: String,
    /// Every host is installed or failed.
    pub hosts_ended: bool,
    /// The installation timed out.
    pub installation_expired: bool,
    /// Finalizing timed out.
    pub finalizing_expired: bool,
    /// The finalizing stage timed out.
    pub finalizing_stage_expired: bool,
    /// The finalizing stage, when there is one.
    pub finalizing_stage: Option<FinalizingStage>,
    /// Limit of the finalizing stage. Units: minutes.
    pub finalizing_limit_min: i64,
    /// A stage that times out is reported and does not fail.
    pub soft_timeouts: bool,
    /// The kubeconfig with the ingress certificate exists.
    pub kubeconfig: bool,
    /// Every operator of the platform itself is available.
    pub builtin_available: bool,
    /// Every added operator is available or has failed.
    pub olm_ended: bool,
    /// Added operators that failed.
    pub olm_failed: String,
    /// Log collection is overdue.
    pub logs_overdue: bool,
    /// One host is the whole cluster.
    pub single_node: bool,
}

impl Facts {
    pub(crate) fn of(
        snapshot: &Snapshot,
        judged: Judged,
        policy: &InstallationPolicy,
        now: Timestamp,
    ) -> Self {
        let cluster = &snapshot.cluster;
        let preparation = &cluster.last_installation_preparation;
        let progress = cluster.progress.clone().unwrap_or_default();
        let stage_timeout = timeout::finalizing_stage(cluster, policy);
        let hosts = |statuses: &[HostStatus]| {
            snapshot
                .hosts
                .iter()
                .all(|host| statuses.contains(&host.record.status))
        };
        let awaited = retry::awaited(snapshot, policy, now);
        // A cluster that has enough other hosts proceeds.
        let is_lacking = !counting::can_install(snapshot, &[]);
        Self {
            now,
            input_missing: judged.input_missing,
            ready: judged.ready,
            blocking: judged.blocking,
            prepared: preparation.status == Some(PreparationStatus::Success),
            preparation_failed: preparation.status == Some(PreparationStatus::Failed),
            preparation_reason: preparation.reason.clone(),
            prepare_expired: timeout::preparation(cluster, policy)
                .is_expired(now, snapshot.observed),
            hosts_prepared: !snapshot.hosts.is_empty() && hosts(&[HostStatus::PreparingSuccessful]),
            hosts_failed_preparing: named(snapshot, &[HostStatus::PreparingFailed], true),
            hosts_left_preparing: left_preparing(snapshot),
            hosts_pending_action: named(
                snapshot,
                &[HostStatus::InstallingPendingUserAction],
                false,
            ),
            hosts_pending_reset: named(snapshot, &[HostStatus::ResettingPendingUserAction], false),
            hosts_pending_retry: if is_lacking {
                named_hosts(snapshot, |host| awaited.contains(&host.id), true)
            } else {
                String::new()
            },
            can_install: counting::can_install(snapshot, &awaited),
            can_finalize: counting::can_finalize(snapshot),
            hosts_in_error: named(snapshot, &[HostStatus::Error], true),
            hosts_ended: hosts(&[HostStatus::Installed, HostStatus::Error]),
            installation_expired: timeout::installation(cluster, policy)
                .is_expired(now, snapshot.observed),
            finalizing_expired: timeout::finalizing(cluster, policy)
                .is_expired(now, snapshot.observed),
            finalizing_stage_expired: stage_timeout
                .is_some_and(|timeout| timeout.is_expired(now, snapshot.observed)),
            finalizing_stage: progress.finalizing_stage,
            finalizing_limit_min: stage_timeout.map_or(0, |timeout| timeout.limit.num_minutes()),
            soft_timeouts: policy.soft_timeouts || cluster.org_soft_timeouts_enabled,
            kubeconfig: snapshot.files.kubeconfig,
            builtin_available: operators(cluster, OperatorType::Builtin)
                .all(|one| one.status == Some(OperatorStatus::Available)),
            olm_ended: operators(cluster, OperatorType::Olm).all(|one| {
                matches!(
                    one.status,
                    Some(OperatorStatus::Available | OperatorStatus::Failed)
                )
            }),
            olm_failed: failed_operators(cluster),
            logs_overdue: timeout::cluster_logs(cluster, policy)
                .is_some_and(|timeout| timeout.is_expired(now, snapshot.observed)),
            single_node: roles::is_single_node(cluster),
        }
    }

    /// A host waits for its user.
    pub fn awaits_user(&self) -> bool {
        !self.hosts_pending_action.is_empty()
            || !self.hosts_pending_reset.is_empty()
            || !self.hosts_pending_retry.is_empty()
    }

    /// Every host has ended, the files exist and no operator is pending.
    pub fn is_complete(&self) -> bool {
        self.hosts_ended && self.kubeconfig && self.builtin_available && self.olm_ended
    }
}

fn operators(cluster: &Cluster, kind: OperatorType) -> impl Iterator<Item = &MonitoredOperator> {
    cluster
        .monitored_operators
        .iter()
        .filter(move |operator| operator.operator_type.unwrap_or_default() == kind)
}

fn failed_operators(cluster: &Cluster) -> String {
    let failed: Vec<&str> = operators(cluster, OperatorType::Olm)
        .filter(|one| one.status == Some(OperatorStatus::Failed))
        .map(|one| one.name.as_str())
        .collect();
    failed.join(", ")
}

/// Names of the hosts in one of the statuses; with `why`, also their status texts.
fn named(snapshot: &Snapshot, statuses: &[HostStatus], why: bool) -> String {
    named_hosts(snapshot, |host| statuses.contains(&host.status), why)
}

/// Names of the hosts that `is_meant` chooses; with `why`, also their status texts.
fn named_hosts(snapshot: &Snapshot, is_meant: impl Fn(&Host) -> bool, why: bool) -> String {
    let mut names: Vec<String> = snapshot
        .hosts
        .iter()
        .filter(|host| is_meant(&host.record))
        .map(|host| {
            if why {
                format!("{} ({})", host.name(), host.record.status_info)
            } else {
                host.name()
            }
        })
        .collect();
    names.sort();
    names.join(", ")
}

fn left_preparing(snapshot: &Snapshot) -> String {
    let mut names: Vec<String> = snapshot
        .hosts
        .iter()
        .filter(|host| {
            !matches!(
                host.record.status,
                HostStatus::PreparingForInstallation
                    | HostStatus::PreparingSuccessful
                    | HostStatus::PreparingFailed
                    | HostStatus::Known
            )
        })
        .map(|host| {
            format!(
                "{} is {} ({})",
                host.name(),
                host.record.status,
                host.record.status_info
            )
        })
        .collect();
    names.sort();
    names.join(", ")
}
