//! Runs due preparations, also those that a crashed replica left behind.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use model::ids::ClusterId;
use service::CancellationToken;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::app::ClusterStore;
use crate::app::preparation::{PreparationAttempt, Preparations};

/// Poll interval without notifications: another replica may have crashed during a preparation.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// Concurrency limit of preparations; each holds a connection to the database. The others wait in the database.
const MAX_RUNNING: usize = 16;
/// Due preparations read in one query: more than can be deferred at a time, so that deferred ones hide no others.
const DUE_LIMIT: i64 = 1024;

/// Runs until `shutdown`. A running preparation is left to another replica or the next start.
pub(super) async fn run(
    preparations: Arc<Preparations>,
    clusters: Arc<ClusterStore>,
    shutdown: &CancellationToken,
) {
    let mut slots = Slots::default();
    loop {
        slots.start_due(&preparations).await;
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = clusters.preparation_due.notified() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
            Some(finished) = slots.running.join_next(), if !slots.running.is_empty() => slots.finished(finished),
        }
    }
}

/// The preparations of this process.
#[derive(Default)]
struct Slots {
    running: JoinSet<(ClusterId, bool)>,
    clusters: HashSet<ClusterId>,
    /// Retry time of deferred or failed preparations, which hold no slot meanwhile.
    deferred: HashMap<ClusterId, Instant>,
}

impl Slots {
    async fn start_due(&mut self, preparations: &Arc<Preparations>) {
        let due = match preparations.due(DUE_LIMIT).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(
                    error = error.chain(),
                    "query of due preparations failed, retrying"
                );
                return;
            }
        };
        let now = Instant::now();
        self.deferred.retain(|_, until| *until > now);
        for id in due {
            if self.running.len() == MAX_RUNNING {
                break;
            }
            if !self.deferred.contains_key(&id) && self.clusters.insert(id) {
                let preparations = Arc::clone(preparations);
                self.running
                    .spawn(async move { (id, attempt(&preparations, id).await) });
            }
        }
    }

    fn finished(&mut self, finished: Result<(ClusterId, bool), JoinError>) {
        match finished {
            Ok((id, is_finished)) => {
                self.clusters.remove(&id);
                if is_finished {
                    // A preparation that waits for the same registry may start.
                    self.deferred.clear();
                } else {
                    self.deferred.insert(id, Instant::now() + POLL_INTERVAL);
                }
            }
            Err(error) => {
                tracing::error!(%error, "preparation panicked");
                self.clusters.clear();
            }
        }
    }
}

/// Prepares a cluster; false if it is to be retried.
async fn attempt(preparations: &Preparations, id: ClusterId) -> bool {
    match preparations.prepare(id).await {
        Ok(attempt) => attempt == PreparationAttempt::Finished,
        Err(error) => {
            tracing::warn!(cluster.id = %id, error = error.chain(), "preparation interrupted, retrying");
            false
        }
    }
}
