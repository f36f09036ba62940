//! Waits of steps.

use std::time::{Duration, Instant};

use super::case::ReplacementCase;
use super::error::ReplacementError;
use super::step::StepRule;
use super::step_id::StepId;
use super::view::ReplacementView;

/// Times of waits.
#[derive(Clone, Copy, Debug)]
pub struct StepPatience {
    /// Pause between observations.
    pub poll: Duration,
    /// Longest wait of one step; a stopped run can be resumed.
    pub limit: Duration,
}

impl Default for StepPatience {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(2),
            limit: Duration::from_hours(2),
        }
    }
}

/// The wait of one step.
pub(super) struct StepWait {
    pub(super) step: StepId,
    patience: StepPatience,
    since: Instant,
}

impl StepWait {
    pub(super) fn new(step: StepId, patience: StepPatience) -> Self {
        Self {
            step,
            patience,
            since: Instant::now(),
        }
    }

    pub(super) async fn pause(&self, reason: &str) -> Result<(), ReplacementError> {
        if self.since.elapsed() >= self.patience.limit {
            return Err(ReplacementError::TimedOut {
                step: self.step,
                limit: self.patience.limit,
                reason: reason.to_owned(),
            });
        }
        tokio::time::sleep(self.patience.poll).await;
        Ok(())
    }
}

/// The condition that a waiting step waits for.
pub(super) fn waiting_for(
    rule: &StepRule,
    case: &ReplacementCase,
    view: &ReplacementView,
) -> String {
    match (rule.id, case.new_member(view)) {
        (StepId::PromoteMember, Some(new)) => {
            let leader = view.etcd.leader().and_then(|it| it.status.as_ref());
            let lag = leader.zip(new.status.as_ref());
            let lag = lag.map(|(leader, own)| leader.raft_index.saturating_sub(own.applied_index));
            let behind = match lag {
                Some(lag) => format!("{lag} entries behind the leader"),
                None => format!("{:?}", new.health),
            };
            format!("the learner {} is {behind}", new.member.id)
        }
        (StepId::AddMember, None) => "etcd's operator has not added the new member".to_owned(),
        _ => rule.id.title().to_owned(),
    }
}
