//! Makes the files of ordered installations, also of those that another process has left behind.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use model::ids::ClusterId;
use service::CancellationToken;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::pause;
use crate::app::{App, Attempt};

/// Without being woken: another replica may have died in the middle.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Preparations that wait or run in this process; the others wait in the database. Each holds a connection to it.
const AT_ONCE: usize = 16;
/// Due preparations that are looked at: more than can be deferred at a time, so that the others are seen.
const DUE_LIMIT: i64 = 1024;

/// Runs until `shutdown`. A preparation that is running then is left to the next process.
pub(super) async fn run(app: &App, shutdown: &CancellationToken) {
    tokio::join!(prepare(app, shutdown), listen(app, shutdown));
}

/// Wakes this process for what other replicas have ordered.
async fn listen(app: &App, shutdown: &CancellationToken) {
    loop {
        let Ok(mut listener) = app.db.listen_for_preparations().await else {
            if pause(LOOK_EVERY, shutdown).await {
                continue;
            }
            return;
        };
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                told = listener.recv() => match told {
                    Ok(_) => app.preparation.notify_one(),
                    Err(_) => break,
                }
            }
        }
        if !pause(LOOK_EVERY, shutdown).await {
            return;
        }
    }
}

async fn prepare(app: &App, shutdown: &CancellationToken) {
    let mut slots = Slots::default();
    loop {
        slots.start_due(app).await;
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = app.preparation.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            Some(ended) = slots.running.join_next(), if !slots.running.is_empty() => slots.ended(ended),
        }
    }
}

/// The preparations of this process.
#[derive(Default)]
struct Slots {
    running: JoinSet<(ClusterId, bool)>,
    clusters: HashSet<ClusterId>,
    /// When those that were deferred or stopped are tried again. They hold no slot meanwhile.
    deferred: HashMap<ClusterId, Instant>,
}

impl Slots {
    async fn start_due(&mut self, app: &App) {
        let due = match app.preparations_due(DUE_LIMIT).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(
                    error = error.chain(),
                    "looking for due preparations failed, trying again"
                );
                return;
            }
        };
        let now = Instant::now();
        self.deferred.retain(|_, until| *until > now);
        for id in due {
            if self.running.len() == AT_ONCE {
                break;
            }
            if !self.deferred.contains_key(&id) && self.clusters.insert(id) {
                let app = app.clone();
                self.running
                    .spawn(async move { (id, attempt(&app, id).await) });
            }
        }
    }

    fn ended(&mut self, ended: Result<(ClusterId, bool), JoinError>) {
        match ended {
            Ok((id, is_finished)) => {
                self.clusters.remove(&id);
                if is_finished {
                    // One that waits for the same registry may begin.
                    self.deferred.clear();
                } else {
                    self.deferred.insert(id, Instant::now() + LOOK_EVERY);
                }
            }
            Err(error) => {
                tracing::error!(%error, "a preparation ended unexpectedly");
                self.clusters.clear();
            }
        }
    }
}

/// Tries to prepare a cluster; whether that came to an end.
async fn attempt(app: &App, id: ClusterId) -> bool {
    match app.prepare(id).await {
        Ok(attempt) => attempt == Attempt::Finished,
        Err(error) => {
            tracing::warn!(cluster.id = %id, error = error.chain(), "the preparation stopped, trying again");
            false
        }
    }
}
