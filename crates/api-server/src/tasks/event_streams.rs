//! The reader of events for the streams of this process.

use std::sync::Arc;
use std::time::Duration;

use service::CancellationToken;

use super::pause::pause;
use crate::app::event_stream::EventStreams;

/// Least interval of reads: a burst of events is read together.
const COALESCE: Duration = Duration::from_millis(10);
/// Interval of reads while a transaction with an earlier event may still run.
const GAP_INTERVAL: Duration = Duration::from_millis(250);
/// Interval of reads without notifications, which get lost with their connection.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Reads until `shutdown`, which ends all streams.
pub(super) async fn run(streams: Arc<EventStreams>, shutdown: &CancellationToken) {
    let mut interval = POLL_INTERVAL;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = streams.wake.notified() => {}
            () = tokio::time::sleep(interval) => {}
        }
        interval = match streams.read_new().await {
            Ok(true) => GAP_INTERVAL,
            Ok(false) => POLL_INTERVAL,
            Err(error) => {
                tracing::warn!(error = error.chain(), "new events not read, retrying");
                POLL_INTERVAL
            }
        };
        if !pause(COALESCE, shutdown).await {
            break;
        }
    }
    streams.close().await;
}
