//! Refresh rules of a host: transitions that follow from its inputs alone (heartbeat, inventory, validations, time).
//!
//! Rules of the preparing statuses check the heartbeat first: a cluster does not wait for a disconnected host.
//!
//! Source: assisted-service, internal/host/statemachine.go, where no other file is named. Each rule quotes its name
//! there; a rule without a source has no counterpart.

use model::cluster::ClusterStatus as C;
use model::host::{HostStage, HostStatus};

use HostStatus::{
    AddedToExistingCluster, Binding, Cancelled, Disconnected, DisconnectedUnbound, Discovering,
    DiscoveringUnbound, Error as Failed, Installed, Installing, InstallingInProgress,
    InstallingPendingUserAction, Insufficient, InsufficientUnbound, Known, KnownUnbound,
    PendingForInput, PreparingFailed, PreparingForInstallation, PreparingSuccessful, Reclaiming,
    ReclaimingRebooting, Resetting, ResettingPendingUserAction, Unbinding,
    UnbindingPendingUserAction,
};

use super::effects::Effect;
use super::facts::Facts;
use super::retry::RETRIED;
use super::rule::{BOOT_TO_LEAVE, EARLY, HostRule, NO_INVENTORY, READY, media_text};
use super::trigger::On;
use crate::hardware::check_outcome::CheckOutcome;
use crate::table::To;

/// Hosts without cluster.
const POOL: &[HostStatus] = &[
    DiscoveringUnbound,
    InsufficientUnbound,
    KnownUnbound,
    DisconnectedUnbound,
];

