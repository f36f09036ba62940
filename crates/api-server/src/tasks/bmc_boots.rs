//! Looks after boots by BMCs, also those that a crashed replica left behind.

use std::sync::Arc;
use std::time::Duration;

use service::CancellationToken;

use crate::app::bmc_boots::BmcBoots;

/// Interval while requests of this process are under way: of progress, and of looking for a cancellation.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Poll interval otherwise: another replica may have crashed.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Runs until `shutdown`; then the requests of this process end, with their credentials.
pub(super) async fn run(boots: Arc<BmcBoots>, shutdown: &CancellationToken) {
    loop {
        let looking = shutdown.run_until_cancelled(boots.look_after());
        let pause = match looking.await {
            None => break,
            Some(Ok(true)) => REPORT_INTERVAL,
            Some(Ok(false)) => POLL_INTERVAL,
            Some(Err(error)) => {
                tracing::warn!(error = error.chain(), "boots by BMCs not updated, retrying");
                REPORT_INTERVAL
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = boots.started.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
    boots.abandon().await;
}
