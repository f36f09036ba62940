//! A replacement as clients see it: the records of its plan and of its progress, without secrets and files.

use chrono::{DateTime, Utc};
use model::node_replacement::{
    ClosedGate, NodeReplacementPlan, ReplacedNode, ReplacementReport, ReplacementStep,
    ReplacementStepState, ReplacementStop, ReplacementUndo, ReplacementVoters, ReplacementWait,
};
use serde::Serialize;
use serde_json::Value;

use super::case::NodePlace;
use super::gate::GateRefusal;
use super::plan::{PlannedStep, ReplacementPlan};
use super::progress::ReplacementProgress;
use super::run::ReplacementNews;
use super::step::{self, StepId, StepUndo};

/// Longest reason of a report. Units: characters.
pub const MAX_REASON: usize = 1000;

/// Follows a replacement, for reports on its progress.
#[derive(Clone, Debug)]
pub struct ReplacementReporter {
    id: String,
    progress: ReplacementProgress,
    waiting: Option<ReplacementWait>,
}

impl ReplacementReporter {
    /// Follows the replacement `id` from its present progress on.
    pub fn new(id: &str, progress: &ReplacementProgress) -> Self {
        Self {
            id: id.to_owned(),
            progress: progress.clone(),
            waiting: None,
        }
    }

    /// Notes news; returns whether they change the report.
    pub fn hear(&mut self, news: ReplacementNews<'_>, now: DateTime<Utc>) -> bool {
        match news {
            ReplacementNews::Entry(entry) => {
                self.progress.apply(entry);
                self.waiting = None;
                true
            }
            ReplacementNews::Effect(_) => false,
            ReplacementNews::Waiting(step, reason) => {
                let (step_name, reason) = (text(&step), bounded(reason));
                let known = self.waiting.as_ref();
                if known.is_some_and(|it| it.step == step_name && it.reason == reason) {
                    return false;
                }
                self.waiting = Some(ReplacementWait {
                    step: step_name,
                    title: step.title().to_owned(),
                    reason,
                    since: now.into(),
                });
                true
            }
        }
    }

    /// The report at `now`.
    pub fn report(&self, now: DateTime<Utc>) -> ReplacementReport {
        let progress = &self.progress;
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
            id: self.id.clone(),
            updated_at: now.into(),
            kind: case.kind,
            old: node(&case.old),
            new: node(&case.new),
            state: progress.state,
            steps: steps.collect(),
            waiting: self.waiting.clone(),
            stopped: stopped.map(|(step, reason)| ReplacementStop {
                step: text(step),
                title: step.title().to_owned(),
                reason: bounded(reason),
            }),
            window: progress.window,
        }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::node_replacement::{ReplacementKind, ReplacementState};

    use super::*;
    use crate::case::{ReplacementCase, ReplacementRequest};
    use crate::progress::{ReplaceStepOutcome, ReplacementEntry, ReplacementEvent, StepIntent};

    fn reporter() -> ReplacementReporter {
        let place = NodePlace {
            name: "control-2".to_owned(),
            address: "192.0.2.12".parse().unwrap(),
        };
        let request = ReplacementRequest {
            node: "control-2".to_owned(),
            new: None,
            is_unwanted: false,
            confirmed_off_by: None,
            also_lost: BTreeSet::new(),
            skips_snapshot: false,
        };
        let case = ReplacementCase {
            kind: ReplacementKind::Failed,
            old: place.clone(),
            new: place,
            targets: BTreeSet::new(),
            lost: BTreeSet::from(["control-2".to_owned()]),
            desired_voters: 3,
            has_machine_api: false,
            is_operator_managed: true,
            machine: None,
            host: None,
        };
        ReplacementReporter::new("r-1", &ReplacementProgress::new(request, case))
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
    }

    fn hear(reporter: &mut ReplacementReporter, seconds: i64, event: ReplacementEvent) {
        let at = at(seconds);
        assert!(reporter.hear(ReplacementNews::Entry(&ReplacementEntry { at, event }), at));
    }

    #[test]
    fn a_report_follows_the_entries() {
        let mut reporter = reporter();
        let step = StepId::RemoveMember;
        let intent = StepIntent::default();
        hear(&mut reporter, 1, ReplacementEvent::Started { step, intent });
        let state = |reporter: &ReplacementReporter| {
            let report = reporter.report(at(9));
            let step = report
                .steps
                .into_iter()
                .find(|it| it.step == "remove-member");
            step.unwrap().state
        };
        assert_eq!(state(&reporter), ReplacementStepState::Started);
        let reason = "no answer".to_owned();
        hear(&mut reporter, 2, ReplacementEvent::Stopped { step, reason });
        let stopped = reporter.report(at(9)).stopped.unwrap();
        assert_eq!(
            (stopped.step.as_str(), stopped.reason.as_str()),
            ("remove-member", "no answer")
        );
        let outcome = ReplaceStepOutcome::default();
        let was_done = false;
        hear(
            &mut reporter,
            3,
            ReplacementEvent::Finished {
                step,
                was_done,
                outcome,
            },
        );
        let report = reporter.report(at(9));
        assert_eq!(state(&reporter), ReplacementStepState::Finished);
        assert_eq!(report.stopped, None);
        assert_eq!(report.window.unwrap().since, at(3));
        assert_eq!(report.updated_at, at(9).into());
        hear(&mut reporter, 4, ReplacementEvent::Completed);
        assert_eq!(reporter.report(at(9)).state, ReplacementState::Completed);
    }

    #[test]
    fn a_wait_is_reported_once_with_its_begin() {
        let mut reporter = reporter();
        let mut wait = |seconds, reason| {
            reporter.hear(
                ReplacementNews::Waiting(StepId::JoinNode, reason),
                at(seconds),
            )
        };
        assert!(wait(1, "it boots"));
        assert!(!wait(2, "it boots"));
        let long = "a".repeat(MAX_REASON + 1);
        assert!(wait(3, &long));
        assert!(!wait(4, &long));
        let waiting = reporter.report(at(9)).waiting.unwrap();
        assert_eq!(waiting.since, at(3).into());
        assert_eq!(waiting.reason.len(), MAX_REASON);
        assert!(!reporter.hear(ReplacementNews::Effect(StepId::JoinNode), at(5)));
        hear(&mut reporter, 6, ReplacementEvent::Aborted);
        assert_eq!(reporter.report(at(9)).waiting, None);
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = reporter().report(at(1));
        let written = serde_json::to_string(&report).unwrap();
        assert_eq!(
            serde_json::from_str::<ReplacementReport>(&written).unwrap(),
            report
        );
    }
}
