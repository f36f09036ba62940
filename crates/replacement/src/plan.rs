//! The plan: which steps follow, computed from observations.

use etcd::quorum::VoterCount;
use model::node_replacement::{ReplacementKind, ReplacementStepState};

use super::case::ReplacementCase;
use super::gate::{self, GateContext, GateId, GateRefusal};
use super::progress::ReplacementProgress;
use super::step::{self, CompletionContext, StepUndo};
use super::step_id::StepId;
use super::view::ReplacementView;

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    /// The step.
    pub step: StepId,
    /// For people.
    pub title: &'static str,
    /// Its state.
    pub state: ReplacementStepState,
    /// Whether it only waits for other programs.
    pub only_waits: bool,
    /// Conditions that are read right before its effect.
    pub gates: &'static [GateId],
    /// Effect of an abort after it.
    pub undo: StepUndo,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplacementPlan {
    /// The case.
    pub case: ReplacementCase,
    /// Voters now.
    pub voters: VoterCount,
    /// The fewest voters during the replacement; with two, quorum survives no failure.
    pub fewest_voters: usize,
    /// The steps, in their order.
    pub steps: Vec<PlannedStep>,
    /// Closed gates of the next step.
    pub closed: Vec<GateRefusal>,
}

/// The plan of a replacement. Pure: `others` are the ids of other replacements that are unfinished.
pub fn plan(
    progress: &ReplacementProgress,
    view: &ReplacementView,
    others: &[String],
) -> ReplacementPlan {
    let case = &progress.case;
    let context = CompletionContext {
        case,
        view,
        progress,
    };
    let steps: Vec<_> = step::sequence(case)
        .into_iter()
        .map(|id| planned(id, &context))
        .collect();
    let is_open = |it: &&PlannedStep| {
        matches!(
            it.state,
            ReplacementStepState::Started | ReplacementStepState::Planned
        )
    };
    let next = steps.iter().find(is_open);
    let closed = next.filter(|next| !next.only_waits).map(|next| {
        let context = GateContext {
            case,
            view,
            progress,
            step: next.step,
            others,
        };
        gate::closed(next.gates, &context)
    });
    let voters = view.etcd.voter_count();
    let present = case
        .targets
        .iter()
        .filter(|id| view.etcd.member(**id).is_some());
    ReplacementPlan {
        fewest_voters: match case.kind {
            ReplacementKind::Failed => voters.voters - present.count().min(voters.voters),
            ReplacementKind::Unwanted => voters.voters.min(case.desired_voters),
        },
        case: case.clone(),
        voters,
        closed: closed.unwrap_or_default(),
        steps,
    }
}

fn planned(id: StepId, context: &CompletionContext<'_>) -> PlannedStep {
    let rule = step::rule(id);
    let state = if context.progress.has_finished(id) {
        ReplacementStepState::Finished
    } else if rule.is_done.is_some_and(|is_done| is_done(context)) {
        ReplacementStepState::Done
    } else if context.progress.has_started(id) {
        ReplacementStepState::Started
    } else {
        ReplacementStepState::Planned
    };
    PlannedStep {
        step: id,
        title: id.title(),
        state,
        only_waits: step::only_waits(id, context.case),
        gates: rule.gates,
        undo: rule.undo,
    }
}
