//! Ids of events in the order of their commits.
//!
//! An id is taken before its transaction commits, so an event may become visible after others with higher ids. A missing
//! id below a visible one is a gap: its transaction still runs, or was rolled back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::db::events::RunningTransactions;

/// Time between taking an id and the first write of its transaction, at most: only then the database lists it as running.
const UNLISTED: Duration = Duration::from_secs(1);
/// More missing ids are no gaps, but a jump of the sequence, as after a restored backup.
const MAX_GAPS: i64 = 10_000;

/// The ids that were read, and up to which none is missing.
#[derive(Debug, Default)]
pub(super) struct SettledIds {
    settled: i64,
    /// Read ids above `settled`.
    above: BTreeSet<i64>,
    gaps: BTreeMap<i64, Gap>,
}

#[derive(Debug)]
struct Gap {
    seen: Instant,
    /// The gap is final when all transactions below have ended.
    horizon: Option<i64>,
}

impl SettledIds {
    /// Nothing read yet above `settled`.
    pub(super) fn after(settled: i64) -> Self {
        Self {
            settled,
            ..Self::default()
        }
    }

    /// All ids up to this one were read, or will never be used.
    pub(super) fn settled(&self) -> i64 {
        self.settled
    }

    /// Read ids above the settled one.
    pub(super) fn above(&self) -> Vec<i64> {
        self.above.iter().copied().collect()
    }

    /// Whether an id is missing that may still appear.
    pub(super) fn has_gaps(&self) -> bool {
        !self.gaps.is_empty()
    }

    /// Takes the ids above the settled one that a query has found, without those known before.
    pub(super) fn advance(&mut self, new: &[i64], running: RunningTransactions, now: Instant) {
        for id in new {
            self.above.insert(*id);
            self.gaps.remove(id);
        }
        let last = self.above.last().copied().unwrap_or(self.settled);
        if last - self.settled <= MAX_GAPS {
            for id in self.settled + 1..last {
                if !self.above.contains(&id) {
                    self.gaps.entry(id).or_insert(Gap {
                        seen: now,
                        horizon: None,
                    });
                }
            }
        }
        self.gaps.retain(|_, gap| gap.is_open(running, now));
        self.settled = self.gaps.first_key_value().map_or(last, |(id, _)| id - 1);
        self.above = self.above.split_off(&(self.settled + 1));
    }
}

impl Gap {
    fn is_open(&mut self, running: RunningTransactions, now: Instant) -> bool {
        if self.horizon.is_none() && now.duration_since(self.seen) >= UNLISTED {
            self.horizon = Some(running.next);
        }
        self.horizon.is_none_or(|horizon| running.oldest < horizon)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn running(oldest: i64, next: i64) -> RunningTransactions {
        RunningTransactions { oldest, next }
    }

    #[test]
    fn a_late_commit_is_read_after_later_ids() {
        let start = Instant::now();
        let mut ids = SettledIds::after(4);
        ids.advance(&[5, 7], running(50, 60), start);
        assert_eq!((ids.settled(), ids.above()), (5, vec![7]));
        ids.advance(&[], running(50, 60), start);
        assert_eq!((ids.settled(), ids.has_gaps()), (5, true));
        ids.advance(&[6, 8], running(60, 60), start);
        assert_eq!((ids.settled(), ids.has_gaps()), (8, false));
    }

    #[test]
    fn a_rolled_back_id_is_missing_until_its_transaction_has_ended() {
        let start = Instant::now();
        let mut ids = SettledIds::after(0);
        ids.advance(&[2], running(50, 60), start);
        ids.advance(&[], running(70, 70), start);
        assert_eq!(ids.settled(), 0, "it may be unlisted still");
        let later = start + UNLISTED;
        ids.advance(&[], running(50, 60), later);
        ids.advance(&[], running(59, 60), later);
        assert_eq!(ids.settled(), 0, "a transaction of that time still runs");
        ids.advance(&[], running(60, 60), later);
        assert_eq!((ids.settled(), ids.has_gaps()), (2, false));
    }

    #[test]
    fn a_jump_of_the_sequence_is_no_gap() {
        let mut ids = SettledIds::after(7);
        let far = 8 + MAX_GAPS;
        ids.advance(&[far], running(1, 2), Instant::now());
        assert_eq!(ids.settled(), far);
    }

    proptest! {
        #[test]
        fn all_ids_up_to_the_settled_one_are_read_in_any_order_of_commits(
            order in Just((1..40_i64).collect::<Vec<_>>()).prop_shuffle()
        ) {
            let mut ids = SettledIds::after(0);
            let mut read = BTreeSet::new();
            for id in order {
                read.insert(id);
                ids.advance(&[id], running(0, 1), Instant::now());
                prop_assert!((1..=ids.settled()).all(|id| read.contains(&id)));
                prop_assert!(!read.contains(&(ids.settled() + 1)));
            }
            prop_assert_eq!(ids.settled(), 39);
        }
    }
}