/// Tried from the top; every status ends with an unconditional rule.
pub(super) static REFRESH_RULES: &[HostRule] = &[
    // Preparation.
    // Source: "Move preparing host to disconnected when connection times out".
    HostRule {
        name: "disconnects while preparing when heartbeats time out",
        on: On::Refresh,
        from: &[PreparingForInstallation, PreparingSuccessful],
        when: |facts| !facts.connected && !facts.cluster_is(C::Installing),
        to: To::Go(Disconnected),
        info: Some(contact_text),
        then: &[],
        doc: "A host without heartbeats cannot be prepared.",
    },
    // Source: "Refresh known host in preparing cluster".
    HostRule {
        name: "starts preparing",
        on: On::Refresh,
        from: &[Known],
        when: |facts| {
            facts.role_valid && facts.connected && facts.cluster_is(C::PreparingForInstallation)
        },
        to: To::Go(PreparingForInstallation),
        info: Some(|_| {
            "Preparing: testing the installation disk and pulling container images".to_owned()
        }),
        then: &[Effect::ClearFailedImages, Effect::ClearLogs],
        doc: "The user ordered the installation.",
    },
    // Source: "Refresh successfully preparing host".
    HostRule {
        name: "is prepared",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| facts.prepared() && facts.cluster_is(C::PreparingForInstallation),
        to: To::Go(PreparingSuccessful),
        info: Some(|_| "Prepared: disk and container images passed their checks".to_owned()),
        then: &[],
        doc: "Both checks passed.",
    },
    // Source: "Preparing failed disk speed host move to insufficient".
    HostRule {
        name: "installation disk is too slow",
        on: On::Refresh,
        from: &[
            PreparingForInstallation,
            PreparingSuccessful,
            PreparingFailed,
            Known,
        ],
        when: |facts| facts.disk_speed == CheckOutcome::Failed && !facts.cluster_is(C::Installing),
        to: To::Go(Insufficient),
        info: Some(|facts| {
            format!(
                "The speed test of installation disk {} failed; choose another disk or replace it",
                facts.disk
            )
        }),
        then: &[],
        doc: "The test of the installation disk failed.",
    },
    // Source: "Stay in preparing successful".
    HostRule {
        name: "waits until every host is prepared",
        on: On::Refresh,
        from: &[PreparingSuccessful],
        when: |facts| facts.cluster_is(C::PreparingForInstallation),
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Installation starts when every host is prepared.",
    },
    // Source: "Move successfully prepared host to installing".
    HostRule {
        name: "starts installing",
        on: On::Refresh,
        from: &[PreparingSuccessful],
        when: |facts| facts.cluster_is(C::Installing),
        to: To::Go(Installing),
        info: Some(|_| "Installation starts".to_owned()),
        then: &[Effect::ClearProgress],
        doc: "The cluster's files are there and every host is prepared.",
    },
    // Source: "Preparing failed image pull host move to preparing failed".
    HostRule {
        name: "images cannot be pulled",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| {
            facts.images == CheckOutcome::Failed && facts.cluster_is(C::PreparingForInstallation)
        },
        to: To::Go(PreparingFailed),
        info: Some(|facts| {
            format!(
                "Container images could not be pulled: {}; check that the registry is reachable from the host and that the pull secret fits",
                facts.bad_images
            )
        }),
        then: &[],
        doc: "The host could not use them later either.",
    },
    // Source: "Preparing timed out host move to known".
    HostRule {
        name: "preparation times out",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| {
            facts.prepare_expired
                && facts.prepare_pending()
                && facts.cluster_is(C::PreparingForInstallation)
        },
        to: To::Go(PreparingFailed),
        info: Some(|facts| {
            let mut missing = Vec::new();
            if facts.disk_speed == CheckOutcome::Unknown {
                missing.push("the speed of the installation disk");
            }
            if facts.images == CheckOutcome::Unknown {
                missing.push("the check of container images");
            }
            format!(
                "Preparation timed out: no result of {}",
                missing.join(" and ")
            )
        }),
        then: &[],
        doc: "Missing results must not block the cluster.",
    },
    // Source: "Stay in preparing for installation".
    HostRule {
        name: "preparation in progress",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| facts.cluster_is(C::PreparingForInstallation),
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Results are pending.",
    },
    // Source: "Move preparing host to known when cluster stops preparing".
    HostRule {
        name: "preparation of the cluster ended",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |_| true,
        to: To::Go(Known),
        info: Some(|_| READY.to_owned()),
        then: &[],
        doc: "The preparation of the cluster failed or was cancelled.",
    },
    // Source: "Failed preparing to known when cluster is no longer preparing".
    HostRule {
        name: "recovers after the cluster's preparation failed",
        on: On::Refresh,
        from: &[PreparingFailed],
        when: |facts| !facts.cluster_is(C::PreparingForInstallation) && facts.connected,
        to: To::Go(Known),
        info: Some(|_| READY.to_owned()),
        then: &[],
        doc: "The cluster's text keeps the reason; the next request retries.",
    },
    // Source: "Successful preparing to known when cluster is no longer preparing".
    HostRule {
        name: "prepared, but the cluster's preparation failed",
        on: On::Refresh,
        from: &[PreparingSuccessful],
        when: |_| true,
        to: To::Go(Known),
        info: Some(|_| READY.to_owned()),
        then: &[],
        doc: "The preparation of the cluster failed or was cancelled.",
    },
    // Retry: hosts of a cluster that is being installed have these statuses only after a retry.
    HostRule {
        name: "retried host fails because the cluster failed",
        on: On::Refresh,
        from: EARLY,
        when: |facts| facts.cluster_is(C::Error) && !facts.day2,
        to: To::Go(Failed),
        info: Some(cluster_failed),
        then: &[],
        doc: "As for the hosts that were not retried.",
    },
    HostRule {
        name: "retry times out",
        on: On::Refresh,
        from: RETRIED,
        when: |facts| facts.action_expired && facts.cluster_is_installing() && !facts.day2,
        to: To::Go(Failed),
        info: Some(retry_expired),
        then: &[],
        doc: "A host that is never ready must not block a cluster that succeeds without it.",
    },
    // Heartbeat.
    // Source: "Move host to disconnected when connected times out".
    HostRule {
        name: "disconnects when heartbeats time out",
        on: On::Refresh,
        from: &[
            Discovering,
            Insufficient,
            Known,
            PendingForInput,
            Disconnected,
            PreparingFailed,
        ],
        when: |facts| !facts.connected,
        to: To::Go(Disconnected),
        info: Some(contact_text),
        then: &[],
        doc: "The agent stopped polling, or its virtual media disconnected.",
    },
    HostRule {
        name: "preparation failed",
        on: On::Refresh,
        from: &[PreparingFailed],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "The cluster's preparation decides.",
    },
    // Installation.
    // Source: "Move host to error when cluster is in error".
    HostRule {
        name: "fails because the cluster failed",
        on: On::Refresh,
        from: &[
            Installing,
            InstallingInProgress,
            Installed,
            ResettingPendingUserAction,
            InstallingPendingUserAction,
        ],
        when: |facts| facts.cluster_is(C::Error) && !facts.day2,
        to: To::Go(Failed),
        info: Some(cluster_failed),
        then: &[],
        doc: "A host is of no use without its cluster.",
    },
    // Source: "Move host to error when installation times out".
    HostRule {
        name: "installation start times out",
        on: On::Refresh,
        from: &[Installing],
        when: |facts| facts.start_expired,
        to: To::Go(Failed),
        info: Some(|_| "The host did not start its installation within 20 minutes".to_owned()),
        then: &[],
        doc: "The agent did not report the install step.",
    },
    // Source: "Move installing host to error when connection times out".
    HostRule {
        name: "fails when heartbeats time out while installing",
        on: On::Refresh,
        from: &[Installing, InstallingInProgress],
        when: |facts| !facts.connected && !facts.soft_timeouts,
        to: To::Go(Failed),
        info: Some(|facts| {
            let stage = facts.stage.map_or("the first stage", HostStage::as_str);
            format!("The host lost contact during its installation, at {stage}")
        }),
        then: &[],
        doc: "Before its reboot the agent still polls.",
    },
    // Source: "Keep installing host when connection times out".
    HostRule {
        name: "heartbeats late while installing (soft timeouts)",
        on: On::Refresh,
        from: &[Installing, InstallingInProgress],
        when: |facts| !facts.connected,
        to: To::Stay,
        info: None,
        then: &[Effect::StoreConnection],
        doc: "Soft timeouts change only the status text.",
    },
    // Source: "Ignore timeout if host is in particular installation in progress stages".
    HostRule {
        name: "waits while another host needs user action",
        on: On::Refresh,
        from: &[InstallingInProgress],
        when: |facts| {
            facts.cluster_is(C::InstallingPendingUserAction)
                && matches!(
                    facts.stage,
                    Some(
                        HostStage::WaitingForControlPlane
                            | HostStage::WaitingForController
                            | HostStage::WaitingForBootkube
                            | HostStage::Rebooting
                    )
                )
        },
        to: To::Stay,
        info: None,
        then: &[Effect::RestartStageClock, Effect::StoreConnection],
        doc: "Another host booted the wrong medium: the stage timeout is suspended.",
    },
    // Source: "Tell user about boot order wen reboot takes too long".
    HostRule {
        name: "reboot times out",
        on: On::Refresh,
        from: &[InstallingInProgress],
        when: |facts| facts.stage == Some(HostStage::Rebooting) && facts.stage_expired,
        to: To::Go(InstallingPendingUserAction),
        info: Some(|facts| {
            format!(
                "The host did not come back from its reboot within {} minutes; see that it boots from its installation disk {}",
                facts.stage_limit_min, facts.disk
            )
        }),
        then: &[],
        doc: "Usually a wrong boot order, which the user can change.",
    },
    // Source: "Move to error on timeout if host is in particular installation in progress stages …".
    HostRule {
        name: "stage times out",
        on: On::Refresh,
        from: &[InstallingInProgress],
        when: |facts| facts.stage_expired && !facts.soft_timeouts,
        to: To::Go(Failed),
        info: Some(|facts| {
            let stage = facts.stage.map_or("(none)", HostStage::as_str);
            format!(
                "The host failed to install because stage {stage} took longer than {} minutes",
                facts.stage_limit_min
            )
        }),
        then: &[],
        doc: "No progress within the timeout of the stage.",
    },
    // Source: "Indicate that timeout occurred and continue installation in particular … stages …".
    HostRule {
        name: "stage times out (soft timeouts)",
        on: On::Refresh,
        from: &[InstallingInProgress],
        when: |facts| facts.stage_expired,
        to: To::Stay,
        info: None,
        then: &[Effect::StageTimedOut, Effect::StoreConnection],
        doc: "Soft timeouts change only the status text.",
    },
    // Source: "Host pending user action timeout with cluster viability check (day1 only)".
    HostRule {
        name: "fails when the cluster proceeds without it",
        on: On::Refresh,
        from: &[InstallingPendingUserAction],
        when: |facts| {
            facts.action_expired
                && !facts.cluster_needs_it
                && !facts.cluster_is(C::Installed)
                && !facts.cluster_is(C::AddingHosts)
        },
        to: To::Go(Failed),
        info: Some(|facts| {
            format!(
                "The host was not booted from its installation disk {} in time; the cluster proceeds without it",
                facts.disk
            )
        }),
        then: &[],
        doc: "One host must not block a cluster that succeeds without it.",
    },
    // Source: "Refresh during %s state without cluster error should stay in %s state".
    HostRule {
        name: "installation in progress",
        on: On::Refresh,
        from: &[Installing, InstallingInProgress],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[Effect::StoreConnection],
        doc: "Progress reports advance it.",
    },
    // Source: "Refresh during %s state without cluster error should stay in %s state".
    HostRule {
        name: "waits for an event",
        on: On::Refresh,
        from: &[
            InstallingPendingUserAction,
            ResettingPendingUserAction,
            Installed,
        ],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Another trigger leaves this status.",
    },
    // Discovery.
    // Source: "Host reconnected without inventory".
    HostRule {
        name: "discovering until the inventory arrives",
        on: On::Refresh,
        from: &[Disconnected, Discovering],
        when: |facts| !facts.inventory,
        to: To::Go(Discovering),
        info: Some(|_| NO_INVENTORY.to_owned()),
        then: &[],
        doc: "Validations need the inventory.",
    },
    // Source: "Host has insufficient hardware".
    HostRule {
        name: "insufficient for hardware requirements",
        on: On::Refresh,
        from: EARLY,
        when: |facts| !facts.hardware_ok && !facts.inventory_truncated,
        to: To::Go(Insufficient),
        info: Some(blocking_text),
        then: &[],
        doc: "The hardware fits no role.",
    },
    // Source: "Host pending input".
    HostRule {
        name: "pending for input",
        on: On::Refresh,
        from: EARLY,
        when: |facts| facts.hardware_ok && facts.vsphere_ok && !facts.input_ok,
        to: To::Go(PendingForInput),
        info: Some(blocking_text),
        then: &[],
        doc: "Further validations depend on the user's input.",
    },
    // Source: "Host not ready".
    HostRule {
        name: "insufficient for failed validations",
        on: On::Refresh,
        from: EARLY,
        when: |facts| !facts.vsphere_ok || !facts.hardware_ok || !facts.sufficient,
        to: To::Go(Insufficient),
        info: Some(blocking_text),
        then: &[],
        doc: "A blocking validation fails or is pending.",
    },
    HostRule {
        name: "retried host starts installing",
        on: On::Refresh,
        from: &[Known],
        when: |facts| facts.cluster_is_installing() && facts.role_valid && !facts.day2,
        to: To::Go(Installing),
        info: Some(|_| "The retried host is ready: its installation starts by itself".to_owned()),
        then: &[
            Effect::ClearProgress,
            Effect::ClearLogs,
            Effect::ReportInstallation,
        ],
        doc: "The installation of its cluster is in progress: no further request is needed.",
    },
    // Source: "Host ready".
    HostRule {
        name: "all blocking validations pass",
        on: On::Refresh,
        from: EARLY,
        when: |_| true,
        to: To::Go(Known),
        info: Some(|_| READY.to_owned()),
        then: &[],
        doc: "The host is ready to install.",
    },
    // After the end.
    // Source: "Log collection timed out during %s should stay in %s".
    HostRule {
        name: "log collection times out",
        on: On::Refresh,
        from: &[Failed, Cancelled],
        when: |facts| facts.logs_overdue,
        to: To::Stay,
        info: None,
        then: &[Effect::LogsTimeOut],
        doc: "Log collection ends without logs.",
    },
    // Source: "Refresh during %s should stay in %s", "Day 2 hosts should stay in added state".
    HostRule {
        name: "final status",
        on: On::Refresh,
        from: &[Failed, Cancelled, AddedToExistingCluster, Resetting],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Only a request of the user leaves this status.",
    },
    // Source: pool_host_statemachine.go, "Refresh during %s should stay in %s".
    HostRule {
        name: "waits for its registration",
        on: On::Refresh,
        from: &[Binding, Unbinding, UnbindingPendingUserAction],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Only a registration leaves this status.",
    },
    // Source: "Refresh reclaiming host".
    HostRule {
        name: "reclaim times out",
        on: On::Refresh,
        from: &[Reclaiming, ReclaimingRebooting],
        when: |facts| facts.reclaim_expired,
        to: To::Go(UnbindingPendingUserAction),
        info: Some(|_| {
            format!("The host did not restart into the discovery image in time. {BOOT_TO_LEAVE}")
        }),
        then: &[],
        doc: "No agent runs on the host, or it did not boot the discovery image. It left its cluster before.",
    },
    // Source: "Refresh without timeout during %s should stay in %s".
    HostRule {
        name: "reclaim in progress",
        on: On::Refresh,
        from: &[Reclaiming, ReclaimingRebooting],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Replies of the agent, and then its registration, advance it.",
    },
    // Unbound hosts.
    // Source: pool_host_statemachine.go, "Move host to disconnected when connected times out".
    HostRule {
        name: "unbound host disconnects when heartbeats time out",
        on: On::Refresh,
        from: POOL,
        when: |facts| !facts.connected,
        to: To::Go(DisconnectedUnbound),
        info: Some(contact_text),
        then: &[],
        doc: "As for a host of a cluster.",
    },
    // Source: pool_host_statemachine.go, "Host reconnected without inventory".
    HostRule {
        name: "unbound host discovering until the inventory arrives",
        on: On::Refresh,
        from: POOL,
        when: |facts| !facts.inventory,
        to: To::Go(DiscoveringUnbound),
        info: Some(|_| NO_INVENTORY.to_owned()),
        then: &[],
        doc: "Validations need the inventory.",
    },
    // Source: pool_host_statemachine.go, "Host has insufficient hardware".
    HostRule {
        name: "unbound host insufficient for failed validations",
        on: On::Refresh,
        from: POOL,
        when: |facts| !facts.hardware_ok || !facts.sufficient,
        to: To::Go(InsufficientUnbound),
        info: Some(blocking_text),
        then: &[],
        doc: "The hardware fits no role.",
    },
    // Source: pool_host_statemachine.go, "Host ready".
    HostRule {
        name: "unbound host passes all validations",
        on: On::Refresh,
        from: POOL,
        when: |_| true,
        to: To::Go(KnownUnbound),
        info: Some(|_| "The host is ready to be bound to a cluster".to_owned()),
        then: &[],
        doc: "All validations of unbound hosts pass.",
    },
];

fn cluster_failed(_: &Facts) -> String {
    "The host is part of a cluster whose installation failed".to_owned()
}

fn retry_expired(facts: &Facts) -> String {
    let last = if facts.blocking.is_empty() {
        "boot it from the discovery image"
    } else {
        facts.blocking.as_str()
    };
    format!("The retried host was not ready in time: {last}")
}

fn contact_text(facts: &Facts) -> String {
    if facts.media_lost {
        return media_text(facts);
    }
    "The host stopped sending heartbeats; check that it runs and reaches the service".to_owned()
}

fn blocking_text(facts: &Facts) -> String {
    if facts.blocking.is_empty() {
        return "The host is not ready to be installed".to_owned();
    }
    facts.blocking.clone()
}
