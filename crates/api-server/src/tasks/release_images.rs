//! Follows the release images that any replica adds.

use std::time::Duration;

use service::CancellationToken;

use super::pause::pause;
use crate::app::ApiServer;

const INTERVAL: Duration = Duration::from_secs(5);

/// Runs until `shutdown`.
pub(super) async fn run(app: &ApiServer, shutdown: &CancellationToken) {
    loop {
        if let Err(error) = app.read_added_releases().await {
            tracing::debug!(
                error = error.chain(),
                "added release images not read, retrying"
            );
        }
        if !pause(INTERVAL, shutdown).await {
            return;
        }
    }
}
