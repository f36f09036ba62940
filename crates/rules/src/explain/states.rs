//! Statuses that are themselves a cause: work with a timeout, and states that their subject does not leave by itself.
//! Statuses that follow from validations have no row.

use model::cluster::{Cluster, ClusterStatus, PreparationStatus};
use model::explain::CauseKind;
use model::host::{HostStage, HostStatus};
use model::operators::OperatorStatus;

use super::stages::{self, StageRow};
use crate::hardware::check_outcome::CheckOutcome;
use crate::hardware::disks::installation_disk;
use crate::host::timeout::{self, Timeout};
use crate::policy::InstallationPolicy;
use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;
use crate::snapshot::roles;

/// A status or stage as a cause, with inputs `I`.
pub(super) struct StateRow<I> {
    pub(super) kind: CauseKind,
    /// Name of the stage, or the status.
    pub(super) id: &'static str,
    /// Its subject does not leave it by itself.
    pub(super) is_stuck: bool,
    pub(super) timeout: Option<Timeout>,
    pub(super) observed: fn(&I) -> String,
    pub(super) required: &'static str,
    pub(super) fix: &'static str,
}

impl<I> StateRow<I> {
    /// Work that ends by itself.
    fn work(
        id: &'static str,
        observed: fn(&I) -> String,
        required: &'static str,
        fix: &'static str,
    ) -> Self {
        Self {
            kind: CauseKind::State,
            id,
            is_stuck: false,
            timeout: None,
            observed,
            required,
            fix,
        }
    }

    /// A state that its subject does not leave by itself.
    fn stuck(
        id: &'static str,
        observed: fn(&I) -> String,
        required: &'static str,
        fix: &'static str,
    ) -> Self {
        Self {
            is_stuck: true,
            ..Self::work(id, observed, required, fix)
        }
    }

    fn stage(id: &'static str, observed: fn(&I) -> String, row: &StageRow) -> Self {
        Self {
            kind: CauseKind::Stage,
            ..Self::work(id, observed, row.required, row.fix)
        }
    }

    fn within(self, timeout: impl Into<Option<Timeout>>) -> Self {
        Self {
            timeout: timeout.into(),
            ..self
        }
    }
}

/// A host, and the inputs of its row.
pub(super) struct HostInput<'a> {
    pub(super) host: &'a HostState,
    pub(super) cluster: Option<&'a Cluster>,
    pub(super) policy: &'a InstallationPolicy,
}

impl HostInput<'_> {
    fn stage(&self) -> Option<HostStage> {
        self.host.record.progress.as_ref()?.current_stage
    }

    fn status_text(&self) -> String {
        self.host.record.status_info.clone()
    }

    /// The stage, with the host's own text.
    fn stage_text(&self) -> String {
        let Some(progress) = &self.host.record.progress else {
            return "no report".to_owned();
        };
        let stage = progress
            .current_stage
            .map_or("no report", HostStage::as_str);
        match progress.progress_info.as_str() {
            "" => stage.to_owned(),
            info => format!("{stage}: {info}"),
        }
    }

    /// Results of the preparation that are missing.
    fn preparation_text(&self) -> String {
        let missing: Vec<&str> = [
            (
                crate::hardware::disks::speed(self.host).outcome(),
                "the speed of the installation disk",
            ),
            (
                crate::host::images::images_outcome(&self.host.record),
                "the check of container images",
            ),
        ]
        .into_iter()
        .filter(|(outcome, _)| *outcome == CheckOutcome::Unknown)
        .map(|(_, name)| name)
        .collect();
        if missing.is_empty() {
            return "every result".to_owned();
        }
        format!("no result of {}", missing.join(" and "))
    }

    fn disk_text(&self) -> String {
        let disk = installation_disk(self.host).map_or("unknown", |disk| disk.name.as_str());
        format!("not booted from its installation disk ({disk})")
    }
}

