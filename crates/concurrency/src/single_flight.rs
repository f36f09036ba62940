//! Concurrent calls for one key that run once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};

type SharedCall<T> = Shared<BoxFuture<'static, Option<T>>>;
type Calls<K, T> = Arc<Mutex<HashMap<K, SharedCall<T>>>>;

/// Calls in progress, by key. Results are not cached: a call after the end runs again.
#[derive(Debug)]
pub struct SingleFlight<K, T>(Calls<K, T>);

impl<K, T> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K, T> SingleFlight<K, T>
where
    K: Clone + Eq + Hash + Send + 'static,
    T: Clone + Send + Sync + 'static,
{
    /// Runs `work`, or joins the call for `key` that is in progress. The work continues when every caller is dropped.
    /// None when it panicked.
    pub async fn run(&self, key: K, work: impl FnOnce() -> BoxFuture<'static, T>) -> Option<T> {
        let call = {
            let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(call) = calls.get(&key) {
                call.clone()
            } else {
                let (work, calls_of_task, own_key) = (work(), Arc::clone(&self.0), key.clone());
                let task = tokio::spawn(async move {
                    let _registration = Registration {
                        calls: calls_of_task,
                        key: own_key,
                    };
                    work.await
                });
                let call = task.map(Result::ok).boxed().shared();
                calls.insert(key, call.clone());
                call
            }
        };
        call.await
    }
}

/// Removes the call when it ends, by a panic too.
struct Registration<K: Eq + Hash, T> {
    calls: Calls<K, T>,
    key: K,
}

impl<K: Eq + Hash, T> Drop for Registration<K, T> {
    fn drop(&mut self) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn concurrent_calls_run_once() {
        let calls = SingleFlight::default();
        let count = Arc::new(AtomicUsize::new(0));
        let call = || {
            let count = Arc::clone(&count);
            calls.run("key", move || {
                async move {
                    tokio::task::yield_now().await;
                    count.fetch_add(1, Ordering::SeqCst)
                }
                .boxed()
            })
        };
        let results = futures_util::future::join_all((0..9).map(|_| call())).await;
        assert_eq!(results, [Some(0); 9]);
        assert_eq!(call().await, Some(1), "a later call runs again");
        let panicked = calls.run("other", || async { panic!("on purpose") }.boxed());
        assert_eq!(panicked.await, None);
        assert!(calls.0.lock().unwrap().is_empty());
    }
}
