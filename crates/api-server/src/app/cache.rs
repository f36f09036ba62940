//! Snapshots of clusters in memory, good as long as their revision is the database's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::ids::ClusterId;
use rules::Snapshot;

/// Clusters kept; the one that was not asked for the longest goes first. A cluster of five hosts takes about 1 MB.
const CAPACITY: usize = 32;

/// A snapshot as stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    /// Grows with each change.
    pub(crate) revision: i64,
    /// The cluster and its hosts. A host of the pool stands alone with an empty cluster.
    pub(crate) snapshot: Snapshot,
    /// What the release image told, as JSON.
    pub(crate) release_info: Option<serde_json::Value>,
}

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<ClusterId, (u64, Arc<Stored>)>,
    clock: u64,
}

/// A bounded map of snapshots.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<Entries>);

impl Cache {
    /// The snapshot of that very revision.
    pub(super) fn get(&self, id: ClusterId, revision: i64) -> Option<Arc<Stored>> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let clock = entries.clock;
        let (used, stored) = entries.by_id.get_mut(&id)?;
        if stored.revision != revision {
            return None;
        }
        *used = clock;
        Some(Arc::clone(stored))
    }

    /// Keeps a snapshot, unless a newer one is kept already.
    pub(super) fn put(&self, id: ClusterId, stored: Arc<Stored>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let clock = entries.clock;
        if entries
            .by_id
            .get(&id)
            .is_some_and(|(_, kept)| kept.revision > stored.revision)
        {
            return;
        }
        entries.by_id.insert(id, (clock, stored));
        if entries.by_id.len() > CAPACITY
            && let Some(oldest) = entries
                .by_id
                .iter()
                .min_by_key(|(_, (used, _))| *used)
                .map(|(id, _)| *id)
        {
            entries.by_id.remove(&oldest);
        }
    }

    /// Forgets a cluster.
    pub(super) fn remove(&self, id: ClusterId) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .by_id
            .remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> ClusterId {
        ClusterId(uuid::Uuid::from_u128(n))
    }

    fn stored(revision: i64) -> Arc<Stored> {
        Arc::new(Stored {
            revision,
            ..Stored::default()
        })
    }

    #[test]
    fn another_revision_is_not_found() {
        let cache = Cache::default();
        cache.put(id(1), stored(7));
        assert!(cache.get(id(1), 7).is_some());
        assert!(cache.get(id(1), 8).is_none());
    }

    #[test]
    fn an_older_snapshot_does_not_replace_a_newer_one() {
        let cache = Cache::default();
        cache.put(id(1), stored(8));
        cache.put(id(1), stored(7));
        assert!(cache.get(id(1), 8).is_some());
    }

    #[test]
    fn it_is_bounded() {
        let cache = Cache::default();
        for n in 0..=(CAPACITY as u128) {
            cache.put(id(n), stored(1));
            cache.get(id(0), 1);
        }
        assert!(cache.get(id(0), 1).is_some(), "what is asked for stays");
        assert!(cache.get(id(1), 1).is_none(), "the oldest is gone");
    }
}
