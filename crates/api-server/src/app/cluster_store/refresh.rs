//! Coalesced refreshes: one at a time for each cluster; the next one serves all changes that came meanwhile.
//!
//! A change of one host marks its cluster's refresh as due in the database, in the change's own transaction, and
//! here. Marks of this process are served at once; those of a crashed process are found by the monitor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use model::Error;
use model::ids::ClusterId;

use super::pending_refresh::RefreshHandle;
use super::{ClusterStore, ClusterTransaction, Scope};

/// Throttle: the pause after a refresh, as a multiple of its duration. The validations of one large cluster take at
/// most a quarter of a core.
const PAUSE_FACTOR: u32 = 3;
/// Longest time for which waiting changes of hosts go before the refresh, which serves them, too: hosts that boot together
/// would wait for refreshes of those that were first.
const DEFERRED: Duration = Duration::from_millis(250);
/// Interval of looking for waiting changes.
const LOOK: Duration = Duration::from_millis(5);

impl ClusterStore {
    /// Requests a refresh of a cluster.
    pub(crate) fn request_refresh(self: &Arc<Self>, id: ClusterId) -> RefreshHandle {
        let (handle, is_first) = self.refreshes.request(id);
        if is_first {
            let store = Arc::clone(self);
            // Tracked like a request: a graceful shutdown drains it before the pool closes.
            self.requests
                .spawn(async move { store.refresh_until_done(id).await });
        }
        handle
    }

    /// Whether a refresh of a cluster is pending, running, or in its pause.
    pub(crate) fn is_refresh_pending(&self, id: ClusterId) -> bool {
        self.refreshes.is_pending(id)
    }

    async fn refresh_until_done(self: &Arc<Self>, id: ClusterId) {
        loop {
            let deferred = Instant::now();
            while self.host_changes.is_waiting(id) && deferred.elapsed() < DEFERRED {
                tokio::time::sleep(LOOK).await;
            }
            let number = self.refreshes.requested(id);
            let started = Instant::now();
            let refresh = |change: &mut ClusterTransaction| {
                change.refresh();
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
