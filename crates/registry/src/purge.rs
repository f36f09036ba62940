//! Expiry of abandoned uploads: without it, interrupted pushes would fill the disk.

use std::time::Duration;

use blob_store::ContentStore as _;

use crate::observe;
use crate::settings::Settings;
use crate::storage::Store;

/// Longer ages mean never: about a hundred years, so that no subtraction leaves the calendar.
pub(crate) const AGE_LIMIT: Duration = Duration::from_hours(100 * 365 * 24);

/// Looks for abandoned uploads now and after each interval, for ever.
pub(crate) async fn run(store: Store, settings: &Settings) {
    let age = settings
        .registry_storage_maintenance_uploadpurging_age
        .min(AGE_LIMIT);
    // Zero would never let anything else run.
    let interval = settings
        .registry_storage_maintenance_uploadpurging_interval
        .max(Duration::from_secs(1));
    loop {
        match store.purge_uploads(service::clock::now() - age).await {
            Ok(0) => {}
            Ok(uploads) => {
                observe::upload("abandoned", uploads as u64);
                tracing::info!(uploads, "abandoned uploads dropped");
            }
            Err(error) => tracing::error!(%error, "abandoned uploads not dropped"),
        }
        tokio::time::sleep(interval).await;
    }
}