/// The row of a host's status; none for one that is settled, or that validations explain.
pub(super) fn of_host<'a>(input: &HostInput<'a>) -> Option<StateRow<HostInput<'a>>> {
    use HostStatus as S;
    match input.host.record.status {
        // Settled.
        S::PreparingSuccessful
        | S::Installed
        | S::AddedToExistingCluster
        | S::Cancelled
        // Validations explain these.
        | S::Discovering
        | S::Known
        | S::Disconnected
        | S::Insufficient
        | S::PendingForInput
        | S::DiscoveringUnbound
        | S::KnownUnbound
        | S::DisconnectedUnbound
        | S::InsufficientUnbound => None,
        S::PreparingForInstallation | S::Installing | S::InstallingInProgress => {
            Some(installing(input))
        }
        S::PreparingFailed
        | S::InstallingPendingUserAction
        | S::ResettingPendingUserAction
        | S::UnbindingPendingUserAction
        | S::Error
        | S::Disabled
        | S::DisabledUnbound => Some(stuck(input)),
        S::Reclaiming => Some(
            StateRow::work(
                input.host.record.status.as_str(),
                HostInput::status_text,
                "an agent on the installed system that stores the discovery image",
                "Check that the agent runs on the host, or wait for the timeout and boot the discovery image.",
            )
            .within(timeout::host_reclaim(&input.host.record)),
        ),
        S::ReclaimingRebooting => Some(registering(input).within(timeout::host_reclaim(&input.host.record))),
        S::Resetting | S::Binding | S::Unbinding => {
            Some(registering(input))
        }
    }
}

/// The row of a host whose agent has to register again.
fn registering<'a>(input: &HostInput<'a>) -> StateRow<HostInput<'a>> {
    StateRow::work(
        input.host.record.status.as_str(),
        HostInput::status_text,
        "a new registration of the host's agent",
        "Check that the host runs the discovery image and reaches the service.",
    )
}

/// The row of a host that is prepared or installed.
fn installing<'a>(input: &HostInput<'a>) -> StateRow<HostInput<'a>> {
    let record = &input.host.record;
    let id = record.status.as_str();
    match record.status {
        HostStatus::PreparingForInstallation => StateRow::work(
            id,
            HostInput::preparation_text,
            "results of the disk's speed test and of the check of container images",
            "Check that the host reaches the registry and that its installation disk answers.",
        )
        .within(timeout::host_preparation(record, input.policy)),
        HostStatus::Installing => StateRow::work(
            id,
            HostInput::stage_text,
            "the agent starts the installation",
            "Check that the agent runs on the host.",
        )
        .within(timeout::host_start(record)),
        _ => {
            let stage = input.stage().unwrap_or_default();
            let single_node = input.cluster.is_some_and(roles::is_single_node);
            let row = stages::of_host(stage);
            StateRow::stage(stage.as_str(), HostInput::stage_text, &row)
                .within(timeout::host_stage(record, single_node))
        }
    }
}

/// The row of a host that waits for its user.
fn stuck<'a>(input: &HostInput<'a>) -> StateRow<HostInput<'a>> {
    let record = &input.host.record;
    let id = record.status.as_str();
    match record.status {
        HostStatus::PreparingFailed => StateRow::stuck(
            id,
            HostInput::status_text,
            "a preparation without failure",
            "Make the container images available to the host, then start the installation again.",
        ),
        HostStatus::InstallingPendingUserAction => StateRow::stuck(
            id,
            HostInput::disk_text,
            "a boot from the installation disk",
            "Boot the host from its installation disk: correct the boot order, or detach the discovery image.",
        )
        .within(timeout::host_user_action(record, input.policy)),
        HostStatus::ResettingPendingUserAction | HostStatus::UnbindingPendingUserAction => {
            StateRow::stuck(
                id,
                HostInput::status_text,
                "a boot from the discovery image",
                "Boot the host from the discovery image of its infra-env.",
            )
        }
        HostStatus::Disabled | HostStatus::DisabledUnbound => StateRow::stuck(
            id,
            HostInput::status_text,
            "an enabled host",
            "Enable the host, or delete it.",
        ),
        _ if record.can_retry => StateRow::stuck(
            id,
            HostInput::status_text,
            "an installation without failure",
            "Read the logs of the host, remove the cause, and reset the host: it is retried alone.",
        ),
        _ => StateRow::stuck(
            id,
            HostInput::status_text,
            "an installation without failure",
            "Read the logs of the host, remove the cause, and reset the installation.",
        ),
    }
}

/// A cluster, and the inputs of its rows.
pub(super) struct ClusterInput<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) policy: &'a InstallationPolicy,
}

