//! Follows the release and OS images that any replica adds, or finds in the registry.

use std::sync::Arc;
use std::time::Duration;

use service::CancellationToken;

use super::pause::pause;
use crate::app::os_images::OsImageOffer;
use crate::app::registry_content::SiteContent;
use crate::app::release_images::ReleaseOffer;

const INTERVAL: Duration = Duration::from_secs(5);

/// Runs until `shutdown`.
pub(super) async fn run(
    releases: Arc<ReleaseOffer>,
    os_images: Arc<OsImageOffer>,
    content: Arc<SiteContent>,
    shutdown: &CancellationToken,
) {
    loop {
        for read in [
            releases.read_added().await,
            os_images.read_added().await,
            content.follow().await,
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
