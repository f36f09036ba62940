//! Coalesced refreshes: one at a time for each cluster; the next one serves all changes that came meanwhile.
//!
//! A change of one host marks its cluster's refresh as due in the database, in the change's own transaction, and
//! here. Marks of this process are served at once; those of a crashed process are found by the monitor.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::Error;
use model::ids::ClusterId;
use tokio::sync::watch;

use super::{ApiServer, ClusterTransaction, Scope};

/// Throttle: the pause after a refresh, as a multiple of its duration. The validations of one large cluster take at
/// most a quarter of a core.
const PAUSE_FACTOR: u32 = 3;
/// Longest wait of a request for the refresh of its change.
const WAIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Pending and running refreshes, by cluster.
#[derive(Debug, Default)]
pub(super) struct Refreshes(Mutex<HashMap<ClusterId, PendingRefresh>>);

#[derive(Debug)]
struct PendingRefresh {
    /// Number of the newest request.
    requested: u64,
    /// Number of the newest request that a finished refresh covers.
    done: watch::Sender<u64>,
}

/// A requested refresh.
#[derive(Debug)]
pub(crate) struct RefreshHandle {
    number: u64,
    done: watch::Receiver<u64>,
}

impl RefreshHandle {
    /// Waits for its end, up to [`WAIT_TIMEOUT`].
    pub(super) async fn wait(mut self) {
        let waiting = self.done.wait_for(|done| *done >= self.number);
        // Neither a timeout nor a failure concerns the change, which is committed: the monitor retries.
        let _ = tokio::time::timeout(WAIT_TIMEOUT, waiting).await;
    }
}

impl Refreshes {
    fn pending(&self) -> MutexGuard<'_, HashMap<ClusterId, PendingRefresh>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request. Returns its number, the channel of finished requests, and whether no refresh is pending yet.
    fn request(&self, id: ClusterId) -> (u64, watch::Receiver<u64>, bool) {
        let mut pending = self.pending();
        let known = pending.contains_key(&id);
        let one = pending.entry(id).or_insert_with(|| PendingRefresh {
            requested: 0,
            done: watch::Sender::new(0),
        });
        one.requested += 1;
        (one.requested, one.done.subscribe(), !known)
    }

    /// Whether a refresh is pending, running, or in its pause.
    pub(super) fn is_pending(&self, id: ClusterId) -> bool {
        self.pending().contains_key(&id)
    }

    /// Number of the newest request.
    fn requested(&self, id: ClusterId) -> u64 {
        self.pending().get(&id).map_or(0, |one| one.requested)
    }

    /// Marks the requests up to `number` as served.
    fn complete(&self, id: ClusterId, number: u64) {
        if let Some(one) = self.pending().get(&id) {
            one.done.send_replace(number);
        }
    }

    /// Removes the cluster, unless there are requests newer than `number`.
    fn finish(&self, id: ClusterId, number: u64) -> bool {
        let mut pending = self.pending();
        if pending.get(&id).is_some_and(|one| one.requested > number) {
            return false;
        }
        pending.remove(&id);
        true
    }
}

impl ApiServer {
    /// Requests a refresh of a cluster.
    pub(super) fn request_refresh(&self, id: ClusterId) -> RefreshHandle {
        let (number, done, is_first) = self.refreshes.request(id);
        if is_first {
            let app = self.clone();
            // Tracked like a request: a graceful shutdown drains it before the pool closes.
            self.requests
                .spawn(async move { app.refresh_until_done(id).await });
        }
        RefreshHandle { number, done }
    }

    async fn refresh_until_done(&self, id: ClusterId) {
        loop {
            let number = self.refreshes.requested(id);
            let started = Instant::now();
            let refresh = |change: &mut ClusterTransaction| {
                change.refresh(&self.policy);
                Ok(())
            };
            match self.change("refresh", Scope::Cluster(id), refresh).await {
                // Deleted since the request.
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(cluster.id = %id, error = error.chain(), "refresh failed, the monitor retries");
                }
            }
            self.refreshes.complete(id, number);
            tokio::time::sleep(started.elapsed() * PAUSE_FACTOR).await;
            if self.refreshes.finish(id, number) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_during_a_refresh_share_the_next_one() {
        let refreshes = Refreshes::default();
        let id = ClusterId::default();
        let (first, mut done, is_first) = refreshes.request(id);
        assert!(is_first);
        let begun = refreshes.requested(id);
        let (_, _, is_first) = refreshes.request(id);
        let (third, mut later, _) = refreshes.request(id);
        assert!(!is_first);
        refreshes.complete(id, begun);
        done.wait_for(|done| *done >= first).await.unwrap();
        assert!(*later.borrow() < third, "requested after the refresh began");
        assert!(!refreshes.finish(id, begun));
        assert!(refreshes.is_pending(id));
        let begun = refreshes.requested(id);
        refreshes.complete(id, begun);
        later.wait_for(|done| *done >= third).await.unwrap();
        assert!(refreshes.finish(id, begun));
        assert!(!refreshes.is_pending(id));
        assert!(refreshes.request(id).2, "no refresh is pending");
    }
}
