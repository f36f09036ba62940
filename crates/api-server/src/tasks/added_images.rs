//! Follows the release and OS images that any replica adds.

use std::time::Duration;

use service::CancellationToken;

use super::pause::pause;
use crate::app::ApiServer;

const INTERVAL: Duration = Duration::from_secs(5);

/// Runs until `shutdown`.
pub(super) async fn run(app: &ApiServer, shutdown: &CancellationToken) {
    loop {
        for read in [
            app.read_added_releases().await,
            app.read_added_os_images().await,
        ] {
            if let Err(error) = read {
                tracing::debug!(error = error.chain(), "added images not read, retrying");
            }
        }
        if !pause(INTERVAL, shutdown).await {
            return;
        }
    }
}
