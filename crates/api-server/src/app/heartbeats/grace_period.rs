//! Grace period after an outage: missing heartbeats count only while the server could have received them.

use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use model::time::Timestamp;

/// Longest gap between health checks of the database, which run every few seconds; after a longer one the process
/// was suspended, or the clock jumped.
const GAP: TimeDelta = TimeDelta::seconds(20);

/// Start of the current period in which heartbeats were accepted; none at the start of the process.
#[derive(Debug, Default)]
pub(crate) struct GracePeriod(Mutex<Option<ServingPeriod>>);

#[derive(Debug, Clone, Copy)]
struct ServingPeriod {
    since: Timestamp,
    until: Timestamp,
}

impl ServingPeriod {
    fn includes(self, now: Timestamp) -> bool {
        now.signed_duration_since(self.until).abs() <= GAP
    }
}

impl GracePeriod {
    /// Reports that polls can be answered.
    pub(crate) fn mark_available(&self, now: Timestamp) {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = period
            .filter(|period| period.includes(now))
            .map_or(now, |period| period.since);
        *period = Some(ServingPeriod { since, until: now });
    }

    /// Reports that polls cannot be answered.
    pub(crate) fn mark_unavailable(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Start of the current period without a break; `now` while polls cannot be answered.
    pub(crate) fn since(&self, now: Timestamp) -> Timestamp {
        let period = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        period
            .filter(|period| period.includes(now))
            .map_or(now, |period| period.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        chrono::DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn each_outage_restarts_the_period() {
        let grace_period = GracePeriod::default();
        assert_eq!(grace_period.since(at(100)), at(100), "not started");
        grace_period.mark_available(at(100));
        grace_period.mark_available(at(110));
        assert_eq!(grace_period.since(at(115)), at(100));
        grace_period.mark_unavailable();
        assert_eq!(grace_period.since(at(117)), at(117), "database unavailable");
        grace_period.mark_available(at(120));
        assert_eq!(grace_period.since(at(121)), at(120));
        assert_eq!(grace_period.since(at(900)), at(900), "process suspended");
        grace_period.mark_available(at(900));
        assert_eq!(grace_period.since(at(901)), at(900));
    }

    #[test]
    fn each_step_of_the_clock_restarts_the_period() {
        let grace_period = GracePeriod::default();
        grace_period.mark_available(at(10_000));
        for step in [3600, -3600] {
            let now = at(10_002 + step);
            assert_eq!(grace_period.since(now), now);
            grace_period.mark_available(now);
            assert_eq!(grace_period.since(now + TimeDelta::seconds(2)), now);
            grace_period.mark_unavailable();
            grace_period.mark_available(at(10_000));
        }
    }
}
