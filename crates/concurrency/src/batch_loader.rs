//! Values of many callers, loaded by one query.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use tokio::sync::{Mutex as FairMutex, oneshot};

/// Loads values by keys: callers that arrive during a query share the next one. A query starts after the calls that it
/// answers, so that its values are as new as those of a query of their own.
///
/// One caller runs the query for all that wait, and no task outlives them. When it is dropped or fails, the others load
/// their own values.
pub struct BatchLoader<K, V> {
    waiting: Mutex<Vec<WaitingCall<K, V>>>,
    leader: FairMutex<()>,
}

struct WaitingCall<K, V> {
    key: K,
    done: oneshot::Sender<Option<V>>,
}

impl<K, V> Default for BatchLoader<K, V> {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            leader: FairMutex::default(),
        }
    }
}

impl<K, V> fmt::Debug for BatchLoader<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchLoader").finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash, V: Clone> BatchLoader<K, V> {
    /// The value of `key`; none if `query` has none. `query` gets each key once.
    ///
    /// Errors: those of `query`.
    pub async fn load<E, F>(&self, key: K, query: impl Fn(Vec<K>) -> F) -> Result<Option<V>, E>
    where
        F: Future<Output = Result<HashMap<K, V>, E>>,
    {
        let (done, mut value) = oneshot::channel();
        let call = WaitingCall {
            key: key.clone(),
            done,
        };
        self.waiting().push(call);
        let leader = tokio::select! {
            biased;
            value = &mut value => match value {
                Ok(value) => return Ok(value),
                Err(_) => None,
            },
            leader = self.leader.lock() => Some(leader),
        };
        if leader.is_none() {
            return Ok(query(vec![key.clone()]).await?.remove(&key));
        }
        // The leader before may have sent it while this call was woken.
        if let Ok(value) = value.try_recv() {
            return Ok(value);
        }
        let mut calls = std::mem::take(&mut *self.waiting());
        calls.retain(|call| !call.done.is_closed());
        let mut keys: HashSet<K> = calls.iter().map(|call| call.key.clone()).collect();
        // A call whose leader has failed is not among those that wait.
        keys.insert(key.clone());
        let values = query(keys.into_iter().collect()).await?;
        for call in calls {
            // Its caller may have been dropped.
            drop(call.done.send(values.get(&call.key).cloned()));
        }
        Ok(values.get(&key).cloned())
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Vec<WaitingCall<K, V>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    /// A table whose queries wait for permits, and are recorded.
    #[derive(Default)]
    struct Table {
        loader: BatchLoader<u32, u32>,
        queries: Mutex<Vec<Vec<u32>>>,
        permits: Option<Semaphore>,
    }

    impl Table {
        fn gated() -> Arc<Self> {
            Arc::new(Self {
                permits: Some(Semaphore::new(0)),
                ..Self::default()
            })
        }

        /// Keys below 100 have the value tenfold; a query with the key 1000 fails.
        async fn load(&self, key: u32) -> Result<Option<u32>, String> {
            let query = |mut keys: Vec<u32>| async move {
                keys.sort_unstable();
                self.queries.lock().unwrap().push(keys.clone());
                if let Some(permits) = &self.permits {
                    permits.acquire().await.unwrap().forget();
                }
                if keys.contains(&1000) {
                    return Err("failed".to_owned());
                }
                let known = keys.into_iter().filter(|key| *key < 100);
                Ok(known.map(|key| (key, key * 10)).collect())
            };
            self.loader.load(key, query).await
        }

        fn start(
            self: &Arc<Self>,
            key: u32,
        ) -> tokio::task::JoinHandle<Result<Option<u32>, String>> {
            let table = Arc::clone(self);
            tokio::spawn(async move { table.load(key).await })
        }

        fn permit(&self, count: usize) {
            self.permits.as_ref().unwrap().add_permits(count);
        }

        async fn queries(&self, count: usize) -> Vec<Vec<u32>> {
            loop {
                let seen = self.queries.lock().unwrap().clone();
                if seen.len() >= count {
                    return seen;
                }
                tokio::task::yield_now().await;
            }
        }

        async fn waiting(&self, count: usize) {
            while self.loader.waiting().len() < count {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn callers_during_a_query_share_the_next() {
        let table = Table::gated();
        let first = table.start(1);
        table.queries(1).await;
        let others = [2, 3, 3, 200].map(|key| table.start(key));
        table.waiting(4).await;
        table.permit(2);
        assert_eq!(first.await.unwrap(), Ok(Some(10)));
        let values: Vec<_> = join_all(others)
            .await
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(values, [Ok(Some(20)), Ok(Some(30)), Ok(Some(30)), Ok(None)]);
        assert_eq!(table.queries(2).await, [vec![1], vec![2, 3, 200]]);
    }

    #[tokio::test]
    async fn a_failure_is_of_its_caller_alone() {
        let table = Table::gated();
        let first = table.start(1);
        table.queries(1).await;
        let failing = table.start(1000);
        table.waiting(1).await;
        let other = table.start(2);
        table.waiting(2).await;
        table.permit(3);
        assert_eq!(first.await.unwrap(), Ok(Some(10)));
        assert_eq!(failing.await.unwrap(), Err("failed".to_owned()));
        assert_eq!(other.await.unwrap(), Ok(Some(20)));
        assert_eq!(table.queries(3).await, [vec![1], vec![2, 1000], vec![2]]);
    }

    #[tokio::test]
    async fn dropped_callers_delay_none() {
        let table = Table::gated();
        let first = table.start(1);
        table.queries(1).await;
        let (dropped, other) = (table.start(2), table.start(3));
        table.waiting(2).await;
        dropped.abort();
        assert!(dropped.await.unwrap_err().is_cancelled());
        // The leader: its query is dropped with it.
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        assert_eq!(table.queries(2).await, [vec![1], vec![3]]);
        let late = table.start(4);
        table.waiting(1).await;
        other.abort();
        table.permit(1);
        assert_eq!(late.await.unwrap(), Ok(Some(40)));
        assert!(table.loader.waiting().is_empty());
    }

    #[tokio::test]
    async fn each_caller_gets_its_own_value() {
        let table = Arc::new(Table::default());
        let calls = (0..500).map(|key| table.start(key % 120));
        for (key, value) in join_all(calls).await.into_iter().enumerate() {
            let key = u32::try_from(key).unwrap() % 120;
            assert_eq!(value.unwrap(), Ok((key < 100).then_some(key * 10)));
        }
        assert!(table.loader.waiting().is_empty());
    }
}
