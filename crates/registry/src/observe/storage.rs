//! Totals of the content: counted at intervals, since the store keeps no sums.

use std::sync::Arc;
use std::time::Duration;

use blob_store::disk::Room;
use blob_store::{ContentStore as _, Result};
use metrics::{describe_gauge, gauge};
use model::time::Timestamp;
use serde::Serialize;
use tokio::sync::{Notify, watch};

use crate::storage::Store;

const REPOSITORIES: &str = "registry_storage_repositories";
const BLOBS: &str = "registry_storage_blobs";
const BYTES: &str = "registry_storage_bytes";
const CAPACITY: &str = "registry_storage_capacity_bytes";
const FREE: &str = "registry_storage_free_bytes";
const RESERVE: &str = "registry_storage_reserve_bytes";
const RELEASED: &str = "registry_storage_reserve_released";
/// How often the free room is asked for: a disk fills within minutes.
const ROOM_INTERVAL: Duration = Duration::from_secs(10);
/// How often is counted.
const INTERVAL: Duration = Duration::from_mins(5);
/// Age of a count that needs no other one.
const FRESH: Duration = Duration::from_secs(10);
/// How long a client waits for a count.
const PATIENCE: Duration = Duration::from_secs(2);
/// Entries that are looked at in one go.
const PAGE: usize = 1000;
/// Between two of them: others have work to do, too.
const PAUSE: Duration = Duration::from_millis(5);

/// The last count of the content.
#[derive(Debug, Default)]
pub(crate) struct StorageCount {
    last: watch::Sender<Option<Totals>>,
    wanted: Notify,
}

impl StorageCount {
    /// A fresh count if it takes no longer than a client waits, else the last one; None before the first has ended.
    pub(crate) async fn fresh(&self) -> Option<Totals> {
        let mut last = self.last.subscribe();
        let is_fresh = |totals: &Option<Totals>| totals.as_ref().is_some_and(Totals::is_fresh);
        if !is_fresh(&last.borrow()) {
            self.wanted.notify_one();
            let counted = last.wait_for(is_fresh);
            tokio::time::timeout(PATIENCE, counted).await.ok();
        }
        *last.borrow()
    }

    /// Forgets the last count, since much has changed, and counts again.
    pub(crate) fn renew(&self) {
        self.last.send_replace(None);
        self.wanted.notify_one();
    }
}

/// Counts now, after each interval and when asked, for ever.
pub(crate) async fn watch(store: Store, count: Arc<StorageCount>) {
    describe_gauge!(REPOSITORIES, "Repositories that have or had a manifest");
    describe_gauge!(BLOBS, "Blobs and manifests, each counted once");
    describe_gauge!(BYTES, "Bytes of blobs and manifests, each counted once");
    loop {
        match totals(&store).await {
            Ok(totals) => {
                totals.show();
                count.last.send_replace(Some(totals));
            }
            Err(error) => {
                let error = model::error::chain(&error);
                tracing::warn!(error, "the content was not counted");
            }
        }
        // Either leads to the next count.
        let wanted = count.wanted.notified();
        tokio::time::timeout(INTERVAL, wanted).await.ok();
    }
}

/// Shows how much room the disk has, now and after each interval, for ever. A bucket does not say.
#[expect(
    clippy::cast_precision_loss,
    reason = "2^53 bytes are more than any disk has"
)]
pub(crate) async fn watch_room(store: Store) {
    let Store::Disk(store) = store else {
        return;
    };
    describe_gauge!(CAPACITY, "Bytes of the file system of the storage folder");
    describe_gauge!(FREE, "Bytes that may still be written there");
    describe_gauge!(RESERVE, "Bytes there that only deletions may use");
    describe_gauge!(
        RELEASED,
        "1 while the disk is full: the reserve is released, nothing can be pushed"
    );
    loop {
        match store.room() {
            Ok(Room {
                capacity,
                free,
                reserve,
                is_released,
            }) => {
                gauge!(CAPACITY).set(capacity as f64);
                gauge!(FREE).set(free as f64);
                gauge!(RESERVE).set(reserve as f64);
                gauge!(RELEASED).set(f64::from(u8::from(is_released)));
            }
            Err(error) => {
                let error = model::error::chain(&error);
                tracing::warn!(error, "the free room is not known");
            }
        }
        tokio::time::sleep(ROOM_INTERVAL).await;
    }
}

