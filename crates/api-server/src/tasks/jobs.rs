//! Runs jobs, also those that a crashed replica left behind.

use std::time::Duration;

use service::CancellationToken;

use crate::app::ApiServer;
use crate::db::jobs::JobRunner;

/// Poll interval without a new job of this process: another replica may have crashed during one.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Runs until `shutdown`. A running job is left to another replica or the next start.
pub(super) async fn run(app: &ApiServer, shutdown: &CancellationToken) {
    tokio::join!(
        run_one(app, JobRunner::Archives, shutdown),
        run_one(app, JobRunner::Rehearsals, shutdown),
    );
}

async fn run_one(app: &ApiServer, runner: JobRunner, shutdown: &CancellationToken) {
    loop {
        let running = shutdown.run_until_cancelled(app.run_due_jobs(runner)).await;
        match running {
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::warn!(error = error.chain(), "jobs not run, retrying");
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = app.runner(runner).notified() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}
