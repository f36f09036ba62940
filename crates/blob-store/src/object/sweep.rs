//! Sweep of content without a repository: all links are compared with the stored content, by ranges of digests.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use object_store::path::Path;

use super::collect::{BATCH, Collection};
use super::collection_marks::CollectionMark;
use super::layout::{linked, stored};
use crate::{CollectedGarbage, Result};
use bucket::ObjectEntry;
use oci::{Algorithm, Digest};

/// Digests in memory, 32 bytes each; a larger bucket is swept range by range.
const DIGESTS_LIMIT: usize = 1 << 20;
/// Retention of touches, longer than any collection that began before them.
const TOUCH_KEPT: Duration = Duration::from_hours(24);
/// Values of the first byte of a digest.
const SHARDS: u16 = 256;

/// The linked digests whose first byte is in a range.
#[derive(Debug)]
struct LinkedDigests {
    shards: Range<u16>,
    digests: HashSet<[u8; 32]>,
}

impl LinkedDigests {
    fn insert(&mut self, digest: &Digest) {
        let mut bytes = [0; 32];
        let is_canonical = digest.algorithm() == Algorithm::Sha256
            && hex::decode_to_slice(digest.hex(), &mut bytes).is_ok();
        if is_canonical && self.shards.contains(&u16::from(bytes[0])) {
            self.digests.insert(bytes);
        }
        while self.digests.len() > DIGESTS_LIMIT && self.shards.len() > 1 {
            let half = self.shards.start + (self.shards.end - self.shards.start) / 2;
            self.shards.end = half;
            self.digests.retain(|bytes| u16::from(bytes[0]) < half);
        }
    }

    /// Linked content whose digest begins with a byte.
    fn of(&self, first: u8) -> HashSet<Digest> {
        let digests = self.digests.iter().filter(|bytes| bytes[0] == first);
        digests
            .filter_map(|bytes| format!("sha256:{}", hex::encode(bytes)).parse().ok())
            .collect()
    }

    fn contains(&self, digest: &Digest) -> bool {
        let mut bytes = [0; 32];
        // An undecodable digest is never garbage.
        hex::decode_to_slice(digest.hex(), &mut bytes).is_err() || self.digests.contains(&bytes)
    }
}

/// Content without a link. Units: bytes.
type Unused = Vec<(Digest, u64)>;

impl Collection {
    pub(super) async fn sweep(&self, found: &mut CollectedGarbage) -> Result<()> {
        let mut first = 0;
        while first < SHARDS {
            let used = self.used(first..SHARDS).await?;
            for shard in used.shards.clone() {
                self.sweep_shard(u8::try_from(shard).unwrap_or(u8::MAX), &used, found)
                    .await?;
            }
            first = used.shards.end;
        }
        Ok(())
    }

    async fn used(&self, shards: Range<u16>) -> Result<LinkedDigests> {
        let inner = &self.inner;
        let mut used = LinkedDigests {
            shards,
            digests: HashSet::new(),
        };
        let mut walk = inner.walk("");
        while let Some(name) = walk.next().await? {
            let repository = &name.repository;
            for prefix in [
                inner.layout.layers(repository),
                inner.layout.revisions(repository),
            ] {
                let mut listed = Box::pin(inner.bucket.list(prefix));
                while let Some(entry) = listed.try_next().await? {
                    if let Some(digest) = linked(&entry.below) {
                        used.insert(&digest);
                    }
                }
            }
        }
        Ok(used)
    }

    async fn sweep_shard(
        &self,
        shard: u8,
        used: &LinkedDigests,
        found: &mut CollectedGarbage,
    ) -> Result<()> {
        let mut unused = self.unused(shard, used).await?;
        if !unused.is_empty() && !self.is_dry {
            let mark = self.mark().await?;
            let removed = self.remove_content(&mark, shard, used).await;
            mark.end().await?;
            unused = removed?;
        }
        found.blobs += unused.len() as u64;
        found.bytes += unused.iter().map(|(_, size)| size).sum::<u64>();
        if self.is_dry {
            return Ok(());
        }
        self.forget_touches(shard).await?;
        self.update_notes(shard, used).await
    }