impl ClusterInput<'_> {
    fn status_text(&self) -> String {
        self.snapshot.cluster.status_info.clone()
    }

    fn failure_text(&self) -> String {
        self.snapshot
            .cluster
            .last_installation_preparation
            .reason
            .clone()
    }

    fn preparation_text(&self) -> String {
        let status = self.snapshot.cluster.last_installation_preparation.status;
        let files = if status == Some(PreparationStatus::Success) {
            "the installation files are made"
        } else {
            "the installation files are not made yet"
        };
        format!("{files}; {}", self.counted(HostStatus::PreparingSuccessful))
    }

    fn installed_text(&self) -> String {
        self.counted(HostStatus::Installed)
    }

    fn counted(&self, status: HostStatus) -> String {
        let hosts = &self.snapshot.hosts;
        let is_reached = |host: &&HostState| host.record.status == status;
        let reached = hosts.iter().filter(is_reached).count();
        format!("{reached} of {} hosts are {status}", hosts.len())
    }

    fn operators_text(&self) -> String {
        let operators = self.snapshot.cluster.monitored_operators.iter();
        let waiting: Vec<&str> = operators
            .filter(|one| one.status != Some(OperatorStatus::Available))
            .map(|one| one.name.as_str())
            .collect();
        if waiting.is_empty() {
            return "every operator is available".to_owned();
        }
        format!("not available: {}", waiting.join(", "))
    }

    fn waiting_hosts_text(&self) -> String {
        let mut names: Vec<String> = self
            .snapshot
            .hosts
            .iter()
            .filter(|host| host.record.status == HostStatus::InstallingPendingUserAction)
            .map(HostState::name)
            .collect();
        names.sort();
        format!("hosts that wait for their user: {}", names.join(", "))
    }
}

/// The rows of a cluster's status.
pub(super) fn of_cluster<'a>(input: &ClusterInput<'a>) -> Vec<StateRow<ClusterInput<'a>>> {
    use ClusterStatus as S;
    let cluster = &input.snapshot.cluster;
    let id = cluster.status.as_str();
    let installation = || timeout::installation(cluster, input.policy);
    match cluster.status {
        // Settled.
        S::Installed | S::AddingHosts | S::Unmonitored => Vec::new(),
        // Validations explain these, except the failure of the last preparation.
        S::Insufficient | S::PendingForInput | S::Ready => {
            let failed = cluster.last_installation_preparation.status
                == Some(PreparationStatus::Failed);
            let row = StateRow::stuck(
                "preparation-failed",
                ClusterInput::failure_text,
                "a preparation without failure",
                "Remove the cause, then start the installation again.",
            );
            if failed { vec![row] } else { Vec::new() }
        }
        S::PreparingForInstallation => vec![
            StateRow::work(
                id,
                ClusterInput::preparation_text,
                "installation files, and hosts that are all prepared",
                "Check the hosts that are not prepared, and that the service reaches the registry of the release image.",
            )
            .within(timeout::preparation(cluster, input.policy)),
        ],
        S::Installing => vec![
            StateRow::work(
                id,
                ClusterInput::installed_text,
                "an installed control plane and enough installed workers",
                "Check the stages of the hosts.",
            )
            .within(installation()),
        ],
        S::InstallingPendingUserAction => vec![
            StateRow::stuck(
                id,
                ClusterInput::waiting_hosts_text,
                "hosts that boot from their installation disks",
                "Boot these hosts from their installation disks.",
            )
            .within(installation()),
        ],
        S::Finalizing => finalizing(input),
        S::Error | S::Cancelled => vec![StateRow::stuck(
            id,
            ClusterInput::status_text,
            "an installation without failure",
            "Read the logs of the cluster, remove the cause, and reset the installation.",
        )],
    }
}

fn finalizing<'a>(input: &ClusterInput<'a>) -> Vec<StateRow<ClusterInput<'a>>> {
    let cluster = &input.snapshot.cluster;
    let progress = cluster.progress.as_ref();
    let stage = progress.and_then(|progress| progress.finalizing_stage);
    let mut rows = vec![
        StateRow::work(
            cluster.status.as_str(),
            ClusterInput::operators_text,
            "every operator is available, and the controller has reported the end",
            "Check the operators that are not available (oc get clusteroperators).",
        )
        .within(timeout::finalizing(cluster, input.policy)),
    ];
    rows.extend(stage.map(|stage| {
        let row = stages::of_finalizing(stage);
        StateRow::stage(stage.as_str(), ClusterInput::operators_text, &row)
            .within(timeout::finalizing_stage(cluster, input.policy))
    }));
    rows
}
