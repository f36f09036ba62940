//! Rate limit of log lines about a state that lasts, or that alternates with others.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Distinct states whose log lines are rate limited separately; further ones share one limit.
const STATES: usize = 16;

/// Rate limit of log lines, by state.
#[derive(Debug)]
pub struct StateLog {
    interval: Duration,
    states: BTreeMap<String, Logged>,
}

#[derive(Debug)]
struct Logged {
    at: Instant,
    /// Attempts since then that met the same state.
    suppressed: u64,
}

impl StateLog {
    /// One line for a state within `interval`.
    pub const fn new(interval: Duration) -> Self {
        Self {
            interval,
            states: BTreeMap::new(),
        }
    }

    /// Whether `state` is to be logged at `now`; with the count of the lines that were suppressed before.
    pub fn admit(&mut self, state: &str, now: Instant) -> Option<u64> {
        let is_known = self.states.contains_key(state);
        let key = if is_known || self.states.len() < STATES {
            state
        } else {
            ""
        };
        let Some(logged) = self.states.get_mut(key) else {
            let at = now;
            let logged = Logged { at, suppressed: 0 };
            self.states.insert(key.to_owned(), logged);
            return Some(0);
        };
        if now.saturating_duration_since(logged.at) < self.interval {
            logged.suppressed += 1;
            return None;
        }
        logged.at = now;
        Some(std::mem::take(&mut logged.suppressed))
    }

    /// Forgets states that were logged longer than the interval ago: the next failure is a new one.
    pub fn recovered(&mut self, now: Instant) {
        let interval = self.interval;
        self.states
            .retain(|_, logged| now.saturating_duration_since(logged.at) < interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_mins(10);

    #[test]
    fn a_state_is_logged_once_within_the_interval_and_counted() {
        let mut log = StateLog::new(INTERVAL);
        let start = Instant::now();
        assert_eq!(log.admit("a", start), Some(0));
        assert_eq!(log.admit("b", start), Some(0));
        for second in 1..600 {
            assert_eq!(log.admit("a", start + Duration::from_secs(second)), None);
        }
        assert_eq!(log.admit("a", start + INTERVAL), Some(599));
        assert_eq!(log.admit("b", start + INTERVAL), Some(0));
    }

    #[test]
    fn states_that_alternate_do_not_flood() {
        let mut log = StateLog::new(INTERVAL);
        let start = Instant::now();
        let lines = (0..1000).filter(|i| {
            log.recovered(start);
            log.admit(&format!("state {}", i % 40), start).is_some()
        });
        assert_eq!(lines.count(), STATES + 1);
        assert_eq!(log.states.len(), STATES + 1);
    }
}