/// Content of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    /// Those that have or had a manifest.
    repositories: usize,
    /// Blobs and manifests, each counted once.
    blobs: usize,
    /// Units: bytes. Of these.
    bytes: u64,
    counted_at: Timestamp,
}

impl Totals {
    fn is_fresh(&self) -> bool {
        self.counted_at > service::clock::now() - FRESH
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "2^53 is more than anybody stores"
    )]
    fn show(&self) {
        gauge!(REPOSITORIES).set(self.repositories as f64);
        gauge!(BLOBS).set(self.blobs as f64);
        gauge!(BYTES).set(self.bytes as f64);
    }
}

async fn totals(store: &Store) -> Result<Totals> {
    let mut totals = Totals {
        repositories: 0,
        blobs: 0,
        bytes: 0,
        counted_at: service::clock::now(),
    };
    let mut after = String::new();
    loop {
        let page = store.repositories(&after, PAGE).await?;
        totals.repositories += page.len();
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.to_string(),
            _ => break,
        }
        tokio::time::sleep(PAUSE).await;
    }
    let mut after = None;
    loop {
        let page = store.contents(after.as_ref(), PAGE).await?;
        totals.blobs += page.len();
        totals.bytes += page.iter().filter_map(|content| content.size).sum::<u64>();
        if page.len() < PAGE {
            totals.counted_at = service::clock::now();
            return Ok(totals);
        }
        after = page.into_iter().next_back().map(|content| content.digest);
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use blob_store::DiskStore;
    use bytes::Bytes;
    use futures_util::stream;
    use oci::{Digest, Repository};

    use super::*;

    #[tokio::test]
    async fn old_counts_are_renewed_when_they_are_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::Disk(DiskStore::open(dir.path()).await.unwrap());
        let count = Arc::new(StorageCount::default());
        let watching = tokio::spawn(watch(store, Arc::clone(&count)));
        let first = count.fresh().await.unwrap();
        assert_eq!(count.fresh().await, Some(first), "a fresh one is kept");
        let counted_at = first.counted_at - FRESH;
        let old = Totals {
            counted_at,
            ..first
        };
        count.last.send_replace(Some(old));
        let second = count.fresh().await.unwrap();
        assert!(second.counted_at > first.counted_at);
        count.renew();
        assert!(count.fresh().await.unwrap().counted_at > second.counted_at);
        watching.abort();
        count.last.send_replace(Some(old));
        assert_eq!(count.fresh().await, Some(old), "the count takes too long");
    }

    #[tokio::test]
    async fn everything_is_counted_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::Disk(DiskStore::open(dir.path()).await.unwrap());
        let empty = totals(&store).await.unwrap();
        assert_eq!((empty.repositories, empty.blobs, empty.bytes), (0, 0, 0));
        // Two repositories with the same blob, and more than one page of others.
        for n in 0..=PAGE {
            let content = n.to_string();
            for name in ["a", "b"].into_iter().take(if n == 0 { 2 } else { 1 }) {
                let name: Repository = name.parse().unwrap();
                let upload = store
                    .start_upload(&name, service::clock::now())
                    .await
                    .unwrap();
                let bytes = Bytes::from(content.clone());
                let bytes = stream::iter([Ok::<_, std::io::Error>(bytes)]);
                store
                    .append_upload(&name, upload, None, bytes)
                    .await
                    .unwrap();
                let digest = Digest::sha256(content.as_bytes());
                store.finish_upload(&name, upload, &digest).await.unwrap();
            }
        }
        let counted = totals(&store).await.unwrap();
        let bytes = (0..=PAGE).map(|n| n.to_string().len() as u64).sum();
        let expected = Totals {
            repositories: 0,
            blobs: PAGE + 1,
            bytes,
            counted_at: counted.counted_at,
        };
        assert_eq!(counted, expected, "no manifest, no repository");
    }
}
