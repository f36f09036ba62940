//! Times of the last pull of tags, while a policy needs them: in memory, saved at intervals.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use blob_store::ContentStore as _;
use bytes::Bytes;
use model::time::Timestamp;
use oci::{Repository, Tag};

use super::Policies;
use crate::storage::Store;

/// Tags whose pulls are remembered; each takes about 100 bytes. Others count as pulled now, and stay.
const LIMIT: usize = 50_000;
/// Interval of saving: a crash loses at most as much.
const KEEP: Duration = Duration::from_mins(1);
const RECORD: &str = "pulls";

/// When tags were pulled.
#[derive(Debug, Default)]
pub(crate) struct Pulls {
    times: Mutex<Times>,
    is_wanted: AtomicBool,
}

/// Units: seconds since 1970.
type Seconds = i64;

#[derive(Debug, Default)]
struct Times {
    known: BTreeMap<String, BTreeMap<String, Seconds>>,
    count: usize,
    is_changed: bool,
}

impl Pulls {
    /// Records a pull of a tag.
    pub(crate) fn note(&self, repository: &Repository, tag: &Tag) {
        if self.is_wanted.load(Ordering::Relaxed) {
            self.times().set(repository, tag, service::clock::now());
        }
    }

    /// When a tag was pulled last; of one that is not known that is `now`, and from then on.
    pub(super) fn last(&self, repository: &Repository, tag: &Tag, now: Timestamp) -> Timestamp {
        let mut times = self.times();
        let known = times.known.get(repository.as_str());
        let known = known.and_then(|tags| tags.get(tag.as_str()).copied());
        let known = known.and_then(|seconds| Timestamp::from_timestamp(seconds, 0));
        if known.is_none() {
            times.set(repository, tag, now);
        }
        known.unwrap_or(now)
    }

    /// Forgets all tags of a repository but these.
    pub(super) fn retain(&self, repository: &Repository, is_there: impl Fn(&str) -> bool) {
        let mut times = self.times();
        let Some(tags) = times.known.get_mut(repository.as_str()) else {
            return;
        };
        let before = tags.len();
        tags.retain(|tag, _| is_there(tag));
        let after = tags.len();
        if after == 0 {
            times.known.remove(repository.as_str());
        }
        times.count -= before - after;
        times.is_changed |= before > after;
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the saved times, before the first request.
    pub(crate) async fn load(&self, store: &Store) {
        match store.record(RECORD).await {
            Ok(record) => {
                // A record that cannot be read was cut by a crash: all tags count as pulled now.
                let known = record.and_then(|record| serde_json::from_slice(&record).ok());
                let known: BTreeMap<_, BTreeMap<_, _>> = known.unwrap_or_default();
                let count = known.values().map(BTreeMap::len).sum();
                *self.times() = Times {
                    known,
                    count,
                    is_changed: false,
                };
            }
            Err(error) => tracing::warn!(%error, "times of pulls not loaded"),
        }
    }

    async fn keep(&self, store: &Store) {
        let record = {
            let mut times = self.times();
            if !std::mem::take(&mut times.is_changed) {
                return;
            }
            serde_json::to_vec(&times.known).expect("names and numbers are plain data")
        };
        if let Err(error) = store.put_record(RECORD, Bytes::from(record)).await {
            let error = model::error::chain(&error);
            tracing::warn!(error, "times of pulls not saved");
        }
    }
}

impl Times {
    fn set(&mut self, repository: &Repository, tag: &Tag, now: Timestamp) {
        let seconds = now.timestamp();
        let tags = self.known.get_mut(repository.as_str());
        if let Some(time) = tags.and_then(|tags| tags.get_mut(tag.as_str())) {
            *time = seconds;
        } else if self.count < LIMIT {
            let tags = self.known.entry(repository.to_string()).or_default();
            tags.insert(tag.to_string(), seconds);
            self.count += 1;
        }
        self.is_changed = true;
    }
}

/// Saves the times at intervals, for ever, while a policy needs them.
pub(crate) async fn run(pulls: &Pulls, policies: &Policies, store: &Store) {
    loop {
        let is_wanted = policies.get().await.wants_pulls();
        pulls.is_wanted.store(is_wanted, Ordering::Relaxed);
        tokio::time::sleep(KEEP).await;
        pulls.keep(store).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unknown_counts_as_now_and_memory_is_bounded() {
        let pulls = Pulls::default();
        let repository: Repository = "a".parse().unwrap();
        let tag = |n: usize| format!("t{n}").parse::<Tag>().unwrap();
        let at = |seconds| Timestamp::from_timestamp(seconds, 0).unwrap();
        assert_eq!(pulls.last(&repository, &tag(0), at(5)), at(5));
        assert_eq!(pulls.last(&repository, &tag(0), at(9)), at(5));
        pulls.note(&repository, &tag(0));
        assert_eq!(
            pulls.last(&repository, &tag(0), at(9)),
            at(5),
            "no policy needs it"
        );
        pulls.is_wanted.store(true, Ordering::Relaxed);
        pulls.note(&repository, &tag(0));
        assert!(pulls.last(&repository, &tag(0), at(9)) > at(9));
        for n in 0..LIMIT + 10 {
            pulls.last(&repository, &tag(n), at(1));
        }
        assert_eq!(pulls.times().count, LIMIT);
        assert_eq!(pulls.last(&repository, &tag(LIMIT + 9), at(7)), at(7));
        pulls.retain(&repository, |tag| tag == "t3");
        assert_eq!(pulls.times().count, 1);
        pulls.retain(&repository, |_| false);
        assert!(pulls.times().known.is_empty());
    }
}
