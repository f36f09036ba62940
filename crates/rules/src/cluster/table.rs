//! The rules of a cluster's state machine.
//! Source: assisted-service, internal/cluster/statemachine.go. Each rule quotes its name there; a rule
//! without a source has no counterpart.

use model::cluster::ClusterStatus;

use ClusterStatus::{
    AddingHosts, Cancelled, Error as Failed, Finalizing, Installed, Installing,
    InstallingPendingUserAction, Insufficient, PendingForInput, PreparingForInstallation, Ready,
    Unmonitored,
};

use super::effects::{Effect, preparation_problem};
use super::facts::Facts;
use super::trigger::On;
use crate::host::progress;
use crate::table::{self, To};

/// A rule of the cluster's state machine.
pub type ClusterRule = table::TransitionRule<ClusterStatus, On, Facts, Effect>;

/// Every transition of a cluster.
pub static TABLE: &[&[ClusterRule]] = &[ROWS];

static ROWS: &[ClusterRule] = &[
    // Requests of the user.
    // Source: "Start installation".
    ClusterRule {
        name: "installation requested",
        on: On::Prepare,
        from: &[Ready],
        when: |_| true,
        to: To::Go(PreparingForInstallation),
        info: Some(|_| "Preparing for the installation".to_owned()),
        then: &[Effect::StartPreparing],
        doc: "The installation files are made while the hosts test their disks and pull images.",
    },
    // Source: "Cancel installation of preparing cluster".
    ClusterRule {
        name: "cancelled during preparation",
        on: On::Cancel,
        from: &[PreparingForInstallation],
        when: |_| true,
        to: To::Go(Ready),
        info: Some(|_| "The installation was cancelled before it began".to_owned()),
        then: &[Effect::CancelHosts, Effect::ReportCancelled],
        doc: "Nothing was written to any host.",
    },
    // Source: "Cancel installation of installing cluster".
    ClusterRule {
        name: "cancelled",
        on: On::Cancel,
        from: &[Installing, InstallingPendingUserAction, Failed, Finalizing],
        when: |_| true,
        to: To::Go(Cancelled),
        info: Some(|_| "The installation was cancelled".to_owned()),
        then: &[Effect::CancelHosts, Effect::ReportCancelled],
        doc: "Agents stop and collect logs.",
    },
    // Source: "Reset installation".
    ClusterRule {
        name: "reset",
        on: On::Reset,
        from: &[
            PreparingForInstallation,
            Installing,
            InstallingPendingUserAction,
            Failed,
            Cancelled,
            Finalizing,
        ],
        when: |_| true,
        to: To::Go(Insufficient),
        info: Some(|_| {
            "The installation was reset; boot the hosts from the discovery image again".to_owned()
        }),
        then: &[
            Effect::ClearInstallation,
            Effect::ResetHosts,
            Effect::ReportReset,
        ],
        doc: "Settings stay; files and progress of the installation are removed.",
    },
    // Source: internal/cluster/cluster.go, TransformClusterToDay2.
    ClusterRule {
        name: "accepts day-2 hosts",
        on: On::AddHosts,
        from: &[Installed],
        when: |_| true,
        to: To::Go(AddingHosts),
        info: Some(|_| "The cluster is installed and accepts further hosts".to_owned()),
        then: &[Effect::AcceptDay2Hosts],
        doc: "Hosts that register from now on join the installed cluster, each on its own.",
    },
    // Before the installation.
    // Source: "Refresh discovering cluster - detect required input".
    ClusterRule {
        name: "pending for input",
        on: On::Refresh,
        from: &[PendingForInput, Ready, Insufficient],
        when: |facts| facts.input_missing,
        to: To::Go(PendingForInput),
        info: Some(|facts| blocking("User input is required", facts)),
        then: &[],
        doc: "An input of the user is missing.",
    },
    // Source: "Refresh discovering cluster - detect insufficient".
    ClusterRule {
        name: "insufficient for failed validations",
        on: On::Refresh,
        from: &[PendingForInput, Ready, Insufficient],
        when: |facts| !facts.ready,
        to: To::Go(Insufficient),
        info: Some(|facts| blocking("The cluster is not ready to be installed", facts)),
        then: &[],
        doc: "A blocking validation fails or is pending.",
    },
    ClusterRule {
        name: "ready after a failed preparation",
        on: On::Refresh,
        from: &[PendingForInput, Ready, Insufficient],
        when: |facts| facts.preparation_failed,
        to: To::Go(Ready),
        info: Some(retry),
        then: &[],
        doc: "The status text keeps the reason until the next request.",
    },
    // Source: "Refresh discovering cluster - detect ready".
    ClusterRule {
        name: "all blocking validations pass",
        on: On::Refresh,
        from: &[PendingForInput, Ready, Insufficient],
        when: |_| true,
        to: To::Go(Ready),
        info: Some(|_| "The cluster is ready to be installed".to_owned()),
        then: &[],
        doc: "The installation can be requested.",
    },
    // Preparation.
    // Source: "Refresh preparing cluster - done preparing".
    ClusterRule {
        name: "preparation succeeded",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| facts.hosts_prepared && facts.prepared,
        to: To::Go(Installing),
        info: Some(|_| "The installation is in progress".to_owned()),
        then: &[Effect::StartInstalling],
        doc: "Files and hosts are ready.",
    },
    // Source: "Refresh preparing cluster - insufficient".
    ClusterRule {
        name: "a host disconnects during preparation",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| !facts.hosts_left_preparing.is_empty(),
        to: To::Go(Insufficient),
        info: Some(|facts| format!("The preparation ended: {}", facts.hosts_left_preparing)),
        then: &[Effect::FailPreparation],
        doc: "The plan needs every host.",
    },
    // Source: "Refresh preparing cluster - failed".
    ClusterRule {
        name: "preparation failed",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| facts.preparation_failed || !facts.hosts_failed_preparing.is_empty(),
        to: To::Go(Ready),
        info: Some(retry),
        then: &[Effect::FailPreparation],
        doc: "The installation can be requested again once the cause is removed.",
    },
    // Source: "Refresh preparing cluster - detect timeout".
    ClusterRule {
        name: "preparation times out",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| facts.prepare_expired,
        to: To::Go(Ready),
        info: Some(retry),
        then: &[Effect::FailPreparation, Effect::ReportPreparationTimeout],
        doc: "The timeout of the preparation.",
    },
    // Source: "Maintain %s state".
    ClusterRule {
        name: "preparation in progress",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Files are being made, hosts are being checked.",
    },
    // Pending user action.
    // Source: unnamed, installing-pending-user-action to error.
    ClusterRule {
        name: "too few hosts left, pending user action",
        on: On::Refresh,
        from: &[InstallingPendingUserAction],
        when: |facts| !facts.can_install,
        to: To::Go(Failed),
        info: Some(lost_hosts),
        then: &[Effect::ReportFailed],
        doc: "Too few hosts are left.",
    },
    // Source: "Timed out while waiting for user".
    ClusterRule {
        name: "pending user action times out",
        on: On::Refresh,
        from: &[InstallingPendingUserAction],
        when: |facts| facts.installation_expired,
        to: To::Go(Failed),
        info: Some(|facts| format!("The installation timed out. {}", boot_hint(facts))),
        then: &[Effect::ReportFailed],
        doc: "The timeout of the installation.",
    },
    // Source: unnamed, stays in installing-pending-user-action.
    ClusterRule {
        name: "pending user action",
        on: On::Refresh,
        from: &[InstallingPendingUserAction],
        when: Facts::awaits_user,
        to: To::Stay,
        info: Some(boot_hint),
        then: &[],
        doc: "Only a person can change the boot order, boot the discovery image or retry a host.",
    },
    // Source: unnamed, installing-pending-user-action to finalizing.
    ClusterRule {
        name: "resumes finalizing",
        on: On::Refresh,
        from: &[InstallingPendingUserAction],
        when: |facts| facts.can_finalize || facts.finalizing_stage.is_some(),
        to: To::Go(Finalizing),
        info: Some(|_| "The installation is being finalized".to_owned()),
        then: &[Effect::RestartFinalizingStage],
        doc: "The host booted from its disk.",
    },
    // Source: unnamed, installing-pending-user-action to installing.
    ClusterRule {
        name: "resumes installing",
        on: On::Refresh,
        from: &[InstallingPendingUserAction],
        when: |_| true,
        to: To::Go(Installing),
        info: Some(|_| "The installation is in progress".to_owned()),
        then: &[],
        doc: "The host booted from its disk.",
    },
    // Source: "Installation error".
    ClusterRule {
        name: "too few hosts left",
        on: On::Refresh,
        from: &[Installing, Finalizing],
        when: |facts| !facts.can_install,
        to: To::Go(Failed),
        info: Some(lost_hosts),
        then: &[Effect::ReportFailed],
        doc: "Too few hosts are left.",
    },
    // Source: unnamed, installing or finalizing to installing-pending-user-action.
    ClusterRule {
        name: "a host needs user action",
        on: On::Refresh,
        from: &[Installing, Finalizing],
        when: Facts::awaits_user,
        to: To::Go(InstallingPendingUserAction),
        info: Some(boot_hint),
        then: &[],
        doc: "A host booted the image instead of its disk, is retried, or can be retried.",
    },
    // Installation.
    // Source: "Finalizing complete".
    ClusterRule {
        name: "installation completed",
        on: On::Refresh,
        from: &[Finalizing],
        when: Facts::is_complete,
        to: To::Go(Installed),
        info: Some(complete),
        then: &[Effect::ReportCompleted],
        doc: "Enough hosts and operators succeeded.",
    },
    // Source: "Timed out while installing".
    ClusterRule {
        name: "installation times out",
        on: On::Refresh,
        from: &[Installing, Finalizing],
        when: |facts| facts.installation_expired && !facts.soft_timeouts,
        to: To::Go(Failed),
        info: Some(|_| "The installation timed out".to_owned()),
        then: &[Effect::ReportFailed],
        doc: "The timeout of the whole installation.",
    },
    // Source: "Timed out while finalizing".
    ClusterRule {
        name: "finalizing times out",
        on: On::Refresh,
        from: &[Finalizing],
        when: |facts| facts.finalizing_expired && !facts.soft_timeouts,
        to: To::Go(Failed),
        info: Some(|facts| format!("Finalizing timed out{}", stage(facts))),
        then: &[Effect::ReportFailed],
        doc: "The timeout of finalizing.",
    },
    // Source: "Finalizing stage timed out.  Move to error".
    ClusterRule {
        name: "finalizing stage times out",
        on: On::Refresh,
        from: &[Finalizing],
        when: |facts| {
            facts.finalizing_stage_expired
                && !facts.soft_timeouts
                && !facts.finalizing_stage.is_some_and(progress::is_olm_stage)
        },
        to: To::Go(Failed),
        info: Some(|facts| {
            format!(
                "Finalizing failed because it took longer than {} minutes{}",
                facts.finalizing_limit_min,
                stage(facts)
            )
        }),
        then: &[Effect::ReportFailed],
        doc: "The timeout of the stage.",
    },
    // Source: "Finalizing stage is taking too long.  Emit an appropriate event".
    ClusterRule {
        name: "finalizing stage times out (soft timeouts)",
        on: On::Refresh,
        from: &[Finalizing],
        when: |facts| facts.finalizing_stage_expired,
        to: To::Stay,
        info: None,
        then: &[Effect::FinalizingStageTimedOut],
        doc: "Soft timeouts, and stages of added operators, change only the status text.",
    },
    // Source: "Move to finalizing".
    ClusterRule {
        name: "starts finalizing",
        on: On::Refresh,
        from: &[Installing],
        when: |facts| facts.can_finalize,
        to: To::Go(Finalizing),
        info: Some(|_| "The installation is being finalized".to_owned()),
        then: &[],
        doc: "The control plane and enough workers are installed.",
    },
    // Source: "Stay in installing", "Maintain %s state".
    ClusterRule {
        name: "installation in progress",
        on: On::Refresh,
        from: &[Installing, Finalizing],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Reports of hosts and operators advance it.",
    },
    // After the end.
    // Source: "Log collection timeout during %s".
    ClusterRule {
        name: "log collection times out",
        on: On::Refresh,
        from: &[Failed, Cancelled],
        when: |facts| facts.logs_overdue,
        to: To::Stay,
        info: None,
        then: &[Effect::LogsTimeOut],
        doc: "Log collection ends without logs.",
    },
    // Source: "Maintain %s state".
    ClusterRule {
        name: "final status",
        on: On::Refresh,
        from: &[Installed, Failed, Cancelled, AddingHosts, Unmonitored],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Only a request of the user leaves this status.",
    },
];

