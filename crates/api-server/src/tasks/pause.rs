//! The pause between two passes of a loop.

use std::time::Duration;

use service::CancellationToken;

/// Sleeps; false at shutdown.
pub(super) async fn pause(duration: Duration, shutdown: &CancellationToken) -> bool {
    tokio::select! {
        () = tokio::time::sleep(duration) => true,
        () = shutdown.cancelled() => false,
    }
}
