//! Work that many ask for at once and that is done once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

type Flight<T> = Shared<BoxFuture<'static, Option<T>>>;

/// What is being done, by what it is done for.
#[derive(Debug)]
pub(super) struct Flights<K, T>(Arc<Mutex<HashMap<K, Flight<T>>>>);

impl<K, T> Default for Flights<K, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K, T> Flights<K, T>
where
    K: Clone + Eq + Hash + Send + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// The result of `work`, or of the same that somebody else has begun. It goes on when nobody waits any more.
    /// Nothing when it panicked.
    pub(super) async fn join(
        &self,
        key: K,
        work: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> Option<T> {
        let flight = {
            let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(flight) = flights.get(&key) {
                flight.clone()
            } else {
                let (work, all, own) = (work(), Arc::clone(&self.0), key.clone());
                let task = tokio::spawn(async move {
                    let _landed = Landing { all, key: own };
                    work.await
                });
                let flight = task.map(Result::ok).boxed().shared();
                flights.insert(key, flight.clone());
                flight
            }
        };
        flight.await
    }
}

/// Makes room for the next one, whatever happens.
struct Landing<K: Eq + Hash, T> {
    all: Arc<Mutex<HashMap<K, Flight<T>>>>,
    key: K,
}

impl<K: Eq + Hash, T> Drop for Landing<K, T> {
    fn drop(&mut self) {
        let mut flights = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        flights.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn many_callers_are_one_piece_of_work() {
        let flights = Flights::default();
        let count = Arc::new(AtomicUsize::new(0));
        let call = || {
            let count = Arc::clone(&count);
            flights.join("key", move || {
                async move {
                    tokio::task::yield_now().await;
                    count.fetch_add(1, Ordering::SeqCst)
                }
                .boxed()
            })
        };
        let results = futures_util::future::join_all((0..9).map(|_| call())).await;
        assert_eq!(results, [Some(0); 9]);
        assert_eq!(call().await, Some(1), "the next one is new");
        let panicked = flights.join("other", || async { panic!("on purpose") }.boxed());
        assert_eq!(panicked.await, None);
        assert!(flights.0.lock().unwrap().is_empty());
    }
}
