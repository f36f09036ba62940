//! Quarantine: damaged content is copied aside with a note, and withheld until it is pushed again.

use futures_util::TryStreamExt as _;
use object_store::path::Path;
use serde::Serialize;

use super::inner::BucketInner;
use super::requests::unavailable;
use super::write::{self, ByteSource, WriteTarget};
use crate::{Result, StoreError};
use bucket::ObjectInfo;
use oci::{Algorithm, Digest, Repository};

/// Units: bytes. Largest copy in one request. Source: S3, CopyObject.
pub(super) const COPY_LIMIT: u64 = 5 << 30;

/// The note about missing or damaged content.
#[derive(Serialize)]
struct Note<'a> {
    digest: &'a Digest,
    why: &'a str,
    when: String,
    repositories: Vec<Repository>,
}

impl BucketInner {
    /// Content of a shard with a note.
    pub(super) async fn noted_missing(&self, shard: u8) -> Result<Vec<Digest>> {
        let listed = self.bucket.list(self.layout.missing_notes(shard));
        let digests = listed.try_filter_map(async |entry| {
            Ok(format!("sha256:{}", entry.below).parse::<Digest>().ok())
        });
        Ok(digests.try_collect().await?)
    }

    /// Quarantines damaged content. Returns whether a repository lost it.
    pub(super) async fn quarantine(&self, digest: &Digest) -> Result<bool> {
        if digest.algorithm() != Algorithm::Sha256 {
            return Ok(false);
        }
        let data = self.layout.data(digest);
        let Some(looked) = self.bucket.head(&data).await? else {
            return self.note(digest, "the bytes are not there").await;
        };
        let actual = self.hash_object(&data, looked.size).await?;
        if actual == *digest {
            return Ok(false);
        }
        // Copy before removal: a crash in between leaves the damaged object, which the next read finds again.
        self.set_aside(digest, &looked).await?;
        // A concurrent push of the same content waits for the mark, and checks its bytes again.
        let mark = self.mark().await?;
        let taken = async {
            let is_same = self.bucket.head(&data).await? == Some(looked);
            Ok(is_same && mark.remove(vec![data]).await?)
        };
        let taken: Result<bool> = taken.await;
        mark.end().await?;
        if !taken? {
            return Ok(false);
        }
        self.manifests.forget(digest);
        self.verified.forget(digest);
        let why = format!("the bytes have the digest {actual}");
        self.note(digest, &why).await?;
        tracing::error!(%digest, why, "content is damaged and in quarantine: push it again");
        Ok(true)
    }

    /// Writes a note about missing content. Returns whether a repository links to it and there was no note.
    pub(super) async fn note(&self, digest: &Digest, why: &str) -> Result<bool> {
        let key = self.layout.noted_missing(digest);
        let repositories = self.holders(digest).await?;
        if repositories.is_empty() || self.bucket.head(&key).await?.is_some() {
            return Ok(false);
        }
        let note = Note {
            digest,
            why,
            when: self.clock().await?.to_rfc3339(),
            repositories,
        };
        let text = serde_json::to_vec(&note).map_err(unavailable)?;
        self.bucket.put(&key, text).await?;
        Ok(true)
    }

    async fn set_aside(&self, digest: &Digest, looked: &ObjectInfo) -> Result<()> {
        let (from, to) = (self.layout.data(digest), self.layout.set_aside(digest));
        self.copy(&from, looked.size, &to).await?;
        Ok(())
    }

    /// Copies an object. Returns false if `from` does not exist.
    pub(super) async fn copy(&self, from: &Path, size: u64, to: &Path) -> Result<bool> {
        if size <= COPY_LIMIT {
            return Ok(self.bucket.copy(from, to).await?);
        }
        let Some((_, bytes)) = self.bucket.read(from, 0..size).await? else {
            return Ok(false);
        };
        let target = WriteTarget {
            key: to.clone(),
            parts: None,
            part_bytes: self.part_bytes.max(size.div_ceil(write::PARTS_LIMIT)),
            limit: u64::MAX,
        };
        let written = write::write(self, &target, &mut ByteSource::new(bytes), None).await?;
        match written.end {
            write::BatchEnd::Cut(error) => Err(unavailable(error)),
            _ => Ok(true),
        }
    }

    /// Errors: Unavailable – it was removed meanwhile.
    async fn hash_object(&self, data: &Path, size: u64) -> Result<Digest> {
        if size == 0 {
            return Ok(Digest::sha256(b""));
        }
        let bytes = self.bucket.read(data, 0..size).await?;
        let (_, bytes) = bytes.ok_or_else(|| unavailable("the object was removed meanwhile"))?;
        write::hash(bytes, Algorithm::Sha256).await
    }

    /// The unverified bytes under a digest.
    pub(super) async fn open_content(
        &self,
        digest: &Digest,
    ) -> Result<futures_util::stream::BoxStream<'static, std::io::Result<bytes::Bytes>>> {
        let unknown = || StoreError::UnknownBlob(digest.clone());
        if digest.algorithm() != Algorithm::Sha256 {
            return Err(unknown());
        }
        let data = self.layout.data(digest);
        let meta = self.bucket.head(&data).await?.ok_or_else(unknown)?;
        let found = self.bucket.read(&data, 0..meta.size).await?;
        found.map(|(_, bytes)| bytes).ok_or_else(unknown)
    }
}
