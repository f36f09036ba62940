//! Snapshots of clusters in memory, valid while their revision is the database's.

use std::sync::Arc;

use concurrency::BoundedCache;
use model::ids::ClusterId;
use rules::HostState;
use rules::Snapshot;

use crate::app::known_release::KnownRelease;

/// Capacity: about 10 000 hosts. Units: bytes.
pub(crate) const SNAPSHOTS_BYTES: usize = 256 << 20;
/// A cluster's record, without its hosts. Units: bytes.
const CLUSTER_BYTES: usize = 32 << 10;

/// A snapshot at a revision.
#[derive(Debug, Clone, Default)]
pub(crate) struct StoredSnapshot {
    /// Raised with each change.
    pub(crate) revision: i64,
    /// The cluster and its hosts. A pool host is alone, with an empty cluster.
    pub(crate) snapshot: Snapshot,
    /// Metadata of its release.
    pub(crate) release: KnownRelease,
}

/// A bounded map of snapshots.
#[derive(Debug)]
pub(super) struct ClusterCache(BoundedCache<ClusterId, Arc<StoredSnapshot>>);

impl Default for ClusterCache {
    fn default() -> Self {
        Self(BoundedCache::new(SNAPSHOTS_BYTES))
    }
}

impl ClusterCache {
    /// The cached snapshot.
    pub(super) fn newest(&self, id: ClusterId) -> Option<Arc<StoredSnapshot>> {
        self.0.get(id)
    }

    /// The cached snapshot, if its revision is `revision` or later.
    pub(super) fn at_least(&self, id: ClusterId, revision: i64) -> Option<Arc<StoredSnapshot>> {
        self.newest(id).filter(|stored| stored.revision >= revision)
    }

    /// Caches a snapshot, unless a newer one is cached.
    pub(super) fn put(&self, id: ClusterId, stored: Arc<StoredSnapshot>) {
        self.0.replace(id, |known| {
            if known.is_some_and(|(known, _)| known.revision > stored.revision) {
                return None;
            }
            let size = size(&stored, known);
            Some((stored, size))
        });
    }

    /// Evicts a cluster.
    pub(super) fn remove(&self, id: ClusterId) {
        self.0.remove(id);
    }
}

/// Size of a snapshot, from the one before: only hosts that they do not share are visited. Units: bytes.
fn size(stored: &StoredSnapshot, known: Option<(&Arc<StoredSnapshot>, usize)>) -> usize {
    let new = &stored.snapshot.hosts;
    let Some((known, mut size)) = known else {
        return new
            .iter()
            .map(HostState::memory_bytes)
            .fold(CLUSTER_BYTES, usize::saturating_add);
    };
    let old = &known.snapshot.hosts;
    for at in 0..new.len().max(old.len()) {
        if !new.is_shared(at, old, at) {
            size += new.get(at).map_or(0, HostState::memory_bytes);
            size -= old.get(at).map_or(0, HostState::memory_bytes);
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use model::host::Host;

    use super::*;

    fn id(n: u128) -> ClusterId {
        ClusterId(uuid::Uuid::from_u128(n))
    }

    fn stored(revision: i64) -> StoredSnapshot {
        StoredSnapshot {
            revision,
            ..StoredSnapshot::default()
        }
    }

    /// A host whose text does not compress.
    fn host(bytes: usize) -> HostState {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b' ' + (state >> 25) as u8 % 90)
        };
        let text: String = std::iter::repeat_with(&mut next).take(bytes).collect();
        HostState::new(Host {
            free_addresses: text.into(),
            ..Host::default()
        })
    }

    #[test]
    fn an_older_revision_is_not_enough() {
        let cache = ClusterCache::default();
        cache.put(id(1), stored(7).into());
        assert!(cache.at_least(id(1), 6).is_some());
        assert!(cache.at_least(id(1), 7).is_some());
        assert!(cache.at_least(id(1), 8).is_none());
    }

    #[test]
    fn an_older_snapshot_does_not_replace_a_newer_one() {
        let cache = ClusterCache::default();
        cache.put(id(1), stored(8).into());
        cache.put(id(1), stored(7).into());
        assert!(cache.at_least(id(1), 8).is_some());
    }

    #[test]
    fn sizes_follow_from_the_hosts() {
        let mut first = stored(1);
        first.snapshot.hosts.extend([host(100), host(20_000)]);
        let mut second = first.clone();
        second.revision = 2;
        second.snapshot.hosts[0] = host(5_000);
        second.snapshot.hosts.push(host(1_000));
        let mut third = second.clone();
        third.snapshot.hosts.truncate(1);
        let cache = ClusterCache::default();
        for snapshot in [first, second, third] {
            let whole = size(&snapshot, None);
            cache.put(id(1), snapshot.into());
            assert_eq!(cache.0.size(), whole);
        }
        cache.remove(id(1));
        assert_eq!(cache.0.size(), 0);
    }

    // limit: snapshots of clusters in memory
    #[test]
    fn snapshots_beyond_the_capacity_are_evicted() {
        let cache = ClusterCache::default();
        let large = || {
            let mut large = stored(1);
            let one = host(1 << 20);
            let count = SNAPSHOTS_BYTES / 2 / one.memory_bytes();
            large.snapshot.hosts.extend(vec![one; count]);
            Arc::new(large)
        };
        cache.put(id(0), large());
        cache.put(id(1), large());
        assert!(cache.newest(id(0)).is_some(), "both fit");
        cache.put(id(2), large());
        assert!(cache.newest(id(1)).is_none(), "least recently used");
        assert!(cache.newest(id(0)).is_some());
    }
}
