//! Progress of an installation: stages of a host, percentages, and timeouts of stages.

use chrono::TimeDelta;
use model::Error;
use model::cluster::{
    Cluster, ClusterProgressInfo, ClusterStatus, FinalizingStage, PreparationStatus,
};
use model::events::EventSeverity;
use model::host::{Host, HostRole, HostStage};
use model::operators::{OperatorStatus, OperatorType};
use model::time::Timestamp;

use crate::NewEvent;
use crate::input;
use crate::snapshot::Snapshot;

use HostStage::{
    Configuring, CopyingRegistryDataToDisk, Done, Installing, Joined, Rebooting,
    StartingInstallation, WaitingForBootkube, WaitingForControlPlane, WaitingForController,
    WaitingForIgnition, WritingImageToDisk,
};

static BOOTSTRAP: &[HostStage] = &[
    StartingInstallation,
    Installing,
    WritingImageToDisk,
    CopyingRegistryDataToDisk,
    WaitingForControlPlane,
    WaitingForBootkube,
    WaitingForController,
    Rebooting,
    Configuring,
    Joined,
    Done,
];
static MASTER: &[HostStage] = &[
    StartingInstallation,
    Installing,
    WritingImageToDisk,
    CopyingRegistryDataToDisk,
    Rebooting,
    Configuring,
    Joined,
    Done,
];
static WORKER: &[HostStage] = &[
    StartingInstallation,
    Installing,
    WritingImageToDisk,
    WaitingForControlPlane,
    Rebooting,
    WaitingForIgnition,
    Configuring,
    Joined,
    Done,
];
static SINGLE_NODE: &[HostStage] = &[
    StartingInstallation,
    Installing,
    WaitingForBootkube,
    WritingImageToDisk,
    CopyingRegistryDataToDisk,
    Rebooting,
    Joined,
    Done,
];
/// No agent runs on a day-2 host after its reboot.
static JOINING_WORKER: &[HostStage] = &[
    StartingInstallation,
    Installing,
    WritingImageToDisk,
    WaitingForControlPlane,
    Rebooting,
];
static JOINING_MASTER: &[HostStage] = &[
    StartingInstallation,
    Installing,
    WritingImageToDisk,
    CopyingRegistryDataToDisk,
    Rebooting,
];

/// The stages that the host goes through, in their order.
/// Source: assisted-service, internal/host/host.go, GetStagesByRole.
pub fn stages(host: &Host, cluster: &Cluster) -> &'static [HostStage] {
    let role = crate::snapshot::roles::effective_role(host);
    let joining = host.kind == model::host::HostKind::AddToExistingClusterHost;
    match role {
        HostRole::Master | HostRole::Arbiter | HostRole::Bootstrap if joining => JOINING_MASTER,
        _ if joining => JOINING_WORKER,
        _ if crate::snapshot::roles::is_single_node(cluster) => SINGLE_NODE,
        _ if host.bootstrap => BOOTSTRAP,
        HostRole::Master | HostRole::Arbiter | HostRole::Bootstrap => MASTER,
        HostRole::Worker | HostRole::AutoAssign => WORKER,
    }
}

/// Whether the host has rebooted into the installed system, by its stage.
pub fn has_rebooted(stage: Option<HostStage>) -> bool {
    matches!(
        stage,
        Some(Rebooting | WaitingForIgnition | Configuring | Joined | Done)
    )
}

/// Part of its stages that the host has reached. Units: percent.
pub fn host_percentage(stages: &[HostStage], stage: HostStage) -> i64 {
    match stages.iter().position(|one| *one == stage) {
        Some(index) => percent(index + 1, stages.len()),
        None => 0,
    }
}

/// Timeout of a stage, since the host's last report.
/// Source: assisted-service, internal/host/config.go, HostStageTimeout.
pub fn stage_limit(stage: HostStage, single_node: bool) -> TimeDelta {
    match stage {
        StartingInstallation | WritingImageToDisk => TimeDelta::minutes(30),
        CopyingRegistryDataToDisk => TimeDelta::minutes(90),
        Rebooting if single_node => TimeDelta::minutes(80),
        Rebooting => TimeDelta::minutes(40),
        WaitingForIgnition => TimeDelta::hours(24),
        _ => TimeDelta::minutes(60),
    }
}

/// Timeout of a finalizing stage. Stages of added operators get the timeout of the slowest of them.
/// Source: assisted-service, internal/cluster/finalizing_stages.go, finalizingStageTimeout.
pub fn finalizing_limit(stage: FinalizingStage, cluster: &Cluster, soft: bool) -> TimeDelta {
    let limit = match stage {
        FinalizingStage::WaitingForClusterOperators if !soft => TimeDelta::hours(10),
        FinalizingStage::ApplyingOlmManifests | FinalizingStage::WaitingForOLMOperatorSetupJobs => {
            TimeDelta::minutes(10)
        }
        _ => TimeDelta::minutes(70),
    };
    if !is_olm_stage(stage) {
        return limit;
    }
    let slowest = cluster
        .monitored_operators
        .iter()
        .filter(|operator| operator.operator_type == Some(OperatorType::Olm))
        .filter_map(|operator| TimeDelta::try_seconds(operator.timeout_seconds))
        .max();
    slowest.map_or(limit, |slowest| slowest.max(limit))
}

/// Whether a stage concerns added operators, whose timeout never fails the cluster.
pub fn is_olm_stage(stage: FinalizingStage) -> bool {
    matches!(
        stage,
        FinalizingStage::ApplyingOlmManifests
            | FinalizingStage::WaitingForOlmOperatorsCsvInitialization
            | FinalizingStage::WaitingForOlmOperatorsCsv
            | FinalizingStage::WaitingForOLMOperatorSetupJobs
    )
}

