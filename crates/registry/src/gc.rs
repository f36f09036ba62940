//! Garbage: collected from time to time, or when somebody asks.

use std::time::Duration;

use oci::store::{BlobStore as _, Collected, StoreError};

use crate::Settings;
use crate::app::App;
use crate::observe;
use crate::purge::AGE_LIMIT;

/// Collects after each interval, for ever.
pub(crate) async fn run(app: App, settings: &Settings) {
    // Zero would never let anything else run.
    let interval = settings
        .registry_storage_maintenance_gc_interval
        .max(Duration::from_secs(1));
    loop {
        // What was pushed before the start gets its time, too.
        tokio::time::sleep(interval).await;
        match collect(&app, false).await {
            Ok(_) => {}
            Err(error) => {
                let error = model::error::chain(&error);
                tracing::error!(error, "garbage not collected");
            }
        }
    }
}

/// Collects what is older than the grace period; with `is_dry`, only counts it. One at a time.
pub(crate) async fn collect(app: &App, is_dry: bool) -> Result<Collected, StoreError> {
    let _turn = app.collecting.lock().await;
    let before = service::clock::now() - app.grace.min(AGE_LIMIT);
    let collected = app.store.collect(before, is_dry).await;
    if !is_dry {
        let gone = collected.as_ref().ok();
        observe::collected(gone.map(|gone| (gone.blobs, gone.bytes)));
    }
    let collected = collected?;
    let Collected {
        links,
        blobs,
        bytes,
        repositories,
    } = collected;
    tracing::info!(
        is_dry,
        links,
        blobs,
        bytes,
        repositories,
        "garbage collected"
    );
    Ok(collected)
}
