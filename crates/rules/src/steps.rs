//! Instructions for agents: the next steps of a host.
//!
//! The plan of every host status is data (`PLANS`); each step builds its own arguments.

mod arguments;
mod install;
pub mod ipxe;
mod network;
mod plan;
pub mod replies;
mod runner;
mod view;

pub use plan::{PLANS, Round, StepPlan};
pub use runner::{RunnerCommand, runner_command};
pub use view::{IgnitionAccess, ReleaseImages, Settings, StepContext};

pub(crate) use network::{main_address, nics_inside, union};
pub(crate) use view::installation_path;

use model::steps::{AgentStep, StepType, Steps};
use model::time::Timestamp;

use crate::HostState;
use crate::Snapshot;
use view::StepView;

/// Instructions for a host: the plan of its status, without steps that have nothing to do.
///
/// `snapshot` is the host's cluster with all its hosts; none for a host without cluster.
pub fn instructions(
    snapshot: Option<&Snapshot>,
    host: &HostState,
    ctx: &StepContext<'_>,
    now: Timestamp,
) -> Steps {
    let view = StepView {
        snapshot,
        host,
        ctx,
        now,
    };
    let round = plan::round(&view);
    Steps {
        next_instruction_seconds: round.seconds,
        post_step_action: Some(round.action),
        instructions: round
            .steps
            .iter()
            .filter(|kind| !ctx.settings.disabled.contains(kind))
            .filter_map(|kind| step(*kind, &view))
            .collect(),
    }
}

fn step(kind: StepType, view: &StepView<'_>) -> Option<AgentStep> {
    let args = arguments::arguments(kind, view)?;
    Some(AgentStep {
        step_type: Some(kind),
        step_id: step_id(kind, view),
        args,
    })
}

/// `<type>-<8 hex>`: differs between the rounds of a host, and is the same for the same time.
/// Source: assisted-service, internal/host/hostcommands/instruction_manager.go, createStepID.
fn step_id(kind: StepType, view: &StepView<'_>) -> String {
    let mut hash = view::Fnv::new();
    hash.add(view.host.record.id.0.as_bytes());
    hash.add(kind.as_str().as_bytes());
    hash.add(&view.now.timestamp_millis().to_be_bytes());
    format!("{kind}-{:08x}", hash.finish())
}

#[cfg(test)]
mod tests;