/// Statuses in which controllers report finalizing stages. The peer's monitor looks every ten seconds; here a cluster is
/// `installed` at once, before its controller reports the last stages, which it would repeat for ever after an error.
const REPORTING: [ClusterStatus; 4] = [
    ClusterStatus::Installing,
    ClusterStatus::InstallingPendingUserAction,
    ClusterStatus::Finalizing,
    ClusterStatus::Installed,
];

/// Stores the finalizing stage that the controller reached; returns its event, none for the current stage.
///
/// Errors: `Invalid` – the cluster is not being installed.
/// Source: assisted-service, internal/cluster/cluster.go, UpdateFinalizingStage; there not in `installed`.
pub fn report_finalizing(
    cluster: &mut Cluster,
    stage: FinalizingStage,
    now: Timestamp,
) -> Result<Option<NewEvent>, Error> {
    let status = cluster.status;
    if !REPORTING.contains(&status) {
        return Err(input::refuse(
            "finalizing_stage",
            stage.as_str(),
            &format!(
                "is reported while the cluster is installed, and it is {status}: install it first"
            ),
        ));
    }
    let info = cluster.progress.get_or_insert_default();
    if info.finalizing_stage == Some(stage) {
        return Ok(None);
    }
    info.finalizing_stage = Some(stage);
    info.finalizing_stage_started_at = now.into();
    info.finalizing_stage_timed_out = false;
    let text = format!("Finalizing the installation reached stage {stage}");
    let event = NewEvent::new(
        "cluster_finalizing_stage_updated",
        EventSeverity::Info,
        text,
    )
    .cluster(cluster.id)
    .prop("finalizing_stage", stage);
    Ok(Some(event))
}

/// The cluster's progress, by its hosts and operators; percentages never decrease.
/// Source: assisted-service, internal/cluster/cluster.go, UpdateInstallProgress.
pub fn cluster_progress(snapshot: &Snapshot) -> Option<ClusterProgressInfo> {
    let cluster = &snapshot.cluster;
    let shown = matches!(
        cluster.status,
        ClusterStatus::Installing
            | ClusterStatus::Finalizing
            | ClusterStatus::Installed
            | ClusterStatus::InstallingPendingUserAction
    );
    if !shown {
        return cluster.progress.clone();
    }
    let mut progress = cluster.progress.clone().unwrap_or_default();
    if cluster.status == ClusterStatus::Installed {
        progress.preparing_for_installation_stage_percentage = 100;
        progress.installing_stage_percentage = 100;
        progress.finalizing_stage_percentage = 100;
        progress.total_percentage = 100;
        return Some(progress);
    }
    let prepared = cluster.last_installation_preparation.status == Some(PreparationStatus::Success);
    raise(
        &mut progress.preparing_for_installation_stage_percentage,
        if prepared { 100 } else { 0 },
    );
    raise(
        &mut progress.installing_stage_percentage,
        installing_percentage(snapshot),
    );
    if cluster.status == ClusterStatus::Finalizing {
        raise(
            &mut progress.finalizing_stage_percentage,
            finalizing_percentage(cluster),
        );
    }
    let total = progress.preparing_for_installation_stage_percentage / 10
        + progress.installing_stage_percentage * 7 / 10
        + progress.finalizing_stage_percentage * 15 / 100;
    raise(&mut progress.total_percentage, total);
    Some(progress)
}

fn installing_percentage(snapshot: &Snapshot) -> i64 {
    let mut reached = 0;
    let mut all = 0;
    for host in &snapshot.hosts {
        let stages = stages(&host.record, &snapshot.cluster);
        all += stages.len();
        let stage = host
            .record
            .progress
            .as_ref()
            .and_then(|one| one.current_stage);
        let index = stage.and_then(|stage| stages.iter().position(|one| *one == stage));
        reached += index.map_or(0, |index| index + 1);
    }
    percent(reached, all)
}

fn finalizing_percentage(cluster: &Cluster) -> i64 {
    let finished = cluster.monitored_operators.iter().filter(|operator| {
        operator.status == Some(OperatorStatus::Available)
            || (operator.status == Some(OperatorStatus::Failed)
                && operator.operator_type == Some(OperatorType::Olm))
    });
    percent(finished.count(), cluster.monitored_operators.len())
}

fn raise(value: &mut i64, to: i64) {
    *value = (*value).max(to);
}

fn percent(part: usize, whole: usize) -> i64 {
    if whole == 0 {
        return 0;
    }
    i64::try_from(part * 100 / whole).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, now};

    #[test]
    fn finalizing_stages_are_stored_only_during_an_installation_and_at_its_end() {
        let done = FinalizingStage::Done;
        for status in ClusterStatus::ALL {
            let mut cluster = fixtures::cluster(3);
            cluster.status = *status;
            let reported = report_finalizing(&mut cluster, done, now());
            let expected = matches!(
                status.as_str(),
                "installing" | "installing-pending-user-action" | "finalizing" | "installed"
            );
            assert_eq!(reported.is_ok(), expected, "{status}");
            let stored = cluster
                .progress
                .as_ref()
                .and_then(|info| info.finalizing_stage);
            assert_eq!(stored, expected.then_some(done), "{status}");
        }
    }

    #[test]
    fn a_repeated_finalizing_stage_keeps_its_start() {
        let mut cluster = fixtures::cluster(3);
        cluster.status = ClusterStatus::Finalizing;
        let stage = FinalizingStage::AddingRouterCa;
        assert!(
            report_finalizing(&mut cluster, stage, now())
                .unwrap()
                .is_some()
        );
        let first = cluster.clone();
        let later = fixtures::later(1);
        assert_eq!(report_finalizing(&mut cluster, stage, later).unwrap(), None);
        assert_eq!(cluster, first);
    }
}