    /// Updates the notes about linked content without bytes: adds new ones, and removes those of restored content.
    async fn update_notes(&self, shard: u8, used: &LinkedDigests) -> Result<()> {
        let mut missing = used.of(shard);
        let mut listed = Box::pin(self.inner.bucket.list(self.inner.layout.shard(shard)));
        while let Some(entry) = listed.try_next().await? {
            if let Some(digest) = stored(&entry.below) {
                missing.remove(&digest);
            }
        }
        for digest in self.inner.noted_missing(shard).await? {
            if !missing.remove(&digest) {
                self.inner
                    .bucket
                    .delete(vec![self.inner.layout.noted_missing(&digest)])
                    .await?;
            }
        }
        for digest in missing {
            // Its bytes are missing, or it was pushed and deleted since the links were read.
            self.inner.note(&digest, "the bytes are not there").await?;
        }
        Ok(())
    }

    /// Removes content that is still unused under the mark. Pushes write links before touches, and both before they
    /// list the marks.
    async fn remove_content(
        &self,
        mark: &CollectionMark,
        shard: u8,
        used: &LinkedDigests,
    ) -> Result<Unused> {
        let mut removed = self.unused(shard, used).await?;
        let data = |(digest, _): &(Digest, u64)| self.inner.layout.data(digest);
        let mut done = 0;
        for batch in removed.chunks(BATCH) {
            if !mark.remove(batch.iter().map(data).collect()).await? {
                break;
            }
            done += batch.len();
        }
        removed.truncate(done);
        Ok(removed)
    }

    async fn unused(&self, shard: u8, used: &LinkedDigests) -> Result<Unused> {
        let mut unused = Vec::new();
        let mut listed = Box::pin(self.inner.bucket.list(self.inner.layout.shard(shard)));
        while let Some(entry) = listed.try_next().await? {
            if let Some(digest) = stored(&entry.below)
                && self.is_old(&entry.meta)
                && !used.contains(&digest)
            {
                unused.push((digest, entry.meta.size));
            }
        }
        if unused.is_empty() {
            return Ok(unused);
        }
        let touches: HashSet<_> = self
            .touches(shard)
            .await?
            .into_iter()
            .filter(|touch| !self.is_old(&touch.meta))
            .map(|touch| touch.below)
            .collect();
        unused.retain(|(digest, _)| !touches.contains(digest.hex()));
        Ok(unused)
    }

    async fn touches(&self, shard: u8) -> Result<Vec<ObjectEntry>> {
        let prefix = self.inner.layout.touches(shard);
        Ok(self.inner.bucket.list(prefix).try_collect().await?)
    }

    async fn forget_touches(&self, shard: u8) -> Result<()> {
        let prefix = self.inner.layout.touches(shard);
        let keys: Vec<_> = self
            .touches(shard)
            .await?
            .into_iter()
            .filter(|touch| touch.meta.modified < self.clock - TOUCH_KEPT)
            .map(|touch| Path::from(format!("{prefix}{}", touch.below)))
            .collect();
        for batch in keys.chunks(BATCH) {
            self.inner.bucket.delete(batch.to_vec()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_beyond_the_limit_are_left_for_the_next_range() {
        let mut used = LinkedDigests {
            shards: 0..SHARDS,
            digests: HashSet::new(),
        };
        let digest = Digest::sha256(b"x");
        used.insert(&digest);
        assert!(used.contains(&digest) && !used.contains(&Digest::sha256(b"y")));
        for n in 0..u32::try_from(DIGESTS_LIMIT).unwrap() {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&(n << 12).to_be_bytes());
            used.digests.insert(bytes);
        }
        used.insert(&Digest::sha256(b"z"));
        assert_eq!(used.shards, 0..128);
        assert!(used.digests.len() <= DIGESTS_LIMIT);
        assert!(used.digests.iter().all(|bytes| bytes[0] < 128));
    }
}
