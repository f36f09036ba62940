//! How pushes and collections of garbage, on any number of replicas, stay out of each other's way without a lock.
//!
//! All that is relied on: a bucket shows at once what was written and removed, to everybody, in listings too; and
//! whoever has written a mark gives up long before others take it for dead, by clocks that only run equally fast.
//!
//! **Whoever adds** content to a repository, be it a blob or a manifest,
//! 1. stores the bytes, 2. writes the link, 3. touches the content, that is, writes a small object for it, 4. lists the
//!    marks of collections and waits until those that it saw are gone, 5. looks whether bytes and links are there,
//!    those of all that a manifest needs as well; if they are not, it begins again or fails. Then it answers.
//!
//! **Whoever collects** reads the bucket's clock, then which links there are, and for everything that it takes away,
//! a. writes a mark, b. looks again, c. removes what is still garbage, d. removes the mark.
//! A link is garbage when no manifest of its repository needs it and it was written before the clock was read; bytes
//! are garbage when no link was found and neither they nor their touch was written since the clock was read.
//!
//! No acknowledged push is lost. Either 4 comes before a: then b comes after 2 and 3. A manifest that was linked in 2 is
//! found by b, so its blobs' links stay. Bytes whose touch is as young as the clock stay; and if the touch is older, so
//! is the link, which has then been found. Or a comes before 4: then the mark is either seen, and d comes before 5; or
//! d was before 4 already. Both times nothing is removed after 5, and 5 tells what is there.
//!
//! What is removed is not taken back: a manifest whose blobs went between 2 and 5 stays without tags and without an
//! answer, as after a crash at that point, since somebody else may have pushed the same one.

use std::time::{Duration, Instant};

use futures_util::TryStreamExt as _;
use model::time::Timestamp;
use object_store::path::Path;
use uuid::Uuid;

use super::Inner;
use super::bucket::{Bucket, unavailable};
use crate::{Result, StoreError};
use oci::Digest;

/// How often a push begins again because garbage was collected meanwhile.
pub(super) const ATTEMPTS: usize = 5;
/// Nothing is removed later after a mark was written.
const MARK_VALID: Duration = Duration::from_secs(30);
/// A mark that stays this long is one of a collection that died: longer than it is valid and its last request takes,
/// twice over.
const MARK_DEAD: Duration = Duration::from_mins(2);
/// Between two looks whether a mark is gone.
const LOOK: Duration = Duration::from_millis(50);
/// The clock of a bucket may tell seconds only.
const TICK_LIMIT: Duration = Duration::from_secs(5);

/// The mark of a collection that takes something away.
#[derive(Debug)]
pub(super) struct Mark {
    bucket: Bucket,
    key: Path,
    until: Instant,
}

impl Inner {
    /// Tells every collection that content has just become part of a repository.
    pub(super) async fn touch(&self, canonical: &Digest) -> Result<()> {
        self.bucket.put(&self.layout.touch(canonical), "").await
    }

    async fn marks(&self) -> Result<Vec<String>> {
        let listed = self.bucket.list(self.layout.collections());
        listed.map_ok(|entry| entry.below).try_collect().await
    }

    /// Until what is being taken away at this moment is gone.
    pub(super) async fn let_collections_pass(&self) -> Result<()> {
        let began = Instant::now();
        let mut seen = self.marks().await?;
        while !seen.is_empty() {
            if began.elapsed() > MARK_DEAD {
                tracing::warn!("a collection of garbage died; its mark is removed");
                let keys = seen.iter().map(|id| self.layout.collection(id)).collect();
                return self.bucket.delete(keys).await;
            }
            tokio::time::sleep(LOOK).await;
            let marks = self.marks().await?;
            seen.retain(|id| marks.contains(id));
        }
        Ok(())
    }

    pub(super) async fn mark(&self) -> Result<Mark> {
        let until = Instant::now() + MARK_VALID;
        let key = self.layout.collection(&Uuid::new_v4().to_string());
        self.bucket.put(&key, "").await?;
        let bucket = self.bucket.clone();
        Ok(Mark { bucket, key, until })
    }

    /// A moment by the bucket's clock that is after everything which was written before, and before everything that
    /// is written from now on.
    pub(super) async fn clock(&self) -> Result<Timestamp> {
        let key = self.layout.probe();
        let began = Instant::now();
        let mut first = None;
        let now = loop {
            self.bucket.put(&key, "").await?;
            let meta = self.bucket.head(&key).await?;
            let now = meta.ok_or_else(|| unavailable("what was written is not there"))?;
            if now.modified > *first.get_or_insert(now.modified) {
                break now.modified;
            }
            if began.elapsed() > TICK_LIMIT {
                return Err(unavailable("the clock of the bucket stands still"));
            }
            tokio::time::sleep(LOOK).await;
        };
        self.bucket.delete(vec![key]).await?;
        Ok(now)
    }
}

impl Mark {
    /// Whether something may still be removed.
    pub(super) fn is_valid(&self) -> bool {
        Instant::now() < self.until
    }

    /// Removes objects, as long as the mark is valid; whether it was.
    pub(super) async fn remove(&self, keys: Vec<Path>) -> Result<bool> {
        if !self.is_valid() {
            return Ok(false);
        }
        self.bucket.delete(keys).await?;
        Ok(true)
    }

    pub(super) async fn end(self) -> Result<()> {
        self.bucket.delete(vec![self.key]).await
    }
}

pub(super) fn restless() -> StoreError {
    unavailable("garbage was collected again and again meanwhile")
}
