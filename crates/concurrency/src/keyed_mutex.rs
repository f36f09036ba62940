//! A mutex for each key, so that callers with different keys never wait for each other.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

/// Entries above which the unused ones are dropped.
const SWEEP_ABOVE: usize = 256;

/// Mutexes by key; one exists only while a caller holds it or waits for it.
#[derive(Debug)]
pub struct KeyedMutex<K>(Mutex<HashMap<K, Weak<tokio::sync::Mutex<()>>>>);

impl<K> Default for KeyedMutex<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> KeyedMutex<K> {
    /// Waits for the mutex of `key`; it is held while the guard lives.
    pub async fn lock<Q>(&self, key: &Q) -> OwnedMutexGuard<()>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        self.mutex(key).lock_owned().await
    }

    /// Waits for the mutex of `key`, unless `waiting` callers wait for it already.
    pub async fn lock_within<Q>(&self, key: &Q, waiting: usize) -> Option<OwnedMutexGuard<()>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let mutex = self.mutex(key);
        // Each caller that waits holds the mutex, this one included, and so does the guard.
        if Arc::strong_count(&mutex) > waiting + 1 {
            return None;
        }
        Some(mutex.lock_owned().await)
    }

    fn mutex<Q>(&self, key: &Q) -> Arc<tokio::sync::Mutex<()>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > SWEEP_ABOVE {
            known.retain(|_, mutex| mutex.strong_count() > 0);
        }
        known.get(key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let mutex = Arc::new(tokio::sync::Mutex::new(()));
            known.insert(key.to_owned(), Arc::downgrade(&mutex));
            mutex
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_same_key_waits() {
        let mutexes = KeyedMutex::<String>::default();
        let first = mutexes.lock("a").await;
        drop(mutexes.lock("b").await);
        let mut again = Box::pin(mutexes.lock("a"));
        assert!(futures_util::poll!(&mut again).is_pending());
        drop(first);
        again.await;
    }

    // limit: changes waiting for a cluster
    #[tokio::test]
    async fn no_more_than_the_bound_wait_for_one_key() {
        let mutexes = KeyedMutex::<String>::default();
        let first = mutexes.lock("a").await;
        let mut second = Box::pin(mutexes.lock_within("a", 2));
        assert!(futures_util::poll!(&mut second).is_pending());
        let mut third = Box::pin(mutexes.lock_within("a", 2));
        assert!(futures_util::poll!(&mut third).is_pending());
        assert!(mutexes.lock_within("a", 2).await.is_none());
        assert!(mutexes.lock_within("b", 2).await.is_some());
        drop(third);
        let mut again = Box::pin(mutexes.lock_within("a", 2));
        assert!(futures_util::poll!(&mut again).is_pending());
        drop(first);
        assert!(second.await.is_some());
    }

    #[tokio::test]
    async fn unused_entries_are_dropped() {
        let mutexes = KeyedMutex::<String>::default();
        for key in 0..=SWEEP_ABOVE * 2 {
            drop(mutexes.lock(&key.to_string()).await);
        }
        assert!(mutexes.0.lock().unwrap().len() <= SWEEP_ABOVE + 1);
    }
}
