//! Refreshes of clusters, coalesced: one at a time for each cluster, and one for all changes that came meanwhile.
//!
//! A change of one host marks its cluster in the database, in the change's own transaction, and here. What is marked
//! here is refreshed at once; what only the database knows (of a process that ended) is found by the monitor.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::Error;
use model::ids::ClusterId;
use tokio::sync::watch;

use super::{App, Scope, Work};

/// After a refresh its cluster is left alone for so many times the time that it took: validations of one large cluster
/// take at most a quarter of a core.
const REST: u32 = 3;
/// A client waits no longer for the refresh that its change asked for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Clusters that are refreshed now, or wait for it.
#[derive(Debug, Default)]
pub(super) struct Refreshes(Mutex<HashMap<ClusterId, Pending>>);

#[derive(Debug)]
struct Pending {
    /// Grows with each request.
    asked: u64,
    /// The newest request that a refresh has begun after, and ended.
    done: watch::Sender<u64>,
}

/// A refresh that was asked for.
#[derive(Debug)]
pub(crate) struct Awaited {
    number: u64,
    done: watch::Receiver<u64>,
}

impl Awaited {
    /// Waits for its end, as long as a client should.
    pub(super) async fn end(mut self) {
        let waiting = self.done.wait_for(|done| *done >= self.number);
        // Neither a timeout nor a failure concerns the change that asked for it, which is stored: the monitor tries
        // again.
        let _ = tokio::time::timeout(PATIENCE, waiting).await;
    }
}

impl Refreshes {
    fn pending(&self) -> MutexGuard<'_, HashMap<ClusterId, Pending>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request: its number, where to learn of its end, and whether nobody refreshes the cluster yet.
    fn ask(&self, id: ClusterId) -> (u64, watch::Receiver<u64>, bool) {
        let mut pending = self.pending();
        let known = pending.contains_key(&id);
        let one = pending.entry(id).or_insert_with(|| Pending {
            asked: 0,
            done: watch::Sender::new(0),
        });
        one.asked += 1;
        (one.asked, one.done.subscribe(), !known)
    }

    /// Whether the cluster is refreshed now, or soon: it is left alone for a while after each refresh.
    pub(super) fn are_asked_for(&self, id: ClusterId) -> bool {
        self.pending().contains_key(&id)
    }

    /// The newest request.
    fn asked(&self, id: ClusterId) -> u64 {
        self.pending().get(&id).map_or(0, |one| one.asked)
    }

    /// The requests up to `number` are answered.
    fn answer(&self, id: ClusterId, number: u64) {
        if let Some(one) = self.pending().get(&id) {
            one.done.send_replace(number);
        }
    }

    /// Forgets the cluster, unless there are requests newer than `number`.
    fn end(&self, id: ClusterId, number: u64) -> bool {
        let mut pending = self.pending();
        if pending.get(&id).is_some_and(|one| one.asked > number) {
            return false;
        }
        pending.remove(&id);
        true
    }
}

impl App {
    /// Has a cluster refreshed soon.
    pub(super) fn refresh_soon(&self, id: ClusterId) -> Awaited {
        let (number, done, is_first) = self.refreshes.ask(id);
        if is_first {
            let app = self.clone();
            // Tracked like a request: the database stays open for it at the end.
            self.requests
                .spawn(async move { app.refresh_until_done(id).await });
        }
        Awaited { number, done }
    }

    async fn refresh_until_done(&self, id: ClusterId) {
        loop {
            let number = self.refreshes.asked(id);
            let started = Instant::now();
            let refresh = |work: &mut Work| {
                work.refresh(&self.policy);
                Ok(())
            };
            match self.change("refresh", Scope::Cluster(id), refresh).await {
                // Deleted meanwhile.
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(cluster.id = %id, error = error.chain(), "the refresh of a cluster failed, the monitor tries again");
                }
            }
            self.refreshes.answer(id, number);
            tokio::time::sleep(started.elapsed() * REST).await;
            if self.refreshes.end(id, number) {
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
        let (first, mut done, is_first) = refreshes.ask(id);
        assert!(is_first);
        let begun = refreshes.asked(id);
        let (_, _, is_first) = refreshes.ask(id);
        let (third, mut later, _) = refreshes.ask(id);
        assert!(!is_first);
        refreshes.answer(id, begun);
        done.wait_for(|done| *done >= first).await.unwrap();
        assert!(
            *later.borrow() < third,
            "it was asked for after the refresh began"
        );
        assert!(!refreshes.end(id, begun));
        assert!(refreshes.are_asked_for(id));
        let begun = refreshes.asked(id);
        refreshes.answer(id, begun);
        later.wait_for(|done| *done >= third).await.unwrap();
        assert!(refreshes.end(id, begun));
        assert!(!refreshes.are_asked_for(id));
        assert!(refreshes.ask(id).2, "nothing is left");
    }
}
