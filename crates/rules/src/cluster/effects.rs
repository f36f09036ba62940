//! Effects of a cluster's transitions beyond the status.

use model::cluster::{
    ClusterKind, ClusterProgressInfo, LastInstallationPreparation, PreparationStatus,
};
use model::events::EventSeverity;
use model::logs::LogsState;
use model::network::{ApiVip, IngressVip};
use model::time::DateTime;

use super::facts::Facts;
use crate::cluster::ignition_endpoint;
use crate::event::{NewEvent, about_cluster};
use crate::host;
use crate::policy::InstallationPolicy;
use crate::snapshot::Snapshot;

/// An effect of a transition on the cluster and its hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Stores the start time of the installation.
    StartPreparing,
    /// Stores why the preparation failed.
    FailPreparation,
    /// Reports that the preparation timed out.
    ReportPreparationTimeout,
    /// Stores that every file and host is prepared; a single node's VIPs are its own address.
    StartInstalling,
    /// Restarts the clock of the finalizing stage.
    RestartFinalizingStage,
    /// Stores and reports that the finalizing stage timed out.
    FinalizingStageTimedOut,
    /// Reports the completed installation.
    ReportCompleted,
    /// Reports the failed installation.
    ReportFailed,
    /// Ends log collection with a timeout.
    LogsTimeOut,
    /// Clears progress, times and logs of the installation.
    ClearInstallation,
    /// Cancels every host.
    CancelHosts,
    /// Resets every host.
    ResetHosts,
    /// Makes it a cluster of day-2 hosts, which reach it by its API address.
    AcceptDay2Hosts,
    /// Reports the cancelled installation.
    ReportCancelled,
    /// Reports the reset installation.
    ReportReset,
}

/// Applies an effect.
pub(super) fn run(
    effect: Effect,
    snapshot: &mut Snapshot,
    facts: &Facts,
    policy: &InstallationPolicy,
    events: &mut Vec<NewEvent>,
) {
    let cluster = &mut snapshot.cluster;
    match effect {
        Effect::StartPreparing => {
            cluster.install_started_at = facts.now.into();
            cluster.install_completed_at = DateTime(None);
            cluster.last_installation_preparation = LastInstallationPreparation {
                status: Some(PreparationStatus::NotStarted),
                reason: String::new(),
            };
            cluster.logs_info = None;
            cluster.controller_logs_collected_at = DateTime(None);
            cluster.controller_logs_started_at = DateTime(None);
        }
        Effect::FailPreparation => fail_preparation(snapshot, facts),
        Effect::ReportPreparationTimeout => {
            let reason = preparation_problem(facts);
            let message = format!("preparation for the installation timed out: {reason}");
            events.push(
                about_cluster(
                    snapshot,
                    "installation_preparing_timed_out",
                    EventSeverity::Warning,
                    &message,
                )
                .prop("reason", reason),
            );
        }
        Effect::StartInstalling => start_installing(snapshot),
        Effect::RestartFinalizingStage => {
            if let Some(progress) = &mut cluster.progress
                && progress.finalizing_stage.is_some()
            {
                progress.finalizing_stage_started_at = facts.now.into();
            }
        }
        Effect::FinalizingStageTimedOut => stage_timed_out(snapshot, facts, events),
        Effect::ReportCompleted => report_completed(snapshot, facts, events),
        Effect::ReportFailed => {
            let reason = cluster.status_info.clone();
            let message = format!("installation failed: {reason}");
            events.push(
                about_cluster(
                    snapshot,
                    "cluster_installation_failed",
                    EventSeverity::Critical,
                    &message,
                )
                .prop("failure_reason", reason),
            );
        }
        Effect::LogsTimeOut => cluster.logs_info = Some(LogsState::Timeout),
        Effect::ClearInstallation => clear_installation(snapshot, facts),
        Effect::CancelHosts => every_host(snapshot, &host::Trigger::Cancel, facts, policy, events),
        Effect::ResetHosts => every_host(snapshot, &host::Trigger::Reset, facts, policy, events),
        Effect::AcceptDay2Hosts => {
            cluster.kind = ClusterKind::AddHostsCluster;
            cluster.api_vip_dns_name = ignition_endpoint::default_api_name(cluster);
        }
        Effect::ReportCancelled => events.push(about_cluster(
            snapshot,
            "cluster_installation_canceled",
            EventSeverity::Info,
            "installation was cancelled",
        )),
        Effect::ReportReset => events.push(about_cluster(
            snapshot,
            "cluster_installation_reset",
            EventSeverity::Info,
            "installation was reset",
        )),
    }
}

