//! Runs jobs, also those that a crashed replica left behind.

use std::sync::Arc;
use std::time::Duration;

use service::CancellationToken;

use crate::app::jobs::Jobs;
use crate::db::jobs::JobRunner;

/// Poll interval without a new job of this process: another replica may have crashed during one.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Runs until `shutdown`. A running job is left to another replica or the next start.
pub(super) async fn run(jobs: Arc<Jobs>, shutdown: &CancellationToken) {
    tokio::join!(
        run_one(&jobs, JobRunner::Archives, shutdown),
        run_one(&jobs, JobRunner::Rehearsals, shutdown),
    );
}

async fn run_one(jobs: &Arc<Jobs>, runner: JobRunner, shutdown: &CancellationToken) {
    loop {
        let running = shutdown.run_until_cancelled(jobs.run_due(runner)).await;
        match running {
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::warn!(error = error.chain(), "jobs not run, retrying");
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = jobs.due(runner).notified() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}
