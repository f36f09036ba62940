//! An opened bucket: its state, and the links and bytes of blobs.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bucket::{Bucket, BucketError};
use object_store::path::Path;
use oci::{Algorithm, Digest, Hasher, Repository};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::layout::BucketLayout;
use super::walk::RepositoryWalk;
use crate::caches::{CheckedBlobs, ManifestCache};
use crate::content_name::ContentName;
use crate::sessions::Sessions;
use crate::verified::Verified;
use crate::{Result, StoreError};

/// Units: bytes. Longest link: `sha512:` and 128 digits.
const LINK_LIMIT_BYTES: u64 = 256;
/// Time since its first sighting after which a mark belongs to a dead collection: twice its validity plus the timeout of
/// its last request.
const MARK_DEAD_AFTER: Duration = Duration::from_secs(90);

/// A segment of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) name: String,
    /// Units: bytes.
    pub(super) size: u64,
}

/// The hash of an upload's segments, on this replica.
#[derive(Debug, Default)]
pub(super) struct BucketSession {
    pub(super) segments: Vec<Segment>,
    pub(super) hasher: Option<Hasher>,
}

/// Marks of other replicas' collections, each with its first sighting by this replica. Pushes share them: a dead mark is
/// found, too, when each client gives up earlier.
#[derive(Debug, Default)]
pub(super) struct MarkSightings(Mutex<HashMap<String, Instant>>);

impl MarkSightings {
    /// Records the marks that exist now, and returns the dead ones.
    pub(super) fn record(&self, marks: &[String]) -> Vec<String> {
        let mut sightings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sightings.retain(|id, _| marks.contains(id));
        for id in marks {
            sightings.entry(id.clone()).or_insert_with(Instant::now);
        }
        let is_dead = |first: &Instant| first.elapsed() > MARK_DEAD_AFTER;
        let dead = sightings.iter().filter(|(_, first)| is_dead(first));
        dead.map(|(id, _)| id.clone()).collect()
    }
}

#[derive(Debug)]
pub(super) struct BucketInner {
    pub(super) bucket: Bucket,
    pub(super) layout: BucketLayout,
    pub(super) sessions: Sessions<BucketSession>,
    pub(super) manifests: ManifestCache,
    pub(super) checked_blobs: CheckedBlobs,
    pub(super) verified: Verified,
    pub(super) mark_sightings: MarkSightings,
    /// Units: bytes.
    pub(super) part_bytes: u64,
    pub(super) large_writes: Semaphore,
}

/// A blob of a repository.
#[derive(Debug)]
pub(super) struct LinkedBlob {
    pub(super) canonical: Digest,
    /// Units: bytes.
    pub(super) size: u64,
}

impl BucketInner {
    /// Errors: Unavailable – the bucket cannot be read or, if required, written.
    pub(super) async fn probe(&self, may_write: bool) -> Result<()> {
        self.bucket.is_any(&self.layout.repositories()).await?;
        if !may_write {
            return Ok(());
        }
        let key = self.layout.probe();
        self.bucket.put(&key, "").await?;
        self.bucket.get(&key, LINK_LIMIT_BYTES).await?;
        Ok(self.bucket.delete(vec![key]).await?)
    }

    pub(super) fn walk(&self, after: &str) -> RepositoryWalk<'_> {
        RepositoryWalk::new(&self.bucket, &self.layout, after)
    }

    /// The digest in a link; `None` when the link is missing or malformed.
    pub(super) async fn link(&self, key: &Path) -> Result<Option<Digest>> {
        let text = match self.bucket.get(key, LINK_LIMIT_BYTES).await {
            Ok(None) => return Ok(None),
            Ok(Some(text)) => String::from_utf8_lossy(&text).into_owned(),
            Err(BucketError::TooLarge { .. }) => "it is too long".to_owned(),
            Err(error) => return Err(error.into()),
        };
        let digest = text.trim().parse();
        if let Err(error) = &digest {
            tracing::warn!(link = %key, %error, "a damaged link is ignored");
        }
        Ok(digest.ok())
    }

    /// The target of a link. A SHA-512 link counts only together with the SHA-256 link: a deletion by one digest
    /// deletes both.
    pub(super) async fn linked(
        &self,
        digest: &Digest,
        key: impl Fn(&Digest) -> Path,
    ) -> Result<Option<Digest>> {
        let Some(canonical) = self.link(&key(digest)).await? else {
            return Ok(None);
        };
        if canonical == *digest {
            return Ok(Some(canonical));
        }
        self.link(&key(&canonical)).await
    }

    pub(super) async fn blob(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> Result<Option<LinkedBlob>> {
        let linked = self.linked(digest, |digest| self.layout.layer_link(repository, digest));
        let Some(canonical) = linked.await? else {
            return Ok(None);
        };
        let size = self.bucket.head(&self.layout.data(&canonical)).await?;
        if size.is_none() {
            tracing::warn!(repo.name = %repository, %digest, "a link points at missing content");
        }
        Ok(size.map(|meta| LinkedBlob {
            canonical,
            size: meta.size,
        }))
    }

    /// Links stored bytes as a blob. Returns whether they still exist once no collection can remove them.
    pub(super) async fn add_blob(
        &self,
        repository: &Repository,
        name: &ContentName,
    ) -> Result<bool> {
        for digest in name.digests() {
            let key = self.layout.layer_link(repository, digest);
            self.bucket.put(&key, name.canonical.to_string()).await?;
        }
        if name.canonical != *name.requested() {
            let alias = self.layout.alias(name.requested());
            self.bucket.put(&alias, name.canonical.to_string()).await?;
        }
        self.touch(&name.canonical).await?;
        self.wait_for_collections().await?;
        Ok(self.blob(repository, name.requested()).await?.is_some())
    }

    pub(super) async fn delete_blob(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        let key = |digest: &Digest| self.layout.layer_link(repository, digest);
        let canonical = self.linked(digest, key).await?;
        let canonical = canonical.ok_or_else(|| StoreError::UnknownBlob(digest.clone()))?;
        let name = ContentName::new(canonical, digest);
        Ok(self
            .bucket
            .delete(name.digests().map(key).collect())
            .await?)
    }

    /// The SHA-256 of stored content, without regard to repositories.
    pub(super) async fn stored(&self, digest: &Digest) -> Result<Option<Digest>> {
        let canonical = match digest.algorithm() {
            Algorithm::Sha256 => Some(digest.clone()),
            Algorithm::Sha512 => self.link(&self.layout.alias(digest)).await?,
        };
        let Some(canonical) = canonical else {
            return Ok(None);
        };
        let stored = self.bucket.head(&self.layout.data(&canonical)).await?;
        Ok(stored.map(|_| canonical))
    }

    pub(super) async fn mount_blob(
        &self,
        repository: &Repository,
        from: Option<&Repository>,
        digest: &Digest,
    ) -> Result<bool> {
        let canonical = match from {
            Some(from) => self.blob(from, digest).await?.map(|blob| blob.canonical),
            None => self.stored(digest).await?,
        };
        match canonical {
            Some(canonical) => {
                let name = ContentName::new(canonical, digest);
                self.add_blob(repository, &name).await
            }
            None => Ok(false),
        }
    }
}
