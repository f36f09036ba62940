//! Since when hosts can be heard: a host is silent only while somebody could have heard it.

use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;
use model::time::Timestamp;

/// Looks at the database come every few seconds; after a longer gap this process stood still, or the clock jumped.
const GAP: TimeDelta = TimeDelta::seconds(20);

/// Whether this process hears hosts, and since when. It starts deaf.
#[derive(Debug, Default)]
pub(crate) struct Hearing(Mutex<Option<Heard>>);

#[derive(Debug, Clone, Copy)]
struct Heard {
    since: Timestamp,
    until: Timestamp,
}

impl Heard {
    fn reaches(self, now: Timestamp) -> bool {
        now.signed_duration_since(self.until).abs() <= GAP
    }
}

impl Hearing {
    /// Polls can be answered now.
    pub(crate) fn works(&self, now: Timestamp) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = heard
            .filter(|heard| heard.reaches(now))
            .map_or(now, |heard| heard.since);
        *heard = Some(Heard { since, until: now });
    }

    /// Polls cannot be answered.
    pub(crate) fn fails(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Since when polls were answered without a break; `now` when they are not.
    pub(crate) fn since(&self, now: Timestamp) -> Timestamp {
        let heard = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard
            .filter(|heard| heard.reaches(now))
            .map_or(now, |heard| heard.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        chrono::DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn every_break_starts_anew() {
        let hearing = Hearing::default();
        assert_eq!(hearing.since(at(100)), at(100), "not started");
        hearing.works(at(100));
        hearing.works(at(110));
        assert_eq!(hearing.since(at(115)), at(100));
        hearing.fails();
        assert_eq!(hearing.since(at(117)), at(117), "the database is away");
        hearing.works(at(120));
        assert_eq!(hearing.since(at(121)), at(120));
        assert_eq!(hearing.since(at(900)), at(900), "the process stood still");
        hearing.works(at(900));
        assert_eq!(hearing.since(at(901)), at(900));
    }
}
