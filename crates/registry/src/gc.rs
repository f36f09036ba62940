//! Garbage: collected from time to time, or when somebody asks.

use std::time::Duration;

use blob_store::{BlobStore as _, Collected, StoreError};
use serde::Serialize;

use crate::Settings;
use crate::app::App;
use crate::observe;
use crate::policy::{self, Expired};
use crate::purge::AGE_LIMIT;

/// What went.
#[derive(Debug, Serialize)]
pub(crate) struct Cleaned {
    /// What no rule of the policy keeps; nothing without a policy.
    retention: Option<Expired>,
    #[serde(flatten)]
    collected: Collected,
}

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

/// Lets go what the policy does not keep, and collects what is older than the grace period; with `is_dry`, only
/// counts both. One at a time.
pub(crate) async fn collect(app: &App, is_dry: bool) -> Result<Cleaned, StoreError> {
    let _turn = app.collecting.lock().await;
    // What is not adopted yet has neither tags nor links here.
    app.store.adopted().await;
    let retention = policy::retain(app, is_dry).await?;
    if let Some(Expired {
        is_dry,
        tags,
        manifests,
        ..
    }) = &retention
    {
        tracing::info!(is_dry, tags, manifests, "what no rule keeps has expired");
    }
    let before = service::clock::now() - app.grace.min(AGE_LIMIT);
    let collected = app.store.collect(before, is_dry).await;
    if !is_dry {
        let gone = collected.as_ref().ok();
        observe::collected(gone.map(|gone| (gone.blobs, gone.bytes)));
    }
    let collected = collected?;
    let Collected {
        manifests,
        links,
        blobs,
        bytes,
        repositories,
    } = collected;
    tracing::info!(
        is_dry,
        manifests,
        links,
        blobs,
        bytes,
        repositories,
        "garbage collected"
    );
    Ok(Cleaned {
        retention,
        collected,
    })
}
