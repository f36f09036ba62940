//! The reader of changes for the streams of this process.

use std::sync::Arc;
use std::time::Duration;

use service::CancellationToken;

use super::pause::pause;
use crate::app::change_stream::ChangeStreams;

/// Interval of reads while a stream is open: people see a change within a second.
const INTERVAL: Duration = Duration::from_millis(300);
/// Retry interval after a failure.
const RETRY: Duration = Duration::from_secs(2);

/// Reads until `shutdown`.
pub(super) async fn run(streams: Arc<ChangeStreams>, shutdown: &CancellationToken) {
    loop {
        let wait = match streams.read_new().await {
            Ok(()) => INTERVAL,
            Err(error) => {
                tracing::debug!(error = error.chain(), "new changes not read, retrying");
                RETRY
            }
        };
        if !pause(wait, shutdown).await {
            return;
        }
    }
}
