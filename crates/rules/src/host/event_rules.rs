//! Event rules of a host: registrations, reports of agents and installers, requests of users.
//!
//! Source: assisted-service, internal/host/statemachine.go, where no other file is named. Each rule quotes its name
//! there.

use model::Error;
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
use super::facts::{Facts, StageMove};
use super::rule::{BOOT_TO_LEAVE, EARLY, HostRule, NO_INVENTORY, READY, media_text};
use super::trigger::On;
use crate::table::To;

/// Tried from the top; an event without a rule for the status is refused.
pub(super) static EVENT_RULES: &[HostRule] = &[
    // Registration.
    // Source: "Re-registration during preparation".
    HostRule {
        name: "registers during preparation",
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
        doc: "Inventory and bootstrap role survive; the preparation starts over.",
    },
    // Source: "Re-registration".
    HostRule {
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
        info: Some(|_| NO_INVENTORY.to_owned()),
        then: &[
            Effect::Register,
            Effect::ClearInventory,
            Effect::ClearBootstrap,
            Effect::ClearImages,
            Effect::ClearProgress,
            Effect::ClearLogs,
            Effect::ClearNtp,
        ],
        doc: "The agent restarted: its results are collected again. Role, disk choice and disk speed survive.",
    },
    // Source: "Ignore register while rebooting host in resetting".
    HostRule {
        name: "registers during a reset",
        on: On::Register,
        from: &[Resetting],
        when: |facts| facts.stage == Some(HostStage::Rebooting),
        to: To::Stay,
        info: None,
        then: &[],
        doc: "The reboot of the reset is still under way.",
    },
    // Source: "Register non-rebooting host in resetting".
    HostRule {
        name: "registers after a reset",
        on: On::Register,
        from: &[Resetting],
        when: |_| true,
        to: To::Go(Discovering),
        info: Some(|_| NO_INVENTORY.to_owned()),
        then: &[
            Effect::Register,
            Effect::ClearInventory,
            Effect::ClearBootstrap,
            Effect::ClearProgress,
        ],
        doc: "The reset is complete.",
    },
    // Source: "Wrong boot order detection".
    HostRule {
        name: "boots the discovery image instead of the disk",
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
    // Source: "Wrong boot order detection"; transition.go, PostRegisterDuringReboot.
    HostRule {
        name: "boots the discovery image repeatedly",
        on: On::Register,
        from: &[InstallingPendingUserAction],
        when: |_| true,
        to: To::Refuse(|facts| Error::Forbidden {
            reason: wrong_boot(facts),
        }),
        info: None,
        then: &[],
        doc: "The agent stops polling after a 403: only a boot from disk helps.",
    },
    // Source: "Register during installation".
    HostRule {
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
        doc: "The reboot interrupts the installer.",
    },
    // Source: "Register during error".
    HostRule {
        name: "registers after a failure",
        on: On::Register,
        from: &[Failed],
        when: |_| true,
        to: To::Stay,
        info: None,
        then: &[Effect::Register],
        doc: "The failure stays until the host is retried, or the cluster is reset.",
    },
    // Source: "Register post-installation".
    HostRule {
        name: "registers after installation",
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
    // Source: pool_host_statemachine.go, "Initial registration".
    HostRule {
        name: "registers unbound",
        on: On::Register,
        from: &[
            DiscoveringUnbound,
            DisconnectedUnbound,
            InsufficientUnbound,
            KnownUnbound,
            Unbinding,
            UnbindingPendingUserAction,
            ReclaimingRebooting,
        ],
        when: |_| true,
        to: To::Go(DiscoveringUnbound),
        info: Some(|_| NO_INVENTORY.to_owned()),
        then: &[
            Effect::Register,
            Effect::ClearInventory,
            Effect::ClearProgress,
            Effect::ClearNtp,
        ],
        doc: "The agent of a host without cluster restarted.",
    },
    // Progress reports.
    // Source: internal/host/host.go, UpdateInstallProgress.
    HostRule {
        name: "reports failure",
        on: On::Progress,
        from: &[
            Installing,
            InstallingInProgress,
            InstallingPendingUserAction,
        ],
        when: |facts| reported(facts, HostStage::Failed),
        to: To::Go(Failed),
        info: Some(|facts| format!("Failed - {}", report_text(facts))),
        then: &[Effect::MeasureFailure],
        doc: "The installer gave up.",
    },
    // Source: internal/host/host.go, UpdateInstallProgress.
    HostRule {
        name: "reports a stage out of order",
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
    // Source: "host progress changed to added-to-existing-cluster for day2 host".
    HostRule {
        name: "day-2 host joins the cluster",
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
        doc: "No agent runs on a day-2 host after its reboot.",
    },
    // Source: "host progress changed to installed".
    HostRule {
        name: "reports the last stage",
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
    // Source: "default host progress changed".
    HostRule {
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
        doc: "The installation proceeds; a host with a wrong boot order has booted from its disk.",
    },
    // Source: internal/host/host.go, UpdateInstallProgress.
    HostRule {
        name: "reports its last stage again",
        on: On::Progress,
        from: &[Installed],
        when: |facts| step(facts) == Some(StageMove::Same),
        to: To::Stay,
        info: None,
        then: &[],
        doc: "A repeated report of the controller; any other report is refused.",
    },
    // Source: "Installation failed while host is installing".
    HostRule {
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
    // Source: "Move to disconnected when virtual media disconnects pre-installation".
    HostRule {
        name: "virtual media disconnected",
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
        then: &[Effect::DisconnectMedia],
        doc: "Virtual media was unplugged: nothing can be read from the live system any more.",
    },
    // Source: "Move to error when virtual media disconnects post-installation".
    HostRule {
        name: "virtual media disconnected while installing",
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
        then: &[Effect::DisconnectMedia],
        doc: "The installer runs from the medium, and cannot continue.",
    },
    // Source: pool_host_statemachine.go, "Move to disconnected when virtual media disconnects pre-installation".
    HostRule {
        name: "virtual media of an unbound host disconnected",
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
        then: &[Effect::DisconnectMedia],
        doc: "As for a host of a cluster.",
    },
    // Day 2.
    // Source: "Install known host".
    HostRule {
        name: "day-2 installation requested",
        on: On::Install,
        from: &[Known],
        when: |facts| facts.day2,
        to: To::Go(Installing),
        info: Some(|_| "Installation starts".to_owned()),
        then: &[
            Effect::ClearProgress,
            Effect::ClearLogs,
            Effect::ReportInstallation,
        ],
        doc: "Its cluster is installed: each host is installed on its own.",
    },
    // Retry of a failed host.
    HostRule {
        name: "retried alone",
        on: On::Retry,
        from: &[
            Failed,
            InstallingInProgress,
            InstallingPendingUserAction,
            ResettingPendingUserAction,
        ],
        when: Facts::cluster_is_installing,
        to: To::Go(ResettingPendingUserAction),
        info: Some(|_| {
            "To retry the installation, boot the host from the discovery image again; it is installed once it is ready"
                .to_owned()
        }),
        then: &[
            Effect::ClearProgress,
            Effect::ClearImages,
            Effect::ClearLogs,
            Effect::ReportReset,
        ],
        doc: "As in a reset of the cluster; the other hosts continue.",
    },
    // Cancellation and reset.
    // Source: "Installation canceled while host is installing".
    HostRule {
        name: "cancelled",
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
        then: &[Effect::ReportCancelled],
        doc: "The agent gathers logs and stops.",
    },
    // Source: "Cancel while preparing", "Cancel while known".
    HostRule {
        name: "cancelled before the installation",
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
    // Source: "Reset pending user action all states".
    HostRule {
        name: "reset",
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
            Effect::ReportReset,
        ],
        doc: "The service cannot reboot a host: its user must.",
    },
    // Binding.
    // Source: pool_host_statemachine.go, "Bind host".
    HostRule {
        name: "bound to a cluster",
        on: On::Bind,
        from: &[KnownUnbound],
        when: |_| true,
        to: To::Go(Binding),
        info: Some(|_| "Waiting for the agent to register for its new cluster".to_owned()),
        then: &[
            Effect::ClearInventory,
            Effect::ClearBootstrap,
            Effect::ClearImages,
            Effect::ClearProgress,
            Effect::Bind,
        ],
        doc: "The agent exits and registers again, with a new inventory. The user's name, role and disks survive.",
    },
    // Source: "Unbind pre-installation".
    HostRule {
        name: "unbound",
        on: On::Unbind,
        from: EARLY,
        when: |_| true,
        to: To::Go(Unbinding),
        info: Some(|_| LEAVING.to_owned()),
        then: &[Effect::ClearCluster, Effect::ClearInventory],
        doc: "The agent still runs: it exits and registers again.",
    },
    HostRule {
        name: "unbound before its registration",
        on: On::Unbind,
        from: &[Binding],
        when: |_| true,
        to: To::Go(Unbinding),
        info: Some(|_| LEAVING.to_owned()),
        then: &[Effect::ClearCluster, Effect::ClearInventory],
        doc: "An agent that never registered must not hold its host in the cluster.",
    },
    // Source: "Unbind during or after installation".
    HostRule {
        name: "unbound after the installation",
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
        info: Some(|_| BOOT_TO_LEAVE.to_owned()),
        then: &[Effect::ClearCluster, Effect::ClearInventory],
        doc: "No agent runs that could register again.",
    },
    HostRule {
        name: "unbound during a reset",
        on: On::Unbind,
        from: &[Resetting, ResettingPendingUserAction],
        when: |_| true,
        to: To::Go(UnbindingPendingUserAction),
        info: Some(|_| BOOT_TO_LEAVE.to_owned()),
        then: &[Effect::ClearCluster, Effect::ClearInventory],
        doc: "A deleted cluster leaves its reset hosts to the pool.",
    },
    // Reclaim: an agent on the installed system makes the host boot the discovery image.
    // Source: "Rebooting for reclaim reclaiming host".
    HostRule {
        name: "boot artifacts downloaded",
        on: On::RebootForReclaim,
        from: &[Reclaiming],
        when: |_| true,
        to: To::Go(ReclaimingRebooting),
        info: Some(|_| "The host restarts into the discovery image".to_owned()),
        then: &[],
        doc: "The next poll makes the host restart.",
    },
    // Source: "Reclaim failure for reclaiming host".
    HostRule {
        name: "cannot be reclaimed",
        on: On::ReclaimFailed,
        from: &[Reclaiming, ReclaimingRebooting],
        when: |_| true,
        to: To::Go(UnbindingPendingUserAction),
        // Without the agent's error text, which may quote addresses with access tokens.
        info: Some(|_| format!("The host could not store the discovery image. {BOOT_TO_LEAVE}")),
        then: &[],
        doc: "Its user has to boot the host instead.",
    },
];

/// Status text of a host whose agent has to register again.
const LEAVING: &str = "Waiting for the agent to register without a cluster";

fn reported(facts: &Facts, stage: HostStage) -> bool {
    facts
        .report
        .as_ref()
        .is_some_and(|report| report.stage == stage)
}

fn step(facts: &Facts) -> Option<StageMove> {
    facts.report.as_ref().map(|report| report.step)
}

fn report_text(facts: &Facts) -> &str {
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
