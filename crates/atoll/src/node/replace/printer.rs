//! The progress of a replacement, as lines for people.

use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use model::node_replacement::TwoVoterWindow;
use replacement::{ReplacementEntry, ReplacementEvent, ReplacementObserver, RunEvent, StepId};

use crate::terminal;

/// Observes a run, and prints it; waits are a line of their own when their reason changes, or the progress line of a terminal.
pub(super) struct ProgressPrinter {
    /// Since when quorum survives no failure.
    pub(super) window: Option<DateTime<Utc>>,
    /// Instructions for a boot by hand.
    pub(super) boot_by_hand: Option<String>,
    last_wait: Option<(StepId, String)>,
}

impl ProgressPrinter {
    pub(super) fn new(window: Option<TwoVoterWindow>, boot_by_hand: Option<String>) -> Self {
        Self {
            window: window
                .filter(|window| window.until.is_none())
                .map(|window| window.since),
            boot_by_hand,
            last_wait: None,
        }
    }

    fn entry(&mut self, entry: &ReplacementEntry) {
        if let ReplacementEvent::Finished { step, .. } = entry.event {
            match step {
                StepId::RemoveMember => self.window = Some(entry.at),
                StepId::PromoteMember => self.window = None,
                _ => {}
            }
        }
        if let Some(text) = text(entry) {
            terminal::print(&format!("{}  {text}", entry.at.format("%H:%M:%S")));
        }
        if let ReplacementEvent::Started {
            step: StepId::BootNode,
            ..
        } = entry.event
            && let Some(instructions) = &self.boot_by_hand
        {
            terminal::print(instructions);
        }
    }

    fn wait(&mut self, step: StepId, reason: &str, now: DateTime<Utc>) {
        let mut text = format!("{step}: {reason}");
        if let Some(since) = self.window {
            let seconds = (now - since).num_seconds().max(0);
            let (minutes, seconds) = (seconds / 60, seconds % 60);
            text = format!(
                "{text} (no voter of etcd can be spared, since {minutes} min {seconds} s: do not reboot a control node)"
            );
        }
        if terminal::shows_progress() {
            return terminal::progress(&text);
        }
        let wait = Some((step, reason.to_owned()));
        if self.last_wait != wait {
            self.last_wait = wait;
            terminal::print(&format!("{}  waiting: {text}", now.format("%H:%M:%S")));
        }
    }
}

impl ReplacementObserver for ProgressPrinter {
    fn on_event(&mut self, event: RunEvent<'_>, now: DateTime<Utc>) -> ControlFlow<()> {
        match event {
            RunEvent::Entry(entry) => self.entry(entry),
            RunEvent::Effect(_) => {}
            RunEvent::Waiting(step, reason) => self.wait(step, reason, now),
        }
        ControlFlow::Continue(())
    }
}

/// The line of an entry; none for those that a line of a later entry repeats.
fn text(entry: &ReplacementEntry) -> Option<String> {
    Some(match &entry.event {
        ReplacementEvent::Opened { case, .. } => {
            format!("{} is replaced by {}", case.old.name, case.new.name)
        }
        ReplacementEvent::Started { step, .. } => format!("{step} …"),
        ReplacementEvent::Finished {
            step,
            was_done: true,
            ..
        } => format!("{step}: done already"),
        ReplacementEvent::Finished { step, outcome, .. } => {
            let files = outcome.snapshot.iter().map(|it| &it.path);
            let files: Vec<_> = files
                .chain(&outcome.records)
                .map(|path| path.display().to_string())
                .collect();
            if files.is_empty() {
                format!("{step}: done")
            } else {
                format!("{step}: done: {}", files.join(", "))
            }
        }
        ReplacementEvent::ConfirmedOff { by } => {
            format!("{by} has seen that the old machine is off")
        }
        // The error of the run says it.
        ReplacementEvent::Stopped { .. } => return None,
        ReplacementEvent::CsrApproved {
            name, key_sha256, ..
        } => format!("certificate request {name} is approved: key sha256 {key_sha256}"),
        ReplacementEvent::CsrRefused { name, reason } => {
            format!("certificate request {name} is not approved: {reason}")
        }
        ReplacementEvent::LearnerDropped { member } => format!("the learner {member} is removed"),
        ReplacementEvent::Aborted => "the replacement is aborted".to_owned(),
        ReplacementEvent::Completed => "the replacement is complete".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use replacement::ReplaceStepOutcome;

    use super::*;

    fn finished(step: StepId) -> ReplacementEntry {
        ReplacementEntry {
            at: DateTime::from_timestamp(1_700_000_000, 0).unwrap(),
            event: ReplacementEvent::Finished {
                step,
                was_done: false,
                outcome: ReplaceStepOutcome::default(),
            },
        }
    }

    #[test]
    fn the_window_is_open_between_removal_and_promotion() {
        let mut printer = ProgressPrinter::new(None, None);
        printer.entry(&finished(StepId::RemoveMember));
        assert!(printer.window.is_some());
        printer.entry(&finished(StepId::PromoteMember));
        assert!(printer.window.is_none());
    }

    #[test]
    fn entries_are_lines_of_people() {
        let line = |event| {
            text(&ReplacementEntry {
                at: DateTime::UNIX_EPOCH,
                event,
            })
        };
        assert_eq!(
            text(&finished(StepId::BootNode)).unwrap(),
            "Boot the new node with its image: done"
        );
        let refused = ReplacementEvent::CsrRefused {
            name: "csr-1".to_owned(),
            reason: "it was there before the node booted".to_owned(),
        };
        assert_eq!(
            line(refused).unwrap(),
            "certificate request csr-1 is not approved: it was there before the node booted"
        );
    }
}
