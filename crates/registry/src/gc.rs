//! Garbage collection: at intervals, or on request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use blob_store::{CollectedGarbage, ContentStore as _, StoreError};
use concurrency::SingleFlight;
use futures_util::FutureExt as _;
use serde::Serialize;
use service::limits::{Bound, Limit};
use tokio::sync::Mutex;

use crate::error::RegistryError;
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

/// Result of a collection, shared by all that requested it.
type Collected = Result<Arc<Cleaned>, RegistryError>;

/// Applies the retention policy and collects garbage, one collection at a time. Requests during a collection share the
/// next one: it sees content that was deleted before them.
#[derive(Debug)]
pub(crate) struct Collector {
    store: Store,
    policies: Arc<Policies>,
    pulls: Arc<Pulls>,
    count: Arc<StorageCount>,
    /// Age below which unreferenced content stays.
    grace: Duration,
    running: Mutex<()>,
    /// Number of collections that have begun, and of dry ones.
    begun: [AtomicU64; 2],
    /// Collections that wait or run: whether it is dry, and the number of its kind that had begun before it was requested.
    requested: SingleFlight<(bool, u64), Collected>,
}

/// The limit of collections.
pub(crate) fn limit() -> Limit {
    // One that runs and one that waits, of dry ones and of others.
    let bound = Bound::Count(4, "collections");
    let beyond = "requests share the result of one that waits";
    Limit::fixed("collections that run or wait", bound, "server", beyond)
        .unshared("all clients share each")
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
            begun: Default::default(),
            requested: SingleFlight::default(),
        }
    }

    /// Collects after each interval, for ever.
    pub(crate) async fn run(self: &Arc<Self>, settings: &Settings) {
        // Zero would never let anything else run.
        let interval = settings
            .registry_storage_maintenance_gc_interval
            .max(Duration::from_secs(1));
        loop {
            // Content that was pushed before the start has its grace period, too.
            tokio::time::sleep(interval).await;
            // The collection has logged an error.
            self.collect(false).await.ok();
        }
    }

    /// Expires what the policy does not retain, then removes unreferenced content older than the grace period; with
    /// `is_dry`, only counts both. Continues when the caller is dropped.
    pub(crate) async fn collect(self: &Arc<Self>, is_dry: bool) -> Collected {
        let (collector, kind) = (Arc::clone(self), usize::from(is_dry));
        let request = (is_dry, self.begun[kind].load(Ordering::SeqCst));
        let work = async move {
            let _running = collector.running.lock().await;
            collector.begun[kind].fetch_add(1, Ordering::SeqCst);
            collector
                .collect_now(is_dry)
                .await
                .map(Arc::new)
                .map_err(|error| {
                    tracing::error!(error = model::error::chain(&error), "garbage not collected");
                    RegistryError::from(error)
                })
        };
        let collected = self.requested.run(request, || work.boxed()).await;
        collected.unwrap_or_else(|| Err(RegistryError::collection_panicked()))
    }

    async fn collect_now(&self, is_dry: bool) -> Result<Cleaned, StoreError> {
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

#[cfg(test)]
mod tests {
    use blob_store::DiskStore;
    use futures_util::future::join_all;

    use super::*;

    // limit: collections that run or wait
    #[tokio::test]
    async fn requests_during_a_collection_share_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::Disk(DiskStore::open(dir.path()).await.unwrap());
        let policies = Policies::open(&Settings::default()).await.unwrap();
        let collector = Arc::new(Collector::new(
            store,
            Arc::new(policies),
            Arc::default(),
            Arc::default(),
            Duration::ZERO,
        ));
        let running = collector.running.lock().await;
        let mut requests = join_all((0..300).map(|n| collector.collect(n % 3 == 0)));
        assert!(futures_util::poll!(&mut requests).is_pending());
        drop(running);
        assert!(requests.await.iter().all(Result::is_ok));
        let begun = || {
            collector
                .begun
                .each_ref()
                .map(|it| it.load(Ordering::SeqCst))
        };
        assert_eq!(begun(), [1, 1]);
        collector.collect(false).await.unwrap();
        assert_eq!(begun(), [2, 1], "a later request runs again");
    }
}