fn blocking(what: &str, facts: &Facts) -> String {
    if facts.blocking.is_empty() {
        return what.to_owned();
    }
    format!("{what}: {}", facts.blocking)
}

fn retry(facts: &Facts) -> String {
    format!(
        "The last preparation failed: {}. The installation can be started again once the cause is fixed",
        preparation_problem(facts).trim_end_matches('.')
    )
}

fn lost_hosts(facts: &Facts) -> String {
    if facts.hosts_in_error.is_empty() {
        return "The installation failed: too few hosts are left".to_owned();
    }
    format!(
        "The installation failed: hosts in error: {}",
        facts.hosts_in_error
    )
}

fn boot_hint(facts: &Facts) -> String {
    let hints = [
        (
            "Boot these hosts from their installation disks",
            &facts.hosts_pending_action,
        ),
        (
            "Boot these hosts from the discovery image",
            &facts.hosts_pending_reset,
        ),
        (
            "Reset these failed hosts to retry them, or reset the cluster",
            &facts.hosts_pending_retry,
        ),
    ];
    let hints = hints.iter().filter(|(_, hosts)| !hosts.is_empty());
    let hints: Vec<String> = hints
        .map(|(hint, hosts)| format!("{hint}: {hosts}"))
        .collect();
    hints.join(". ")
}

fn stage(facts: &Facts) -> String {
    facts
        .finalizing_stage
        .map_or_else(String::new, |stage| format!(", in stage {stage}"))
}

fn complete(facts: &Facts) -> String {
    let mut text = String::from("The cluster is installed");
    if !facts.olm_failed.is_empty() {
        text.push_str("; it is degraded because these operators failed: ");
        text.push_str(&facts.olm_failed);
    }
    if !facts.hosts_in_error.is_empty() {
        text.push_str("; it lacks these hosts, which failed: ");
        text.push_str(&facts.hosts_in_error);
    }
    text
}
