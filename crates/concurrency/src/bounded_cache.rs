//! Values in memory up to a number of bytes; least recently used ones are evicted first.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A map of values that are cheap to clone, bounded by their sizes.
#[derive(Debug)]
pub struct BoundedCache<K, V> {
    entries: Mutex<CacheEntries<K, V>>,
    /// Units: bytes.
    capacity: usize,
}

#[derive(Debug)]
struct CacheEntries<K, V> {
    by_key: HashMap<K, CacheEntry<V>>,
    clock: u64,
    /// Units: bytes.
    size: usize,
}

#[derive(Debug)]
struct CacheEntry<V> {
    used: u64,
    /// Units: bytes.
    size: usize,
    value: V,
}

/// A cached value and its size in bytes.
pub type WithSize<V> = (V, usize);

impl<K: Eq + Hash + Copy, V: Clone> BoundedCache<K, V> {
    /// An empty cache. Units: bytes.
    pub fn new(capacity: usize) -> Self {
        let entries = CacheEntries {
            by_key: HashMap::new(),
            clock: 0,
            size: 0,
        };
        Self {
            entries: Mutex::new(entries),
            capacity,
        }
    }

    fn entries(&self) -> MutexGuard<'_, CacheEntries<K, V>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.clock += 1;
        entries
    }

    /// The cached value.
    pub fn get(&self, key: K) -> Option<V> {
        let mut entries = self.entries();
        let clock = entries.clock;
        let entry = entries.by_key.get_mut(&key)?;
        entry.used = clock;
        Some(entry.value.clone())
    }

    /// Caches a value. One of more than the capacity is not kept.
    pub fn put(&self, key: K, value: V, size: usize) {
        self.replace(key, |_| Some((value, size)));
    }

    /// Replaces a value, given the cached one and its size; none keeps that one.
    pub fn replace(&self, key: K, new: impl FnOnce(Option<WithSize<&V>>) -> Option<WithSize<V>>) {
        let mut entries = self.entries();
        let known = entries.by_key.get(&key);
        let Some((value, size)) = new(known.map(|entry| (&entry.value, entry.size))) else {
            return;
        };
        entries.remove(key);
        if size > self.capacity {
            return;
        }
        let used = entries.clock;
        entries.size += size;
        entries.by_key.insert(key, CacheEntry { used, size, value });
        while entries.size > self.capacity {
            let oldest = entries.by_key.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else {
                return;
            };
            entries.remove(oldest);
        }
    }

    /// Evicts a value.
    pub fn remove(&self, key: K) {
        self.entries().remove(key);
    }

    /// Size of all values. Units: bytes.
    pub fn size(&self) -> usize {
        self.entries().size
    }
}

impl<K: Eq + Hash + Copy, V> CacheEntries<K, V> {
    fn remove(&mut self, key: K) {
        if let Some(removed) = self.by_key.remove(&key) {
            self.size -= removed.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_values_are_evicted() {
        let cache = BoundedCache::new(10);
        cache.put(0, 'a', 5);
        cache.put(1, 'b', 5);
        assert_eq!(cache.get(0), Some('a'), "both fit");
        cache.put(2, 'c', 1);
        assert_eq!(cache.get(0), Some('a'), "recently used");
        assert_eq!(cache.get(1), None, "least recently used");
        cache.put(0, 'd', 9);
        assert_eq!((cache.get(0), cache.size()), (Some('d'), 10));
        cache.put(0, 'e', 11);
        assert_eq!((cache.get(0), cache.size()), (None, 1), "too large");
        cache.remove(2);
        assert_eq!(cache.size(), 0);
    }

    #[test]
    fn a_value_is_kept_when_it_is_not_replaced() {
        let cache = BoundedCache::new(10);
        cache.put(0, 'a', 3);
        cache.replace(0, |known| {
            assert_eq!(known, Some((&'a', 3)));
            None
        });
        assert_eq!(cache.get(0), Some('a'));
    }
}
