//! Makes the files of ordered installations, also of those that another process has left behind.

use std::collections::HashSet;
use std::time::Duration;

use model::ids::ClusterId;
use service::CancellationToken;
use tokio::task::JoinSet;

use super::pause;
use crate::app::App;

/// Without being woken: another replica may have died in the middle.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Preparations that wait or run in this process; the others wait in the database.
const AT_ONCE: usize = 16;

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
    let mut running: JoinSet<ClusterId> = JoinSet::new();
    let mut clusters: HashSet<ClusterId> = HashSet::new();
    loop {
        start_due(app, &mut running, &mut clusters).await;
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = app.preparation.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            Some(ended) = running.join_next(), if !running.is_empty() => match ended {
                Ok(id) => {
                    clusters.remove(&id);
                }
                Err(error) => {
                    tracing::error!(%error, "a preparation ended unexpectedly");
                    clusters.clear();
                }
            }
        }
    }
}

async fn start_due(app: &App, running: &mut JoinSet<ClusterId>, clusters: &mut HashSet<ClusterId>) {
    let due = match app
        .preparations_due(AT_ONCE.try_into().unwrap_or(i64::MAX))
        .await
    {
        Ok(due) => due,
        Err(error) => {
            tracing::warn!(
                error = error.chain(),
                "looking for due preparations failed, trying again"
            );
            return;
        }
    };
    for id in due {
        if running.len() < AT_ONCE && clusters.insert(id) {
            let app = app.clone();
            running.spawn(async move {
                match app.prepare(id).await {
                    Ok(true) => return id,
                    // Another replica is at it, and may die.
                    Ok(false) => {}
                    Err(error) => {
                        tracing::warn!(cluster.id = %id, error = error.chain(), "the preparation stopped, trying again");
                    }
                }
                // What ended at once would be tried again at once.
                tokio::time::sleep(LOOK_EVERY).await;
                id
            });
        }
    }
}
