//! The end of a run before the last step.

use std::time::Duration;

use model::node_replacement::ReplacementState;

use super::gate::GateRefusal;
use super::journal::JournalError;
use super::step_id::StepId;

/// The end of a run before the last step. Each can be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ReplacementError {
    /// The journal cannot be written: the next effect was left out.
    #[error("the journal of the replacement cannot be used")]
    Journal(#[from] JournalError),
    /// A gate is closed, and does not open by itself.
    #[error("{step}: {}", join(refusals))]
    Refused {
        /// The step.
        step: StepId,
        /// The closed gates.
        refusals: Vec<GateRefusal>,
    },
    /// A step could not be done.
    #[error("{step}: {reason}")]
    Failed {
        /// The step.
        step: StepId,
        /// The reason.
        reason: String,
    },
    /// A step did not come to its end in time.
    #[error("{step}: not within {} s: {reason}", limit.as_secs())]
    TimedOut {
        /// The step.
        step: StepId,
        /// The longest wait.
        limit: Duration,
        /// The last reason.
        reason: String,
    },
    /// The observer stopped it.
    #[error("stopped after an entry of the journal")]
    Interrupted,
    /// It has ended already.
    #[error("the replacement is {0:?} already")]
    Ended(ReplacementState),
}

pub(super) fn join(refusals: &[GateRefusal]) -> String {
    let reasons: Vec<_> = refusals.iter().map(ToString::to_string).collect();
    reasons.join("; ")
}
