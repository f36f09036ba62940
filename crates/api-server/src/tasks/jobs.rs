//! Runs jobs, also those that a crashed replica left behind.

use std::time::Duration;

use service::CancellationToken;

use crate::app::ApiServer;

/// Poll interval without a new job of this process: another replica may have crashed during one.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Runs until `shutdown`. A running job is left to another replica or the next start.
pub(super) async fn run(app: &ApiServer, shutdown: &CancellationToken) {
    loop {
        let running = shutdown.run_until_cancelled(app.run_due_jobs()).await;
        match running {
            None => return,
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::warn!(error = error.chain(), "jobs not run, retrying");
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = app.jobs.wake.notified() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}
