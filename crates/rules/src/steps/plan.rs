//! Steps of each host status.
//! Source: assisted-service, internal/host/hostcommands/instruction_manager.go.

use model::host::HostStatus;
use model::steps::{PostStepAction, StepType};

use super::view::StepView;
use crate::versions::agent_version;

/// Steps of one host status.
#[derive(Debug, Clone, Copy)]
pub struct StepPlan {
    /// The status.
    pub status: HostStatus,
    /// For a day-1 or unbound host.
    pub first_day: Round,
    /// For a day-2 host.
    pub later: Round,
}

/// Steps of one poll, and the agent's next action.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// In the order in which they are sent.
    pub steps: &'static [StepType],
    /// Units: seconds until the next poll.
    pub seconds: i64,
    /// Whether the agent's runner continues.
    pub action: PostStepAction,
}

/// Usual poll interval. Units: seconds.
const OFTEN: i64 = 60;
/// Poll interval of statuses that rarely change. Units: seconds.
const SELDOM: i64 = 120;

const IDLE: Round = Round {
    steps: &[],
    seconds: OFTEN,
    action: PostStepAction::Continue,
};
/// The agent exits and registers again, with the new state of its host.
const LEAVE: Round = Round {
    steps: &[],
    seconds: 0,
    action: PostStepAction::Exit,
};

const fn often(steps: &'static [StepType]) -> Round {
    Round {
        steps,
        seconds: OFTEN,
        action: PostStepAction::Continue,
    }
}

const fn seldom(steps: &'static [StepType]) -> Round {
    Round {
        steps,
        seconds: SELDOM,
        action: PostStepAction::Continue,
    }
}

/// An upgrade of the agent, before any other step. A failed one is retried with the next poll; the runner continues, which
/// an exit would end during its pull.
/// Source: assisted-service, internal/host/hostcommands/instruction_manager.go, GetNextSteps.
const UPGRADE: Round = often(&[StepType::UpgradeAgent]);

const fn same(status: HostStatus, round: Round) -> StepPlan {
    StepPlan {
        status,
        first_day: round,
        later: round,
    }
}

const PREPARING: &[StepType] = &[
    StepType::Inventory,
    StepType::ConnectivityCheck,
    StepType::TangConnectivityCheck,
    StepType::FreeNetworkAddresses,
    StepType::DhcpLeaseAllocate,
    StepType::NtpSynchronizer,
    StepType::DomainResolution,
    StepType::VerifyVips,
];
const POOL: &[StepType] = &[StepType::Inventory, StepType::NtpSynchronizer];

/// Every status with steps; the others are idle.
pub static PLANS: &[StepPlan] = &[
    StepPlan {
        status: HostStatus::Discovering,
        first_day: often(&[StepType::Inventory]),
        later: often(&[
            StepType::Inventory,
            StepType::NtpSynchronizer,
            StepType::DomainResolution,
        ]),
    },
    StepPlan {
        status: HostStatus::Insufficient,
        first_day: often(PREPARING),
        later: often(&[
            StepType::Inventory,
            StepType::ConnectivityCheck,
            StepType::ApiVipConnectivityCheck,
            StepType::TangConnectivityCheck,
            StepType::NtpSynchronizer,
            StepType::DomainResolution,
        ]),
    },
    StepPlan {
        status: HostStatus::PendingForInput,
        first_day: often(PREPARING),
        later: often(&[
            StepType::Inventory,
            StepType::ConnectivityCheck,
            StepType::ApiVipConnectivityCheck,
            StepType::TangConnectivityCheck,
        ]),
    },
    StepPlan {
        status: HostStatus::Known,
        first_day: often(&[
            StepType::ConnectivityCheck,
            StepType::TangConnectivityCheck,
            StepType::FreeNetworkAddresses,
            StepType::DhcpLeaseAllocate,
            StepType::Inventory,
            StepType::NtpSynchronizer,
            StepType::DomainResolution,
            StepType::VerifyVips,
        ]),
        later: often(&[
            StepType::ConnectivityCheck,
            StepType::ApiVipConnectivityCheck,
            StepType::TangConnectivityCheck,
            StepType::Inventory,
            StepType::NtpSynchronizer,
            StepType::DomainResolution,
        ]),
    },
    same(HostStatus::Disconnected, seldom(&[StepType::Inventory])),
    StepPlan {
        status: HostStatus::PreparingForInstallation,
        first_day: often(&[
            StepType::DhcpLeaseAllocate,
            StepType::InstallationDiskSpeedCheck,
            StepType::ContainerImageAvailability,
        ]),
        later: IDLE,
    },
    StepPlan {
        status: HostStatus::Installing,
        first_day: often(&[StepType::Install, StepType::DhcpLeaseAllocate]),
        later: often(&[StepType::Install]),
    },
    StepPlan {
        status: HostStatus::InstallingInProgress,
        first_day: often(&[StepType::DhcpLeaseAllocate]),
        later: IDLE,
    },
    same(
        HostStatus::Error,
        seldom(&[StepType::LogsGather, StepType::StopInstallation]),
    ),
    same(
        HostStatus::Cancelled,
        seldom(&[StepType::LogsGather, StepType::StopInstallation]),
    ),
    same(HostStatus::Binding, LEAVE),
    same(HostStatus::Disabled, seldom(&[])),
    same(HostStatus::DisabledUnbound, seldom(&[])),
    same(HostStatus::Resetting, seldom(&[])),
    same(HostStatus::DiscoveringUnbound, often(POOL)),
    same(HostStatus::InsufficientUnbound, often(POOL)),
    same(HostStatus::KnownUnbound, often(POOL)),
    same(
        HostStatus::DisconnectedUnbound,
        seldom(&[StepType::Inventory]),
    ),
    same(HostStatus::Unbinding, LEAVE),
    same(HostStatus::UnbindingPendingUserAction, LEAVE),
    same(
        HostStatus::Reclaiming,
        often(&[StepType::DownloadBootArtifacts]),
    ),
    same(
        HostStatus::ReclaimingRebooting,
        Round {
            steps: &[StepType::RebootForReclaim],
            seconds: SELDOM,
            action: PostStepAction::Exit,
        },
    ),
];

/// The round of a host.
pub(super) fn round(view: &StepView<'_>) -> Round {
    if wants_upgrade(view) {
        return UPGRADE;
    }
    let status = view.host.record.status;
    PLANS
        .iter()
        .find(|plan| plan.status == status)
        .map_or(IDLE, |plan| {
            if view.is_adding_host() {
                plan.later
            } else {
                plan.first_day
            }
        })
}

/// Whether the agent must be upgraded before any other step.
///
/// An agent without a reported version is not upgraded: it would be upgraded again and again.
/// Source: assisted-service, internal/host/hostcommands/instruction_manager.go, isAgentUpgradeAllowed.
fn wants_upgrade(view: &StepView<'_>) -> bool {
    let agent = &view.host.record.discovery_agent_version;
    let wanted = &view.ctx.components.agent;
    let is_possible = matches!(
        view.host.record.status,
        HostStatus::Binding
            | HostStatus::Discovering
            | HostStatus::Known
            | HostStatus::Insufficient
            | HostStatus::PendingForInput
            | HostStatus::DiscoveringUnbound
            | HostStatus::KnownUnbound
            | HostStatus::InsufficientUnbound
    );
    is_possible
        && view.ctx.policy.upgrade_agent
        && !view.ctx.settings.disabled.contains(&StepType::UpgradeAgent)
        && !agent.is_empty()
        && !wanted.is_empty()
        && !agent_version::is_compatible(agent, wanted)
}
