//! Outlier ejection: a replica that fails requests while its health check passes is left out, each time for longer.
//!
//! At most half of the ready replicas are ejected at a time. An ejected one is still used before those that are not
//! ready. Source of the terms and of the rule of failures in a row: Envoy, `outlier_detection`.

use std::time::{Duration, Instant};

use http::StatusCode;

/// Failures in a row after which a replica is ejected.
const FAILURES: u32 = 5;
/// Time of the first ejection; each further one lasts twice as long.
const FIRST: Duration = Duration::from_secs(10);
/// Longest ejection.
const LONGEST: Duration = Duration::from_mins(5);
/// Doublings up to the longest ejection.
const MAX_EJECTIONS: u32 = 5;

/// Outcome of an attempt at a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    /// The response is a gateway error.
    GatewayError,
    /// No connection, or no response on it.
    Broken,
}

impl Outcome {
    /// The outcome of a response with `status`.
    pub(super) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Self::GatewayError,
            _ => Self::Success,
        }
    }
}

/// Failures and ejections of a replica.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OutlierState {
    failures_in_a_row: u32,
    /// A replica that dies breaks many requests at once: they count as one until its next passed health check.
    is_broken: bool,
    ejections: u32,
    until: Option<Instant>,
}

impl OutlierState {
    /// Records an outcome; whether the replica is an outlier now.
    pub(super) fn record(&mut self, outcome: Outcome, now: Instant) -> bool {
        if self.is_ejected(now) {
            // Requests from before, and those that found no other replica.
            return false;
        }
        match outcome {
            Outcome::Success => {
                self.failures_in_a_row = 0;
                let is_over = |until| now >= until + duration(self.ejections);
                if self.until.is_none_or(is_over) {
                    *self = Self::default();
                }
            }
            Outcome::Broken if self.is_broken => {}
            Outcome::GatewayError | Outcome::Broken => {
                self.is_broken |= outcome == Outcome::Broken;
                self.failures_in_a_row = self.failures_in_a_row.saturating_add(1);
            }
        }
        self.failures_in_a_row >= FAILURES
    }

    /// Records a passed health check.
    pub(super) fn record_ready(&mut self) {
        self.is_broken = false;
    }

    /// Ejects the replica; for how long.
    pub(super) fn eject(&mut self, now: Instant) -> Duration {
        let time = duration(self.ejections);
        self.until = Some(now + time);
        self.ejections = (self.ejections + 1).min(MAX_EJECTIONS);
        // The first failure after it ejects it again, a success clears this.
        self.failures_in_a_row = FAILURES - 1;
        time
    }

    /// The end of the ejection, unless it has passed. Reads the clock only for replicas that were ejected.
    pub(super) fn ejected_until(&self) -> Option<Instant> {
        self.until.filter(|until| Instant::now() < *until)
    }

    /// Whether there is nothing that a success would clear.
    pub(super) fn is_clear(&self) -> bool {
        *self == Self::default()
    }

    fn is_ejected(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

/// Time of the ejection after `ejections` others.
fn duration(ejections: u32) -> Duration {
    (FIRST * 2_u32.pow(ejections.min(MAX_EJECTIONS))).min(LONGEST)
}

/// Whether one more of `ready` replicas may be ejected, of which `ejected` are.
pub(super) fn may_eject(ready: usize, ejected: usize) -> bool {
    (ejected + 1) * 2 <= ready
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Outcome::{Broken, GatewayError, Success};
    use super::*;

    #[test]
    fn failures_in_a_row_make_an_outlier() {
        let now = Instant::now();
        for (outcomes, is_outlier) in [
            (&[GatewayError; 4][..], false),
            (&[GatewayError; 5], true),
            (
                &[
                    GatewayError,
                    GatewayError,
                    GatewayError,
                    GatewayError,
                    Broken,
                ],
                true,
            ),
            (
                &[
                    GatewayError,
                    GatewayError,
                    GatewayError,
                    GatewayError,
                    Success,
                    GatewayError,
                ],
                false,
            ),
            // A death under many requests is one failure.
            (&[Broken; 100], false),
            (&[Success; 100], false),
        ] {
            let mut state = OutlierState::default();
            let found = outcomes.iter().map(|outcome| state.record(*outcome, now));
            assert_eq!(found.last(), Some(is_outlier), "{outcomes:?}");
        }
        // Five deaths between passed health checks.
        let mut state = OutlierState::default();
        let found = [(); 5].map(|()| {
            state.record_ready();
            state.record(Broken, now)
        });
        assert_eq!(found, [false, false, false, false, true]);
    }

    #[test]
    fn ejections_grow_and_are_forgotten_after_as_long_without_failures() {
        let mut state = OutlierState::default();
        let mut now = Instant::now();
        for seconds in [10, 20, 40, 80, 160, 300, 300] {
            assert_eq!(state.eject(now).as_secs(), seconds);
            let time = Duration::from_secs(seconds);
            assert!(state.is_ejected(now + time.saturating_sub(Duration::from_millis(1))));
            now += time;
            assert!(!state.is_ejected(now));
            // One failure is enough now.
            assert!(state.record(GatewayError, now));
        }
        // A success counts, and does not forget at once.
        assert!(!state.record(Success, now));
        assert!(!state.record(GatewayError, now) && !state.is_clear());
        state.record(Success, now + LONGEST);
        assert!(state.is_clear());
        assert_eq!(state.eject(now), FIRST);
    }

    #[test]
    fn outcomes_during_an_ejection_do_not_count() {
        let mut state = OutlierState::default();
        let now = Instant::now();
        state.eject(now);
        let before = state;
        assert!(!state.record(GatewayError, now) && !state.record(Success, now));
        assert_eq!(state, before);
    }

    #[test]
    fn at_most_half_is_ejected() {
        for (ready, ejected, may) in [
            (0, 0, false),
            (1, 0, false),
            (2, 0, true),
            (2, 1, false),
            (3, 0, true),
            (3, 1, false),
            (4, 1, true),
            (64, 31, true),
            (64, 32, false),
        ] {
            assert_eq!(may_eject(ready, ejected), may, "{ejected} of {ready}");
        }
    }

    proptest! {
        #[test]
        fn any_outcomes_leave_half_in_use(
            count in 1_usize..8,
            steps in prop::collection::vec((0_usize..8, 0_u8..4, 0_u64..30), 0..300),
        ) {
            let mut states = vec![OutlierState::default(); count];
            let mut now = Instant::now();
            for (index, kind, seconds) in steps {
                now += Duration::from_secs(seconds);
                let index = index % count;
                let outcome = [Success, GatewayError, Broken][usize::from(kind % 3)];
                if kind == 3 {
                    states[index].record_ready();
                }
                let is_outlier = states[index].record(outcome, now);
                let ejected = states.iter().filter(|state| state.is_ejected(now)).count();
                if is_outlier && may_eject(count, ejected) {
                    let time = states[index].eject(now);
                    prop_assert!((FIRST..=LONGEST).contains(&time));
                    prop_assert!(states[index].is_ejected(now));
                }
                let ejected = states.iter().filter(|state| state.is_ejected(now)).count();
                prop_assert!(ejected * 2 <= count);
            }
            // Each ejection ends.
            now += LONGEST;
            prop_assert!(states.iter().all(|state| !state.is_ejected(now)));
        }
    }
}