/// Why a preparation failed, in one text.
pub(super) fn preparation_problem(facts: &Facts) -> String {
    if !facts.hosts_failed_preparing.is_empty() {
        return format!(
            "hosts could not be prepared: {}",
            facts.hosts_failed_preparing
        );
    }
    if facts.preparation_failed {
        return facts.preparation_reason.clone();
    }
    if !facts.hosts_left_preparing.is_empty() {
        return format!("hosts left the preparation: {}", facts.hosts_left_preparing);
    }
    if facts.prepared {
        return "hosts did not finish their checks in time".to_owned();
    }
    "the installation files were not made in time".to_owned()
}

fn fail_preparation(snapshot: &mut Snapshot, facts: &Facts) {
    snapshot.cluster.last_installation_preparation = LastInstallationPreparation {
        status: Some(PreparationStatus::Failed),
        reason: preparation_problem(facts),
    };
}

fn start_installing(snapshot: &mut Snapshot) {
    let address = single_node_address(snapshot);
    let cluster = &mut snapshot.cluster;
    let progress = cluster.progress.get_or_insert_default();
    progress.preparing_for_installation_stage_percentage = 100;
    progress.total_percentage = progress.total_percentage.max(10);
    if let Some(ip) = address {
        cluster.api_vips = vec![ApiVip {
            cluster_id: Some(cluster.id),
            ip: ip.clone(),
            verification: None,
        }];
        cluster.ingress_vips = vec![IngressVip {
            cluster_id: Some(cluster.id),
            ip,
            verification: None,
        }];
    }
}

/// Address of a single-node cluster's host.
fn single_node_address(snapshot: &Snapshot) -> Option<String> {
    if !crate::snapshot::roles::is_single_node(&snapshot.cluster) {
        return None;
    }
    let host = snapshot.hosts.first()?;
    let networks = crate::snapshot::networks::NetworkSet::of(&snapshot.cluster);
    let addresses = crate::snapshot::networks::addresses(host.inventory.as_ref()?);
    let inside = addresses.iter().find(|one| {
        networks
            .machine
            .iter()
            .any(|net| net.contains(&one.net.addr()))
    })?;
    Some(inside.net.addr().to_string())
}

fn stage_timed_out(snapshot: &mut Snapshot, facts: &Facts, events: &mut Vec<NewEvent>) {
    let Some(progress) = &mut snapshot.cluster.progress else {
        return;
    };
    if progress.finalizing_stage_timed_out {
        return;
    }
    progress.finalizing_stage_timed_out = true;
    let stage = facts.finalizing_stage.map_or("", |stage| stage.as_str());
    let minutes = facts.finalizing_limit_min;
    let message = format!("finalizing stage {stage} takes longer than {minutes} minutes");
    events.push(
        about_cluster(
            snapshot,
            "finalizing_stage_timed_out",
            EventSeverity::Warning,
            &message,
        )
        .prop("stage", stage)
        .prop("minutes", minutes),
    );
}

fn report_completed(snapshot: &Snapshot, facts: &Facts, events: &mut Vec<NewEvent>) {
    events.push(about_cluster(
        snapshot,
        "cluster_installation_completed",
        EventSeverity::Info,
        "installation completed",
    ));
    if facts.olm_failed.is_empty() {
        return;
    }
    let message = format!(
        "installed, but these operators failed: {}",
        facts.olm_failed
    );
    events.push(
        about_cluster(
            snapshot,
            "cluster_degraded_OLM_operators_failed",
            EventSeverity::Warning,
            &message,
        )
        .prop("failed_operators", &facts.olm_failed),
    );
}

fn clear_installation(snapshot: &mut Snapshot, facts: &Facts) {
    let cluster = &mut snapshot.cluster;
    cluster.progress = Some(ClusterProgressInfo::default());
    cluster.logs_info = None;
    cluster.controller_logs_collected_at = DateTime(None);
    cluster.controller_logs_started_at = DateTime(None);
    cluster.openshift_cluster_id = None;
    cluster.install_started_at = DateTime(None);
    cluster.install_completed_at = DateTime(None);
    cluster.last_installation_preparation = LastInstallationPreparation {
        status: Some(PreparationStatus::NotStarted),
        reason: String::new(),
    };
    for operator in &mut cluster.monitored_operators {
        operator.status = None;
        operator.status_info.clear();
        operator.version.clear();
        operator.status_updated_at = DateTime(None);
    }
    if facts.single_node {
        cluster.api_vips.clear();
        cluster.ingress_vips.clear();
    }
    snapshot.files.kubeconfig = false;
}

/// Skips hosts whose status refuses the trigger: they take no part in the installation.
fn every_host(
    snapshot: &mut Snapshot,
    trigger: &host::Trigger,
    facts: &Facts,
    policy: &InstallationPolicy,
    events: &mut Vec<NewEvent>,
) {
    let cluster = &snapshot.cluster;
    for host in &mut snapshot.hosts {
        if let Ok(more) = host::apply(host, Some(cluster), trigger.clone(), policy, facts.now) {
            events.extend(more);
        }
    }
}
