//! The protocol by which pushes and garbage collections on any number of replicas run concurrently, without a lock.
//!
//! Assumptions: the bucket is strongly consistent, listings included; and the writer of a mark stops removing long
//! before other replicas consider the mark dead, by clocks that only run equally fast.
//!
//! **A push** of a blob or a manifest
//! 1. stores the bytes, 2. writes the link, 3. touches the content, which writes a small object for it, 4. lists the
//!    marks of collections and waits until these are removed, 5. checks that bytes and links exist, including those
//!    of everything that a manifest needs, and otherwise retries or fails. Then it answers.
//!
//! **A collection** reads the bucket's clock, then all links, and for each batch of garbage
//! a. writes a mark, b. checks the garbage again, c. removes the remaining garbage, d. removes the mark.
//! A link is garbage when no manifest of its repository needs it and it was written before the clock was read; bytes
//! are garbage when no link was found and neither they nor their touch was written since the clock was read.
//!
//! No acknowledged push is lost. Either 4 comes before a: then b comes after 2 and 3. A manifest that was linked in 2
//! is found by b, so the links of its blobs stay. Bytes with a touch after the clock stay; and if the touch is older,
//! so is the link, which was found. Or a comes before 4: then either the mark is seen, and d comes before 5; or d was
//! before 4 already. In both cases nothing is removed after 5, and 5 sees the final state.
//!
//! A failed push is not rolled back: a manifest whose blobs were removed between 2 and 5 stays without tags, as after
//! a crash at that point, since another client may have pushed the same one.

use std::time::Duration;

use futures_util::TryStreamExt as _;
use model::time::Timestamp;
use object_store::path::Path;
use tokio::time::Instant;
use uuid::Uuid;

use super::inner::BucketInner;
use super::requests::unavailable;
use crate::{Result, StoreError};
use bucket::Bucket;
use oci::Digest;

/// Attempts of a push that collections interfere with.
pub(super) const ATTEMPTS: usize = 5;
/// Validity of a mark: its collection removes nothing later.
const MARK_VALID: Duration = Duration::from_secs(30);
/// Poll interval of marks.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The clock of a bucket may have a resolution of a second.
const TICK_LIMIT: Duration = Duration::from_secs(5);

/// The mark of a collection that removes objects.
#[derive(Debug)]
pub(super) struct CollectionMark {
    bucket: Bucket,
    key: Path,
    until: Instant,
}

impl BucketInner {
    /// Records for all collections that content was linked just now.
    pub(super) async fn touch(&self, canonical: &Digest) -> Result<()> {
        Ok(self.bucket.put(&self.layout.touch(canonical), "").await?)
    }

    async fn marks(&self) -> Result<Vec<String>> {
        let listed = self.bucket.list(self.layout.collections());
        Ok(listed.map_ok(|entry| entry.below).try_collect().await?)
    }

    /// Waits until the marks that exist now are removed; removes them itself when they are dead.
    pub(super) async fn wait_for_collections(&self) -> Result<()> {
        let mut pending = self.marks().await?;
        let mut marks = pending.clone();
        loop {
            let dead = self.mark_sightings.record(&marks);
            if !dead.is_empty() {
                tracing::warn!("a garbage collection crashed; its mark is removed");
                let keys = dead.iter().map(|id| self.layout.collection(id)).collect();
                self.bucket.delete(keys).await?;
            }
            pending.retain(|id| marks.contains(id) && !dead.contains(id));
            if pending.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            marks = self.marks().await?;
        }
    }

    pub(super) async fn mark(&self) -> Result<CollectionMark> {
        let until = Instant::now() + MARK_VALID;
        let key = self.layout.collection(&Uuid::new_v4().to_string());
        self.bucket.put(&key, "").await?;
        let bucket = self.bucket.clone();
        Ok(CollectionMark { bucket, key, until })
    }

    /// A time of the bucket's clock that is later than all writes before this call, and earlier than all writes after
    /// it.
    pub(super) async fn clock(&self) -> Result<Timestamp> {
        let key = self.layout.probe();
        let began = Instant::now();
        let mut first = None;
        let now = loop {
            self.bucket.put(&key, "").await?;
            let meta = self.bucket.head(&key).await?;
            let now = meta.ok_or_else(|| unavailable("a written object does not exist"))?;
            if now.modified > *first.get_or_insert(now.modified) {
                break now.modified;
            }
            if began.elapsed() > TICK_LIMIT {
                return Err(unavailable("the clock of the bucket does not advance"));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        };
        self.bucket.delete(vec![key]).await?;
        Ok(now)
    }
}

impl CollectionMark {
    /// Whether objects may still be removed.
    pub(super) fn is_valid(&self) -> bool {
        Instant::now() < self.until
    }

    /// Removes objects if the mark is valid. Returns whether it was.
    pub(super) async fn remove(&self, keys: Vec<Path>) -> Result<bool> {
        if !self.is_valid() {
            return Ok(false);
        }
        self.bucket.delete(keys).await?;
        Ok(true)
    }

    pub(super) async fn end(self) -> Result<()> {
        Ok(self.bucket.delete(vec![self.key]).await?)
    }
}

pub(super) fn contended() -> StoreError {
    unavailable("garbage collections interfered repeatedly")
}
