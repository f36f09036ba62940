//! Observers of a run, and the one that publishes its progress in the cluster, for the web UI and other readers.

use std::convert::Infallible;
use std::future;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use chrono::{DateTime, Utc};
use kubernetes::KubernetesCluster;
use model::Error;
use model::node_replacement::{ReplacementReport, ReplacementWait};
use tokio::sync::watch;

use super::progress::{ReplacementEntry, ReplacementProgress};
use super::report;
use super::step_id::StepId;

/// Shortest pause between two reports.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest time of the last report: the API may be away.
const LAST: Duration = Duration::from_secs(10);

/// An event of a run.
#[derive(Clone, Copy, Debug)]
pub enum RunEvent<'a> {
    /// An entry of the journal is durable.
    Entry(&'a ReplacementEntry),
    /// The effect of a step was caused, and is not in the journal yet.
    Effect(StepId),
    /// A step waits, for this reason.
    Waiting(StepId, &'a str),
}

/// Observes a run: prints it, publishes it, stops it.
pub trait ReplacementObserver: Send {
    /// Receives the next event. A break stops the run behind it.
    fn on_event(&mut self, event: RunEvent<'_>, now: DateTime<Utc>) -> ControlFlow<()>;
}

impl<F> ReplacementObserver for F
where
    F: FnMut(RunEvent<'_>, DateTime<Utc>) -> ControlFlow<()> + Send,
{
    fn on_event(&mut self, event: RunEvent<'_>, now: DateTime<Utc>) -> ControlFlow<()> {
        self(event, now)
    }
}

/// Observes a run, and makes a report of each change.
#[derive(Debug)]
pub struct ProgressPublisher {
    id: String,
    progress: ReplacementProgress,
    waiting: Option<ReplacementWait>,
    reports: watch::Sender<ReplacementReport>,
}

impl ProgressPublisher {
    /// Follows the replacement `id` from its present progress on.
    pub fn new(id: &str, progress: &ReplacementProgress, now: DateTime<Utc>) -> Self {
        let (reports, _) = watch::channel(report::report(id, progress, None, now));
        Self {
            id: id.to_owned(),
            progress: progress.clone(),
            waiting: None,
            reports,
        }
    }

    /// The newest report.
    pub fn reports(&self) -> watch::Receiver<ReplacementReport> {
        self.reports.subscribe()
    }

    fn report(&self, now: DateTime<Utc>) -> ReplacementReport {
        report::report(&self.id, &self.progress, self.waiting.as_ref(), now)
    }
}

impl ReplacementObserver for ProgressPublisher {
    fn on_event(&mut self, event: RunEvent<'_>, now: DateTime<Utc>) -> ControlFlow<()> {
        match event {
            RunEvent::Entry(entry) => {
                self.progress.apply(entry);
                self.waiting = None;
            }
            RunEvent::Effect(_) => return ControlFlow::Continue(()),
            RunEvent::Waiting(step, reason) => {
                let wait = report::wait(step, reason, now);
                let known = self.waiting.as_ref();
                if known.is_some_and(|it| it.step == wait.step && it.reason == wait.reason) {
                    return ControlFlow::Continue(());
                }
                self.waiting = Some(wait);
            }
        }
        self.reports.send_replace(self.report(now));
        ControlFlow::Continue(())
    }
}

/// Publishes the newest report again and again, as long as it is polled. A failure harms no run: the next report is on
/// its way.
pub async fn publish_changes(
    cluster: &KubernetesCluster,
    mut reports: watch::Receiver<ReplacementReport>,
) -> Infallible {
    loop {
        let report = reports.borrow_and_update().clone();
        if cluster.publish_replacement(&report).await.is_err() {
            reports.mark_changed();
        }
        tokio::time::sleep(INTERVAL).await;
        if reports.changed().await.is_err() {
            return future::pending().await;
        }
    }
}

/// Publishes the report of a run's end.
///
/// Errors: Unavailable – no answer within 10 s; as [`KubernetesCluster::publish_replacement`].
pub async fn publish_last(
    cluster: &KubernetesCluster,
    reports: &watch::Receiver<ReplacementReport>,
) -> Result<(), Error> {
    let report = reports.borrow().clone();
    let published = tokio::time::timeout(LAST, cluster.publish_replacement(&report));
    published.await.unwrap_or_else(|_| {
        let reason = format!("no answer within {} s", LAST.as_secs());
        Err(Error::unavailable(
            "the cluster's API",
            io::Error::other(reason),
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::node_replacement::{ReplacementKind, ReplacementState, ReplacementStepState};

    use super::*;
    use crate::case::{ReplacementCase, ReplacementRequest};
    use crate::progress::{ReplaceStepOutcome, ReplacementEvent, StepIntent};
    use crate::report::MAX_REASON;
    use crate::view::NodePlace;

    fn publisher() -> ProgressPublisher {
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
        ProgressPublisher::new("r-1", &ReplacementProgress::new(request, case), at(0))
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + seconds, 0).unwrap()
    }

    /// Whether the event changes the report.
    fn changes(publisher: &mut ProgressPublisher, seconds: i64, event: RunEvent<'_>) -> bool {
        let reports = publisher.reports();
        assert!(publisher.on_event(event, at(seconds)).is_continue());
        reports.has_changed().unwrap()
    }

    fn append(publisher: &mut ProgressPublisher, seconds: i64, event: ReplacementEvent) {
        let at = at(seconds);
        let entry = ReplacementEntry { at, event };
        assert!(changes(publisher, seconds, RunEvent::Entry(&entry)));
    }

    #[test]
    fn a_report_follows_the_entries() {
        let mut publisher = publisher();
        let step = StepId::RemoveMember;
        let intent = StepIntent::default();
        append(
            &mut publisher,
            1,
            ReplacementEvent::Started { step, intent },
        );
        let state = |publisher: &ProgressPublisher| {
            let report = publisher.report(at(9));
            let step = report
                .steps
                .into_iter()
                .find(|it| it.step == "remove-member");
            step.unwrap().state
        };
        assert_eq!(state(&publisher), ReplacementStepState::Started);
        let reason = "no answer".to_owned();
        append(
            &mut publisher,
            2,
            ReplacementEvent::Stopped { step, reason },
        );
        let stopped = publisher.report(at(9)).stopped.unwrap();
        assert_eq!(
            (stopped.step.as_str(), stopped.reason.as_str()),
            ("remove-member", "no answer")
        );
        let outcome = ReplaceStepOutcome::default();
        let was_done = false;
        append(
            &mut publisher,
            3,
            ReplacementEvent::Finished {
                step,
                was_done,
                outcome,
            },
        );
        let report = publisher.report(at(9));
        assert_eq!(state(&publisher), ReplacementStepState::Finished);
        assert_eq!(report.stopped, None);
        assert_eq!(report.window.unwrap().since, at(3));
        assert_eq!(report.updated_at, at(9).into());
        append(&mut publisher, 4, ReplacementEvent::Completed);
        assert_eq!(publisher.report(at(9)).state, ReplacementState::Completed);
    }

    #[test]
    fn a_wait_is_reported_once_with_its_begin() {
        let mut publisher = publisher();
        let mut wait = |seconds, reason| {
            let event = RunEvent::Waiting(StepId::JoinNode, reason);
            changes(&mut publisher, seconds, event)
        };
        assert!(wait(1, "it boots"));
        assert!(!wait(2, "it boots"));
        let long = "a".repeat(MAX_REASON + 1);
        assert!(wait(3, &long));
        assert!(!wait(4, &long));
        let waiting = publisher.report(at(9)).waiting.unwrap();
        assert_eq!(waiting.since, at(3).into());
        assert_eq!(waiting.reason.len(), MAX_REASON);
        let effect = RunEvent::Effect(StepId::JoinNode);
        assert!(!changes(&mut publisher, 5, effect));
        append(&mut publisher, 6, ReplacementEvent::Aborted);
        assert_eq!(publisher.report(at(9)).waiting, None);
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = publisher().report(at(1));
        let written = serde_json::to_string(&report).unwrap();
        assert_eq!(
            serde_json::from_str::<ReplacementReport>(&written).unwrap(),
            report
        );
    }
}
