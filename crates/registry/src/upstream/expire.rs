//! Expiry of unused cached content: manifests are deleted, blobs become garbage unless another manifest needs them.

use std::time::Duration;

use blob_store::{ContentStore as _, StoreError};

use super::ages::Ages;
use crate::purge::AGE_LIMIT;
use crate::storage::Store;

/// Shortest and longest interval of writing uses and of expiry.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_hours(1));
/// Manifests that go before the next ones are looked for.
const BATCH: usize = 1000;

/// Expires content whose last use is longer ago than `ttl`, at intervals, for ever; nothing when that is zero.
pub(super) async fn run(ages: &Ages, store: &Store, ttl: Duration) {
    let (least, most) = INTERVALS;
    let interval = match ttl {
        Duration::ZERO => most,
        ttl => (ttl / 4).clamp(least, most),
    };
    loop {
        tokio::time::sleep(interval).await;
        ages.flush().await;
        if ttl.is_zero() {
            continue;
        }
        match expire(ages, store, ttl).await {
            Ok(0) => {}
            Ok(manifests) => tracing::info!(manifests, "expired cached manifests removed"),
            Err(error) => {
                let error = model::error::chain(&error);
                tracing::error!(error, "expired cached manifests not removed");
            }
        }
    }
}

async fn expire(ages: &Ages, store: &Store, ttl: Duration) -> Result<usize, StoreError> {
    let before = service::clock::now() - ttl.min(AGE_LIMIT);
    let mut count = 0;
    loop {
        let unused = ages.unused(before, BATCH).await?;
        if unused.is_empty() {
            return Ok(count);
        }
        for (name, digest) in &unused {
            match store.delete_manifest(name, digest).await {
                Ok(()) => count += 1,
                Err(StoreError::UnknownManifest(_)) => {}
                Err(error) => return Err(error),
            }
        }
        ages.forget(unused).await?;
    }
}
