//! Requests of refreshes, numbered by cluster: one refresh serves all requests before its start.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::ids::ClusterId;
use tokio::sync::watch;

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
#[derive(Debug, Clone)]
pub(crate) struct RefreshHandle {
    number: u64,
    done: watch::Receiver<u64>,
}

impl RefreshHandle {
    /// Waits for its end, up to [`WAIT_TIMEOUT`].
    pub(crate) async fn wait(mut self) {
        let waiting = self.done.wait_for(|done| *done >= self.number);
        // Neither a timeout nor a failure concerns the change, which is committed: the monitor retries.
        let _ = tokio::time::timeout(WAIT_TIMEOUT, waiting).await;
    }
}

impl Refreshes {
    fn pending(&self) -> MutexGuard<'_, HashMap<ClusterId, PendingRefresh>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request. Returns its handle, and whether no refresh is pending yet.
    pub(super) fn request(&self, id: ClusterId) -> (RefreshHandle, bool) {
        let mut pending = self.pending();
        let known = pending.contains_key(&id);
        let one = pending.entry(id).or_insert_with(|| PendingRefresh {
            requested: 0,
            done: watch::Sender::new(0),
        });
        one.requested += 1;
        let handle = RefreshHandle {
            number: one.requested,
            done: one.done.subscribe(),
        };
        (handle, !known)
    }

    /// Whether a refresh is pending, running, or in its pause.
    pub(super) fn is_pending(&self, id: ClusterId) -> bool {
        self.pending().contains_key(&id)
    }

    /// Number of the newest request.
    pub(super) fn requested(&self, id: ClusterId) -> u64 {
        self.pending().get(&id).map_or(0, |one| one.requested)
    }

    /// Marks the requests up to `number` as served.
    pub(super) fn complete(&self, id: ClusterId, number: u64) {
        if let Some(one) = self.pending().get(&id) {
            one.done.send_replace(number);
        }
    }

    /// Removes the cluster, unless there are requests newer than `number`.
    pub(super) fn finish(&self, id: ClusterId, number: u64) -> bool {
        let mut pending = self.pending();
        if pending.get(&id).is_some_and(|one| one.requested > number) {
            return false;
        }
        pending.remove(&id);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_during_a_refresh_share_the_next_one() {
        let refreshes = Refreshes::default();
        let id = ClusterId::default();
        let (mut first, is_first) = refreshes.request(id);
        assert!(is_first);
        let begun = refreshes.requested(id);
        let (_, is_first) = refreshes.request(id);
        let (mut third, _) = refreshes.request(id);
        assert!(!is_first);
        refreshes.complete(id, begun);
        let number = first.number;
        first.done.wait_for(|done| *done >= number).await.unwrap();
        let number = third.number;
        assert!(
            *third.done.borrow() < number,
            "requested after the refresh began"
        );
        assert!(!refreshes.finish(id, begun));
        assert!(refreshes.is_pending(id));
        let begun = refreshes.requested(id);
        refreshes.complete(id, begun);
        third.done.wait_for(|done| *done >= number).await.unwrap();
        assert!(refreshes.finish(id, begun));
        assert!(!refreshes.is_pending(id));
        assert!(refreshes.request(id).1, "no refresh is pending");
    }
}
