//! Garbage collection: at intervals, or on request.

use std::sync::Arc;
use std::time::Duration;

use blob_store::{CollectedGarbage, ContentStore as _, StoreError};
use serde::Serialize;
use tokio::sync::Mutex;

use crate::observe::{self, StorageCount};
use crate::policy::{self, Expired, Policies, Pulls};
use crate::purge::AGE_LIMIT;
use crate::settings::Settings;
use crate::storage::Store;

/// Content that a collection removed.
#[derive(Debug, Serialize)]
pub(crate) struct Cleaned {
    /// Tags and manifests that no rule of the policy retains; None without a policy.
    retention: Option<Expired>,
    #[serde(flatten)]
    collected: CollectedGarbage,
}

/// Applies the retention policy and collects garbage, one collection at a time.
#[derive(Debug)]
pub(crate) struct Collector {
    store: Store,
    policies: Arc<Policies>,
    pulls: Arc<Pulls>,
    count: Arc<StorageCount>,
    /// Age below which unreferenced content stays.
    grace: Duration,
    running: Mutex<()>,
}

impl Collector {
    pub(crate) fn new(
        store: Store,
        policies: Arc<Policies>,
        pulls: Arc<Pulls>,
        count: Arc<StorageCount>,
        grace: Duration,
    ) -> Self {
        Self {
            store,
            policies,
            pulls,
            count,
            grace,
            running: Mutex::default(),
        }
    }

    /// Collects after each interval, for ever.
    pub(crate) async fn run(&self, settings: &Settings) {
        // Zero would never let anything else run.
        let interval = settings
            .registry_storage_maintenance_gc_interval
            .max(Duration::from_secs(1));
        loop {
            // Content that was pushed before the start has its grace period, too.
            tokio::time::sleep(interval).await;
            if let Err(error) = self.collect(false).await {
                let error = model::error::chain(&error);
                tracing::error!(error, "garbage not collected");
            }
        }
    }

    /// Expires what the policy does not retain, then removes unreferenced content older than the grace period; with
    /// `is_dry`, only counts both.
    pub(crate) async fn collect(&self, is_dry: bool) -> Result<Cleaned, StoreError> {
        let _running = self.running.lock().await;
        // Repositories that are not adopted yet have neither tags nor links in the index.
        self.store.adopted().await;
        let retention = policy::retain(&self.store, &self.policies, &self.pulls, is_dry).await?;
        if let Some(Expired {
            is_dry,
            tags,
            manifests,
            ..
        }) = &retention
        {
            tracing::info!(
                is_dry,
                tags,
                manifests,
                "unretained tags and manifests expired"
            );
        }
        let before = service::clock::now() - self.grace.min(AGE_LIMIT);
        let collected = self.store.collect(before, is_dry).await;
        if !is_dry {
            let removed = collected.as_ref().ok();
            observe::collected(removed.map(|removed| (removed.blobs, removed.bytes)));
            self.count.renew();
        }
        let collected = collected?;
        let CollectedGarbage {
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
}
