//! The host's table, row by row.
//!
//! Rows of one occasion are tried from the top. Refresh rows of the preparing statuses ask for the connection
//! first, so that a host that vanished is not waited for.

use model::Error;
use model::cluster::ClusterStatus as C;
use model::host::{HostStage, HostStatus};

use HostStatus::{
    AddedToExistingCluster, Binding, Cancelled, Disconnected, DisconnectedUnbound, Discovering,
    DiscoveringUnbound, Error as Failed, Installed, Installing, InstallingInProgress,
    InstallingPendingUserAction, Insufficient, InsufficientUnbound, Known, KnownUnbound,
    PendingForInput, PreparingFailed, PreparingForInstallation, PreparingSuccessful, Resetting,
    ResettingPendingUserAction, Unbinding, UnbindingPendingUserAction,
};

use super::effects::Effect;
use super::facts::{Facts, Outcome, StageMove};
use super::trigger::On;
use crate::table::{self, To};

/// A row of the host's table.
pub type Rule = table::Rule<HostStatus, On, Facts, Effect>;

/// Statuses in which a host of a cluster is still being looked at.
const EARLY: &[HostStatus] = &[
    Discovering,
    Insufficient,
    Known,
    PendingForInput,
    Disconnected,
];
const POOL: &[HostStatus] = &[
    DiscoveringUnbound,
    InsufficientUnbound,
    KnownUnbound,
    DisconnectedUnbound,
];

