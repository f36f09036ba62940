//! Snapshots of clusters in memory, valid while their revision is the database's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::ids::ClusterId;
use rules::Snapshot;

/// Capacity in hosts, a cluster counting as one more; least recently used clusters are evicted first. A host takes
/// about 100 kB.
const CAPACITY: usize = 10_000;

/// A snapshot at a revision.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoredSnapshot {
    /// Raised with each change.
    pub(crate) revision: i64,
    /// The cluster and its hosts. A pool host is alone, with an empty cluster.
    pub(crate) snapshot: Snapshot,
    /// Metadata of the release image, as JSON.
    pub(crate) release_info: Option<serde_json::Value>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    by_id: HashMap<ClusterId, (u64, Arc<StoredSnapshot>)>,
    clock: u64,
    weight: usize,
}

impl CacheEntries {
    fn remove(&mut self, id: ClusterId) {
        if let Some((_, removed)) = self.by_id.remove(&id) {
            self.weight -= weight(&removed);
        }
    }
}

fn weight(stored: &StoredSnapshot) -> usize {
    1 + stored.snapshot.hosts.len()
}

/// A bounded map of snapshots.
#[derive(Debug, Default)]
pub(super) struct ClusterCache(Mutex<CacheEntries>);

impl ClusterCache {
    /// The cached snapshot.
    pub(super) fn newest(&self, id: ClusterId) -> Option<Arc<StoredSnapshot>> {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let clock = entries.clock;
        let (used, stored) = entries.by_id.get_mut(&id)?;
        *used = clock;
        Some(Arc::clone(stored))
    }

    /// The cached snapshot, if its revision is `revision` or later.
    pub(super) fn at_least(&self, id: ClusterId, revision: i64) -> Option<Arc<StoredSnapshot>> {
        self.newest(id).filter(|stored| stored.revision >= revision)
    }

    /// Caches a snapshot, unless a newer one is cached.
    pub(super) fn put(&self, id: ClusterId, stored: Arc<StoredSnapshot>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        let clock = entries.clock;
        let known = entries.by_id.get(&id).map(|(_, kept)| kept);
        if known.is_some_and(|kept| kept.revision > stored.revision) {
            return;
        }
        entries.weight -= known.map_or(0, |kept| weight(kept));
        entries.weight += weight(&stored);
        entries.by_id.insert(id, (clock, stored));
        while entries.weight > CAPACITY && entries.by_id.len() > 1 {
            let oldest = entries.by_id.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(id, _)| *id) else {
                return;
            };
            entries.remove(oldest);
        }
    }

    /// Evicts a cluster.
    pub(super) fn remove(&self, id: ClusterId) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> ClusterId {
        ClusterId(uuid::Uuid::from_u128(n))
    }

    fn stored(revision: i64) -> Arc<StoredSnapshot> {
        Arc::new(StoredSnapshot {
            revision,
            ..StoredSnapshot::default()
        })
    }

    #[test]
    fn an_older_revision_is_not_enough() {
        let cache = ClusterCache::default();
        cache.put(id(1), stored(7));
        assert!(cache.at_least(id(1), 6).is_some());
        assert!(cache.at_least(id(1), 7).is_some());
        assert!(cache.at_least(id(1), 8).is_none());
    }

    #[test]
    fn an_older_snapshot_does_not_replace_a_newer_one() {
        let cache = ClusterCache::default();
        cache.put(id(1), stored(8));
        cache.put(id(1), stored(7));
        assert!(cache.at_least(id(1), 8).is_some());
    }

    #[test]
    fn least_recently_used_clusters_are_evicted() {
        let cache = ClusterCache::default();
        let half = || {
            let mut half = StoredSnapshot::default();
            let hosts = std::iter::repeat_with(rules::HostState::default);
            half.snapshot.hosts.extend(hosts.take(CAPACITY / 2 - 1));
            Arc::new(half)
        };
        cache.put(id(0), half());
        cache.put(id(1), half());
        assert!(cache.newest(id(0)).is_some(), "both fit");
        cache.put(id(2), stored(1));
        assert!(cache.newest(id(0)).is_some(), "recently used");
        assert!(cache.newest(id(1)).is_none(), "least recently used");
        cache.remove(id(0));
        cache.remove(id(2));
        assert_eq!(cache.0.lock().unwrap().weight, 0);
    }
}
