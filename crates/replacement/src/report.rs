//! A replacement as clients see it: the records of its plan and of its progress, without secrets and files.

use chrono::{DateTime, Utc};
use model::node_replacement::{
    ClosedGate, NodeReplacementPlan, ReplacedNode, ReplacementReport, ReplacementStep,
    ReplacementStepState, ReplacementStop, ReplacementUndo, ReplacementVoters, ReplacementWait,
};
use serde::Serialize;
use serde_json::Value;

use super::gate::GateRefusal;
use super::plan::{PlannedStep, ReplacementPlan};
use super::progress::ReplacementProgress;
use super::step::{self, StepUndo};
use super::step_id::StepId;
use super::view::NodePlace;

/// Longest reason of a report. Units: characters.
pub const MAX_REASON: usize = 1000;

/// The report at `now` on the progress of the replacement `id`.
pub(super) fn report(
    id: &str,
    progress: &ReplacementProgress,
    waiting: Option<&ReplacementWait>,
    now: DateTime<Utc>,
) -> ReplacementReport {
    let case = &progress.case;
    let steps = step::sequence(case).into_iter().map(|id| ReplacementStep {
        step: text(&id),
        title: id.title().to_owned(),
        state: journaled(id, progress),
        only_waits: step::only_waits(id, case),
        undo: undo(step::rule(id).undo),
    });
    let stopped = progress.stopped.as_ref();
    ReplacementReport {
        id: id.to_owned(),
        updated_at: now.into(),
        kind: case.kind,
        old: node(&case.old),
        new: node(&case.new),
        state: progress.state,
        steps: steps.collect(),
        waiting: waiting.cloned(),
        stopped: stopped.map(|(step, reason)| ReplacementStop {
            step: text(step),
            title: step.title().to_owned(),
            reason: bounded(reason),
        }),
        window: progress.window,
    }
}

/// The record of a wait that began at `since`.
pub(super) fn wait(step: StepId, reason: &str, since: DateTime<Utc>) -> ReplacementWait {
    ReplacementWait {
        step: text(&step),
        title: step.title().to_owned(),
        reason: bounded(reason),
        since: since.into(),
    }
}

/// The plan's record.
impl From<&ReplacementPlan> for NodeReplacementPlan {
    fn from(plan: &ReplacementPlan) -> Self {
        let case = &plan.case;
        Self {
            kind: case.kind,
            old: node(&case.old),
            new: node(&case.new),
            members: case.targets.iter().map(ToString::to_string).collect(),
            machine: case.machine.clone(),
            host: case.host.clone(),
            has_machine_api: case.has_machine_api,
            is_operator_managed: case.is_operator_managed,
            voters: ReplacementVoters {
                voters: plan.voters.voters,
                healthy: plan.voters.healthy,
            },
            fewest_voters: plan.fewest_voters,
            steps: plan.steps.iter().map(planned).collect(),
            closed: plan.closed.iter().map(closed).collect(),
        }
    }
}

fn planned(planned: &PlannedStep) -> ReplacementStep {
    ReplacementStep {
        step: text(&planned.step),
        title: planned.title.to_owned(),
        state: planned.state,
        only_waits: planned.only_waits,
        undo: undo(planned.undo),
    }
}

fn closed(refusal: &GateRefusal) -> ClosedGate {
    ClosedGate {
        gate: text(&refusal.gate),
        reason: bounded(&refusal.reason),
        may_open: refusal.may_open,
    }
}

fn journaled(id: StepId, progress: &ReplacementProgress) -> ReplacementStepState {
    if progress.has_finished(id) {
        ReplacementStepState::Finished
    } else if progress.has_started(id) {
        ReplacementStepState::Started
    } else {
        ReplacementStepState::Planned
    }
}

fn undo(undo: StepUndo) -> ReplacementUndo {
    match undo {
        StepUndo::Nothing => ReplacementUndo::Nothing,
        StepUndo::By(_) => ReplacementUndo::Reversible,
        StepUndo::Stays => ReplacementUndo::Stays,
    }
}

fn node(place: &NodePlace) -> ReplacedNode {
    ReplacedNode {
        name: place.name.clone(),
        address: place.address.to_string(),
    }
}

/// The text of an id, as journals write it.
fn text(id: &impl Serialize) -> String {
    match serde_json::to_value(id) {
        Ok(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn bounded(reason: &str) -> String {
    reason.chars().take(MAX_REASON).collect()
}