/// Every way in which a host's status changes, and what is refused.
pub static TABLE: &[Rule] = &[
    // Registering again.
    Rule {
        name: "registers while preparing",
        on: On::Register,
        from: &[PreparingForInstallation, PreparingSuccessful],
        when: |_| true,
        to: To::Go(Known),
        info: Some(|_| "The host registered again while it was being prepared".to_owned()),
        then: &[
            Effect::Register,
            Effect::ClearProgress,
            Effect::ClearImages,
            Effect::ClearLogs,
        ],
        doc: "Inventory and bootstrap role survive; preparation begins anew.",
    },
    Rule {
        name: "registers",
        on: On::Register,
        from: &[
            Discovering,
            Known,
            Disconnected,
            Insufficient,
            PreparingFailed,
            ResettingPendingUserAction,
            Binding,
            PendingForInput,
        ],
        when: |_| true,
        to: To::Go(Discovering),
        info: Some(|_| "Waiting for the host to send its inventory".to_owned()),
        then: &[
            Effect::Register,
            Effect::ClearInventory,
            Effect::ClearBootstrap,
            Effect::ClearImages,
            Effect::ClearProgress,
            Effect::ClearLogs,
            Effect::ClearNtp,
        ],
        doc: "A fresh start of the agent: everything is learnt again. Role, disk choice and disk speed survive.",
    },
    Rule {
        name: "registers while resetting",
        on: On::Register,
        from: &[Resetting],
        when: |facts| facts.stage == Some(HostStage::Rebooting),
        to: To::Stay,
        info: None,
        then: &[],
        doc: "The reboot of the reset is still under way.",
    },
    Rule {
        name: "registers after a reset",
        on: On::Register,
        from: &[Resetting],
        when: |_| true,
        to: To::Go(Discovering),
        info: Some(|_| "Waiting for the host to send its inventory".to_owned()),
        then: &[
            Effect::Register,
            Effect::ClearInventory,
            Effect::ClearBootstrap,
            Effect::ClearProgress,
        ],
        doc: "The reset is complete.",
    },
    Rule {
        name: "boots the image again",
        on: On::Register,
        from: &[InstallingInProgress, AddedToExistingCluster],
        when: |facts| {
            facts.stage == Some(HostStage::Rebooting)
                || (facts.day2 && facts.stage == Some(HostStage::Done))
        },
        to: To::Go(InstallingPendingUserAction),
        info: Some(wrong_boot),
        then: &[Effect::Register],
        doc: "The firmware booted the image instead of the disk that was written.",
    },
    Rule {
        name: "boots the image yet again",
        on: On::Register,
        from: &[InstallingPendingUserAction],
        when: |_| true,
        to: To::Refuse(|facts| Error::Forbidden {
            reason: wrong_boot(facts),
        }),
        info: None,
        then: &[],
        doc: "The agent stops asking when it is forbidden to: only a boot from disk helps.",
    },
    Rule {
        name: "reboots unexpectedly",
        on: On::Register,
        from: &[Installing, InstallingInProgress],
        when: |_| true,
        to: To::Go(Failed),
        info: Some(|facts| {
            let stage = facts
                .stage
                .map_or("before the first stage".to_owned(), |stage| {
                    format!("in stage {stage}")
                });
            format!("The host rebooted unexpectedly during its installation, {stage}")
        }),
        then: &[Effect::Register],
        doc: "What was being installed is lost.",
    },
    Rule {
        name: "registers after a failure",
        on: On::Register,
        from: &[Failed],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[Effect::Register],
        doc: "The failure stays until the cluster is reset.",
    },
    Rule {
        name: "registers though installed",
        on: On::Register,
        from: &[Installed],
        when: |_| true,
        to: To::Refuse(|facts| {
            Error::conflict(format!(
                "the host is installed already; boot it from its disk {}, or reset the cluster to install it anew",
                facts.disk
            ))
        }),
        info: None,
        then: &[],
        doc: "An installed host that boots the image must not be taken for a new one.",
    },
    Rule {
        name: "registers unbound",
        on: On::Register,
        from: &[
            DiscoveringUnbound,
            DisconnectedUnbound,
            InsufficientUnbound,
            KnownUnbound,
            Unbinding,
            UnbindingPendingUserAction,
        ],
        when: |_| true,
        to: To::Go(DiscoveringUnbound),
        info: Some(|_| "Waiting for the host to send its inventory".to_owned()),
        then: &[
            Effect::Register,
            Effect::ClearInventory,
            Effect::ClearProgress,
            Effect::ClearNtp,
        ],
        doc: "A fresh start of the agent of a host without cluster.",
    },
    // Progress reports.
    Rule {
        name: "reports failure",
        on: On::Progress,
        from: &[
            Installing,
            InstallingInProgress,
            InstallingPendingUserAction,
        ],
        when: |facts| reported(facts, HostStage::Failed),
        to: To::Go(Failed),
        info: Some(|facts| format!("Failed: {}", said(facts))),
        then: &[],
        doc: "The installer gave up.",
    },
    Rule {
        name: "reports what it cannot",
        on: On::Progress,
        from: &[
            Installing,
            InstallingInProgress,
            InstallingPendingUserAction,
        ],
        when: |facts| matches!(step(facts), Some(StageMove::Back | StageMove::Foreign)),
        to: To::Refuse(|facts| {
            let stage = facts.report.as_ref().map(|report| report.stage);
            Error::conflict(format!(
                "stage {} cannot follow stage {}: stages go forward in the order of the host's progress_stages",
                stage.map_or("(none)", HostStage::as_str),
                facts.stage.map_or("(none)", HostStage::as_str),
            ))
        }),
        info: None,
        then: &[],
        doc: "Stages only go forward, and each role has its own.",
    },
    Rule {
        name: "joined a cluster",
        on: On::Progress,
        from: &[
            Installing,
            InstallingInProgress,
            InstallingPendingUserAction,
        ],
        when: |facts| {
            facts.day2
                && (reported(facts, HostStage::Done) || reported(facts, HostStage::Rebooting))
        },
        to: To::Go(AddedToExistingCluster),
        info: Some(|_| {
            "The host has rebooted and joins the cluster; its certificate requests must be approved"
                .to_owned()
        }),
        then: &[Effect::StoreStage],
        doc: "After its reboot such a host is out of sight.",
    },
    Rule {
        name: "is done",
        on: On::Progress,
        from: &[
            Installing,
            InstallingInProgress,
            InstallingPendingUserAction,
        ],
        when: |facts| reported(facts, HostStage::Done),
        to: To::Go(Installed),
        info: Some(stage_text),
        then: &[Effect::StoreStage],
        doc: "The node is part of its cluster.",
    },
    Rule {
        name: "reports a stage",
        on: On::Progress,
        from: &[
            Installing,
            InstallingInProgress,
            InstallingPendingUserAction,
        ],
        when: |_| true,
        to: To::Go(InstallingInProgress),
        info: Some(stage_text),
        then: &[Effect::StoreStage],
        doc: "The installation moves on; also a host that booted wrongly has come back from its disk.",
    },
    Rule {
        name: "reports late",
        on: On::Progress,
        from: &[Installed, ResettingPendingUserAction],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "A last word of an installer that has not heard yet.",
    },
    Rule {
        name: "cannot run the installer",
        on: On::InstallationFailed,
        from: &[Installing, InstallingInProgress],
        when: |_| true,
        to: To::Go(Failed),
        info: Some(|facts| format!("The installation command failed: {}", facts.reason)),
        then: &[],
        doc: "The install step ended with an error.",
    },
    // The boot medium.
    Rule {
        name: "loses its medium",
        on: On::MediaDisconnected,
        from: &[
            Discovering,
            Insufficient,
            Known,
            PendingForInput,
            Disconnected,
            Binding,
            PreparingFailed,
        ],
        when: |_| true,
        to: To::Go(Disconnected),
        info: Some(media_text),
        then: &[Effect::LoseMedia],
        doc: "Virtual media was unplugged: nothing can be read from the live system any more.",
    },
    Rule {
        name: "loses its medium while installing",
        on: On::MediaDisconnected,
        from: &[
            PreparingForInstallation,
            PreparingSuccessful,
            Installing,
            InstallingInProgress,
            Failed,
        ],
        when: |_| true,
        to: To::Go(Failed),
        info: Some(media_text),
        then: &[Effect::LoseMedia],
        doc: "The installer runs from the medium, so it cannot go on.",
    },
    Rule {
        name: "loses its medium unbound",
        on: On::MediaDisconnected,
        from: &[
            DiscoveringUnbound,
            InsufficientUnbound,
            KnownUnbound,
            DisconnectedUnbound,
            Unbinding,
        ],
        when: |_| true,
        to: To::Go(DisconnectedUnbound),
        info: Some(media_text),
        then: &[Effect::LoseMedia],
        doc: "As for a host of a cluster.",
    },
    // Cancelling and resetting.
    Rule {
        name: "is cancelled",
        on: On::Cancel,
        from: &[
            InstallingPendingUserAction,
            Installing,
            InstallingInProgress,
            Installed,
            Failed,
        ],
        when: |_| true,
        to: To::Go(Cancelled),
        info: Some(|_| "The installation was cancelled".to_owned()),
        then: &[Effect::TellCancelled],
        doc: "The agent is told to stop and to gather logs.",
    },
    Rule {
        name: "is cancelled before it began",
        on: On::Cancel,
        from: &[
            PreparingForInstallation,
            PreparingSuccessful,
            PreparingFailed,
            Known,
        ],
        when: |_| true,
        to: To::Go(Known),
        info: Some(|_| READY.to_owned()),
        then: &[],
        doc: "Nothing was written yet.",
    },
    Rule {
        name: "is reset",
        on: On::Reset,
        from: &[
            Resetting,
            Discovering,
            Known,
            InstallingPendingUserAction,
            Installing,
            PreparingForInstallation,
            PreparingSuccessful,
            PreparingFailed,
            PendingForInput,
            ResettingPendingUserAction,
            InstallingInProgress,
            Installed,
            Failed,
            Cancelled,
            AddedToExistingCluster,
        ],
        when: |_| true,
        to: To::Go(ResettingPendingUserAction),
        info: Some(|_| {
            "To complete the reset, boot the host from the discovery image again".to_owned()
        }),
        then: &[
            Effect::ClearProgress,
            Effect::ClearImages,
            Effect::ClearLogs,
            Effect::TellReset,
        ],
        doc: "The service cannot reboot a host: its user must.",
    },
    // Joining and leaving a cluster.
    Rule {
        name: "is bound",
        on: On::Bind,
        from: &[KnownUnbound],
        when: |_| true,
        to: To::Go(Binding),
        info: Some(|_| "Waiting for the agent to register for its new cluster".to_owned()),
        then: &[Effect::ClearCluster, Effect::ClearInventory, Effect::Bind],
        doc: "The agent is told to exit and registers again, which brings everything fresh.",
    },
    Rule {
        name: "is unbound",
        on: On::Unbind,
        from: EARLY,
        when: |_| true,
        to: To::Go(Unbinding),
        info: Some(|_| "Waiting for the agent to register without a cluster".to_owned()),
        then: &[Effect::ClearCluster],
        doc: "The agent still runs: it exits and registers again.",
    },
    Rule {
        name: "is unbound after installing",
        on: On::Unbind,
        from: &[
            PreparingForInstallation,
            PreparingSuccessful,
            PreparingFailed,
            Installing,
            InstallingInProgress,
            InstallingPendingUserAction,
            Installed,
            AddedToExistingCluster,
            Failed,
            Cancelled,
        ],
        when: |_| true,
        to: To::Go(UnbindingPendingUserAction),
        info: Some(|_| {
            "To complete the unbinding, boot the host from the discovery image again".to_owned()
        }),
        then: &[Effect::ClearCluster],
        doc: "No agent runs that could register again.",
    },
    // Preparing.
    Rule {
        name: "vanishes while preparing",
        on: On::Refresh,
        from: &[PreparingForInstallation, PreparingSuccessful],
        when: |facts| !facts.connected && !facts.cluster_is(C::Installing),
        to: To::Go(Disconnected),
        info: Some(contact_text),
        then: &[],
        doc: "A host that does not call cannot be prepared.",
    },
    Rule {
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
    Rule {
        name: "is prepared",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| facts.prepared() && facts.cluster_is(C::PreparingForInstallation),
        to: To::Go(PreparingSuccessful),
        info: Some(|_| {
            "Prepared: disk and container images are fit for the installation".to_owned()
        }),
        then: &[],
        doc: "Both checks came back good.",
    },
    Rule {
        name: "waits for the others",
        on: On::Refresh,
        from: &[PreparingSuccessful],
        when: |facts| facts.cluster_is(C::PreparingForInstallation),
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Installation starts when every host is prepared.",
    },
    Rule {
        name: "starts installing",
        on: On::Refresh,
        from: &[PreparingSuccessful],
        when: |facts| facts.cluster_is(C::Installing),
        to: To::Go(Installing),
        info: Some(|_| "Installation starts".to_owned()),
        then: &[Effect::ClearProgress],
        doc: "The cluster's files are there and every host is prepared.",
    },
    Rule {
        name: "disk is too slow",
        on: On::Refresh,
        from: &[PreparingForInstallation, PreparingFailed, Known],
        when: |facts| facts.disk_speed == Outcome::Failed,
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
    Rule {
        name: "images cannot be pulled",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| {
            facts.images == Outcome::Failed && facts.cluster_is(C::PreparingForInstallation)
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
    Rule {
        name: "prepares too long",
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
            if facts.disk_speed == Outcome::Unknown {
                missing.push("the speed of the installation disk");
            }
            if facts.images == Outcome::Unknown {
                missing.push("the check of container images");
            }
            format!(
                "Preparation took too long: no result of {}",
                missing.join(" and ")
            )
        }),
        then: &[],
        doc: "Results that never come must not hold the cluster up.",
    },
    Rule {
        name: "is being prepared",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |facts| facts.cluster_is(C::PreparingForInstallation),
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Results are awaited.",
    },
    Rule {
        name: "need not prepare any more",
        on: On::Refresh,
        from: &[PreparingForInstallation],
        when: |_| true,
        to: To::Go(Known),
        info: Some(|_| READY.to_owned()),
        then: &[],
        doc: "The cluster gave the preparation up.",
    },
    Rule {
        name: "cluster gave up with it",
        on: On::Refresh,
        from: &[PreparingFailed],
        when: |facts| !facts.cluster_is(C::PreparingForInstallation) && facts.connected,
        to: To::Go(Known),
        info: Some(|_| READY.to_owned()),
        then: &[],
        doc: "The cluster's text keeps the reason; the next order tries again.",
    },
    Rule {
        name: "prepared in vain",
        on: On::Refresh,
        from: &[PreparingSuccessful],
        when: |_| true,
        to: To::Go(Known),
        info: Some(|_| READY.to_owned()),
        then: &[],
        doc: "The cluster gave the preparation up.",
    },
    // Losing contact.
    Rule {
        name: "vanishes",
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
        doc: "The agent stopped calling, or lost its medium.",
    },
    Rule {
        name: "waits for its user",
        on: On::Refresh,
        from: &[PreparingFailed],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "The cluster decides next.",
    },
    // Installing.
    Rule {
        name: "fails with its cluster",
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
        info: Some(|_| "The host is part of a cluster whose installation failed".to_owned()),
        then: &[],
        doc: "Its work is of no use without the rest.",
    },
    Rule {
        name: "never starts",
        on: On::Refresh,
        from: &[Installing],
        when: |facts| facts.start_expired,
        to: To::Go(Failed),
        info: Some(|_| "The host did not start its installation within 20 minutes".to_owned()),
        then: &[],
        doc: "The install step was never taken.",
    },
    Rule {
        name: "vanishes while installing",
        on: On::Refresh,
        from: &[Installing, InstallingInProgress],
        when: |facts| !facts.connected && !facts.soft_timeouts,
        to: To::Go(Failed),
        info: Some(|facts| {
            let stage = facts.stage.map_or("the first stage", HostStage::as_str);
            format!("The host lost contact during its installation, at {stage}")
        }),
        then: &[],
        doc: "Before its reboot the host is expected to call.",
    },
    Rule {
        name: "is out of sight",
        on: On::Refresh,
        from: &[Installing, InstallingInProgress],
        when: |facts| !facts.connected,
        to: To::Stay,
        info: None,
        then: &[Effect::NoteConnection],
        doc: "With soft timeouts it is only shown.",
    },
    Rule {
        name: "waits for another host",
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
        then: &[Effect::KeepStageFresh, Effect::NoteConnection],
        doc: "Another host booted wrongly: the waiting is not this host's fault.",
    },
    Rule {
        name: "does not come back",
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
        doc: "Mostly a matter of the boot order, which its user can set right.",
    },
    Rule {
        name: "stage takes too long",
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
        doc: "Nothing was heard of the stage for its limit.",
    },
    Rule {
        name: "stage is slow",
        on: On::Refresh,
        from: &[InstallingInProgress],
        when: |facts| facts.stage_expired,
        to: To::Stay,
        info: None,
        then: &[Effect::StageTimedOut, Effect::NoteConnection],
        doc: "With soft timeouts it is only told.",
    },
    Rule {
        name: "is left behind",
        on: On::Refresh,
        from: &[InstallingPendingUserAction],
        when: |facts| {
            facts.action_expired
                && !facts.cluster_lacks_it
                && !facts.cluster_is(C::Installed)
                && !facts.cluster_is(C::AddingHosts)
        },
        to: To::Go(Failed),
        info: Some(|facts| {
            format!(
                "The host was not booted from its installation disk {} in time; the cluster goes on without it",
                facts.disk
            )
        }),
        then: &[],
        doc: "One host must not hold up a cluster that can do without it.",
    },
    Rule {
        name: "goes on",
        on: On::Refresh,
        from: &[Installing, InstallingInProgress],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[Effect::NoteConnection],
        doc: "The installer moves it on.",
    },
    Rule {
        name: "rests",
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
        doc: "Others move it on.",
    },
    // Being looked at.
    Rule {
        name: "waits for an inventory",
        on: On::Refresh,
        from: &[Disconnected, Discovering],
        when: |facts| !facts.inventory,
        to: To::Go(Discovering),
        info: Some(|_| "Waiting for the host to send its inventory".to_owned()),
        then: &[],
        doc: "Nothing can be judged yet.",
    },
    Rule {
        name: "lacks hardware",
        on: On::Refresh,
        from: EARLY,
        when: |facts| !facts.hardware_ok && !facts.inventory_truncated,
        to: To::Go(Insufficient),
        info: Some(blocking_text),
        then: &[],
        doc: "It is of no use for any role.",
    },
    Rule {
        name: "waits for input",
        on: On::Refresh,
        from: EARLY,
        when: |facts| facts.hardware_ok && facts.vsphere_ok && !facts.input_ok,
        to: To::Go(PendingForInput),
        info: Some(blocking_text),
        then: &[],
        doc: "What the user enters for the cluster decides the rest.",
    },
    Rule {
        name: "is insufficient",
        on: On::Refresh,
        from: EARLY,
        when: |facts| !facts.vsphere_ok || !facts.hardware_ok || !facts.sufficient,
        to: To::Go(Insufficient),
        info: Some(blocking_text),
        then: &[],
        doc: "Something that blocks its installation fails or is awaited.",
    },
    Rule {
        name: "is known",
        on: On::Refresh,
        from: EARLY,
        when: |_| true,
        to: To::Go(Known),
        info: Some(|_| READY.to_owned()),
        then: &[],
        doc: "Everything that blocks passes.",
    },
    // After the end.
    Rule {
        name: "logs do not come",
        on: On::Refresh,
        from: &[Failed, Cancelled],
        when: |facts| facts.logs_overdue,
        to: To::Stay,
        info: None,
        then: &[Effect::LogsTimeOut],
        doc: "Nobody should wait for them any longer.",
    },
    Rule {
        name: "is at its end",
        on: On::Refresh,
        from: &[Failed, Cancelled, AddedToExistingCluster, Resetting],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "Only its user moves it on.",
    },
    Rule {
        name: "is on its way",
        on: On::Refresh,
        from: &[Binding, Unbinding, UnbindingPendingUserAction],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[],
        doc: "The next registration moves it on.",
    },
    // Without a cluster.
    Rule {
        name: "vanishes unbound",
        on: On::Refresh,
        from: POOL,
        when: |facts| !facts.connected,
        to: To::Go(DisconnectedUnbound),
        info: Some(contact_text),
        then: &[],
        doc: "As for a host of a cluster.",
    },
    Rule {
        name: "waits for an inventory unbound",
        on: On::Refresh,
        from: POOL,
        when: |facts| !facts.inventory,
        to: To::Go(DiscoveringUnbound),
        info: Some(|_| "Waiting for the host to send its inventory".to_owned()),
        then: &[],
        doc: "Nothing can be judged yet.",
    },
    Rule {
        name: "is insufficient unbound",
        on: On::Refresh,
        from: POOL,
        when: |facts| !facts.hardware_ok || !facts.sufficient,
        to: To::Go(InsufficientUnbound),
        info: Some(blocking_text),
        then: &[],
        doc: "It is of no use for any role.",
    },
    Rule {
        name: "is known unbound",
        on: On::Refresh,
        from: POOL,
        when: |_| true,
        to: To::Go(KnownUnbound),
        info: Some(|_| "The host is ready to be bound to a cluster".to_owned()),
        then: &[],
        doc: "Everything that can be judged without a cluster passes.",
    },
];

const READY: &str = "The host is ready to be installed";

fn reported(facts: &Facts, stage: HostStage) -> bool {
    facts
        .report
        .as_ref()
        .is_some_and(|report| report.stage == stage)
}

fn step(facts: &Facts) -> Option<StageMove> {
    facts.report.as_ref().map(|report| report.step)
}

fn said(facts: &Facts) -> &str {
    facts
        .report
        .as_ref()
        .map_or("", |report| report.info.as_str())
}

fn stage_text(facts: &Facts) -> String {
    facts
        .report
        .as_ref()
        .map(|report| report.stage.to_string())
        .unwrap_or_default()
}

fn wrong_boot(facts: &Facts) -> String {
    let machine = if facts.machine.is_empty() {
        String::new()
    } else {
        format!(" ({})", facts.machine)
    };
    format!(
        "The host{machine} booted the installation image instead of its installation disk {}; boot it from that disk",
        facts.disk
    )
}

fn media_text(_: &Facts) -> String {
    "The host cannot read its boot medium any more; attach the discovery image again and reboot it"
        .to_owned()
}

fn contact_text(facts: &Facts) -> String {
    if facts.media_lost {
        return media_text(facts);
    }
    "The host has not called for longer than it may; see that it runs and reaches the service"
        .to_owned()
}

fn blocking_text(facts: &Facts) -> String {
    if facts.blocking.is_empty() {
        return "The host is not ready to be installed".to_owned();
    }
    facts.blocking.clone()
}
