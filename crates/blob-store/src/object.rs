//! A store in a bucket that speaks S3, laid out as distribution's S3 driver does.
//!
//! The bucket is the truth, without an index, so that any number of replicas may serve it. Bytes are stored once, under
//! their SHA-256; links make them part of repositories. A request changes several objects, in this order: bytes, the
//! entry among the referrers, the manifest's link, its tags; reads check that the target of a link exists. `collection_marks`
//! describes how garbage is collected during pushes.

mod collect;
mod collection_marks;
mod contents;
mod expire;
mod inner;
mod layout;
mod manifests;
mod multipart_record;
mod orphans;
mod quarantine;
mod requests;
mod sweep;
mod uploads;
mod verify;
mod walk;
mod write;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use model::time::Timestamp;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::caches::{CheckedBlobs, ManifestCache};
use super::content_name::ContentName;
use super::sessions::Sessions;
use super::verified::Verified;
use super::{CollectedGarbage, ContentStore, Referrer, Result, StoreError, StoredContent, Usage};
use bucket::Bucket;
use inner::{BucketInner, MarkSightings};
use layout::BucketLayout;
use oci::{Digest, Manifest, Repository, Tag, Target};

pub use bucket::{Objects, PART_BYTES_MIN, S3Options, s3};

/// Units: bytes. Longest record.
const RECORD_LIMIT_BYTES: u64 = 64 << 20;
/// Concurrent multipart uploads; each holds up to four parts in memory.
const LARGE_WRITES: usize = 16;

/// A store in a bucket. Clones share it.
#[derive(Debug, Clone)]
pub struct BucketStore(Arc<BucketInner>);

impl BucketStore {
    /// Opens the store below the folder `root` of a bucket, with permission to read, write and delete. Uploads are
    /// sent in parts of `part_bytes`.
    ///
    /// Errors: Unavailable – the bucket cannot be used; Damaged – `root` is no valid folder name.
    pub async fn open(objects: Arc<dyn Objects>, root: &str, part_bytes: u64) -> Result<Self> {
        let inner = Arc::new(BucketInner {
            bucket: Bucket::new(objects),
            layout: BucketLayout::new(root)?,
            sessions: Sessions::default(),
            manifests: ManifestCache::default(),
            checked_blobs: CheckedBlobs::default(),
            verified: Verified::default(),
            mark_sightings: MarkSightings::default(),
            part_bytes,
            large_writes: Semaphore::new(LARGE_WRITES),
        });
        inner.probe(true).await?;
        let adopting = Arc::clone(&inner);
        tokio::spawn(async move {
            if let Err(error) = collect::adopt(&adopting).await {
                let error = model::error::chain(&error);
                tracing::error!(
                    error,
                    "referrers of manifests by other programs are not listed"
                );
            }
        });
        Ok(Self(inner))
    }
}

impl ContentStore for BucketStore {
    type Bytes = BoxStream<'static, std::io::Result<Bytes>>;

    async fn probe(&self, may_write: bool) -> Result<()> {
        self.0.probe(may_write).await
    }

    async fn blob_size(&self, repository: &Repository, digest: &Digest) -> Result<u64> {
        let blob = self.0.blob(repository, digest).await?;
        let blob = blob.ok_or_else(|| StoreError::UnknownBlob(digest.clone()))?;
        // The client may skip the upload because of this answer: collection spares the blob for a while.
        self.0.checked_blobs.insert(repository, digest);
        Ok(blob.size)
    }

    async fn open_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
        first: u64,
        length: u64,
    ) -> Result<Self::Bytes> {
        let unknown = || StoreError::UnknownBlob(digest.clone());
        let layout = &self.0.layout;
        let linked = self
            .0
            .linked(digest, |digest| layout.layer_link(repository, digest));
        let canonical = linked.await?.ok_or_else(unknown)?;
        if length == 0 {
            return Ok(futures_util::stream::empty().boxed());
        }
        let data = layout.data(&canonical);
        let found = self.0.bucket.read(&data, first..first + length).await?;
        let (size, bytes) = found.ok_or_else(unknown)?;
        if length == size && !self.0.verified.contains(&canonical) {
            return Ok(verify::verified(&self.0, canonical, bytes));
        }
        Ok(bytes)
    }

    async fn delete_blob(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        self.0.delete_blob(repository, digest).await
    }

    async fn mount_blob(
        &self,
        repository: &Repository,
        from: Option<&Repository>,
        digest: &Digest,
    ) -> Result<bool> {
        self.0.mount_blob(repository, from, digest).await
    }

    async fn start_upload(&self, repository: &Repository, now: Timestamp) -> Result<Uuid> {
        self.0.start_upload(repository, now).await
    }

    async fn upload_size(&self, repository: &Repository, upload: Uuid) -> Result<u64> {
        self.0.upload_size(repository, upload).await
    }

    async fn append_upload<S, E>(
        &self,
        repository: &Repository,
        upload: Uuid,
        offset: Option<u64>,
        bytes: S,
    ) -> Result<u64>
    where
        S: Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin + 'static,
        E: std::error::Error + Send + Sync + 'static,
    {
        let session = self.0.sessions.get(upload).lock_owned().await;
        let (inner, repository) = (Arc::clone(&self.0), repository.clone());
        // A separate task: received bytes are written even if the client disconnects.
        let task = tokio::spawn(async move {
            inner
                .append_upload(&repository, upload, session, offset, bytes)
                .await
        });
        task.await?
    }

    async fn open_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        first: u64,
        length: u64,
    ) -> Result<Self::Bytes> {
        let part = first..first + length;
        let bytes = self.0.open_upload(repository, upload, part).await?;
        Ok(bytes.boxed())
    }

    async fn finish_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        digest: &Digest,
    ) -> Result<()> {
        let session = self.0.sessions.get(upload).lock_owned().await;
        let finished = self.0.finish_upload(repository, upload, &session, digest);
        let result = finished.await;
        if !matches!(
            result,
            Err(StoreError::Unavailable { .. } | StoreError::Io { .. })
        ) {
            self.0.sessions.forget(upload);
        }
        result
    }

    async fn cancel_upload(&self, repository: &Repository, upload: Uuid) -> Result<()> {
        self.0.sessions.forget(upload);
        self.0.cancel_upload(repository, upload).await
    }

    async fn purge_uploads(&self, before: Timestamp) -> Result<usize> {
        self.0.purge_uploads(before).await
    }

    async fn collect(&self, before: Timestamp, is_dry: bool) -> Result<CollectedGarbage> {
        collect::collect(&self.0, before, is_dry).await
    }

    async fn resolve_tag(&self, repository: &Repository, tag: &Tag) -> Result<Digest> {
        let key = self.0.layout.tag_current(repository, tag);
        let found = self.0.link(&key).await?;
        found.ok_or_else(|| StoreError::UnknownManifest(tag.to_string()))
    }

    async fn manifest(&self, repository: &Repository, digest: &Digest) -> Result<Arc<Manifest>> {
        let found = self.0.manifest(repository, digest).await?;
        found.ok_or_else(|| StoreError::UnknownManifest(digest.to_string()))
    }

    async fn put_manifest(
        &self,
        repository: &Repository,
        manifest: &Manifest,
        digest: &Digest,
        tags: &[Tag],
        is_sparse: bool,
    ) -> Result<()> {
        let name = ContentName::new(manifest.digest.clone(), digest);
        let put = self.0.put_manifest(repository, manifest, &name, is_sparse);
        put.await?;
        self.0.set_tags(repository, tags, digest).await
    }

    async fn delete_manifest(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        let named = self.0.children_and_referrers(repository, digest).await?;
        self.0.record_orphans(repository, &named).await?;
        self.0.delete_manifest(repository, digest).await
    }

    async fn delete_tag(&self, repository: &Repository, tag: &Tag) -> Result<()> {
        self.0.delete_tag(repository, tag).await
    }

    async fn tags(&self, repository: &Repository, after: &str, limit: usize) -> Result<Vec<Tag>> {
        self.0.tags(repository, after, limit).await
    }

    async fn tagged(
        &self,
        repository: &Repository,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(Tag, Digest)>> {
        self.0.tagged(repository, after, limit).await
    }

    async fn tags_at(
        &self,
        repository: &Repository,
        manifests: BTreeSet<Digest>,
    ) -> Result<Vec<(Tag, Digest)>> {
        self.0.tags_of_manifests(repository, &manifests).await
    }

    async fn usage(&self, repository: &Repository) -> Result<Usage> {
        self.0.usage(repository).await
    }

    async fn repositories(&self, after: &str, limit: usize) -> Result<Vec<Repository>> {
        let mut found = Vec::new();
        let mut walk = self.0.walk(after);
        while found.len() < limit
            && let Some(name) = walk.next().await?
        {
            if name.has("_manifests") {
                found.push(name.repository);
            }
        }
        Ok(found)
    }

    async fn referrers(&self, repository: &Repository, subject: &Digest) -> Result<Vec<Referrer>> {
        self.0.referrers(repository, subject).await
    }

    async fn contents(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredContent>> {
        self.0.contents(after, limit).await
    }

    async fn open_content(&self, digest: &Digest) -> Result<Self::Bytes> {
        self.0.open_content(digest).await
    }

    async fn quarantine(&self, digest: &Digest) -> Result<bool> {
        self.0.quarantine(digest).await
    }

    async fn holders(&self, digest: &Digest) -> Result<Vec<Repository>> {
        self.0.holders(digest).await
    }

    async fn needed_by(&self, repository: &Repository, digest: &Digest) -> Result<Vec<Digest>> {
        self.0.needed_by(repository, digest).await
    }

    async fn blobs(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> Result<Vec<StoredContent>> {
        let layers = self.0.layout.layers(repository);
        self.0.contents_of(layers, after, limit).await
    }

    async fn manifests(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> Result<Vec<StoredContent>> {
        let revisions = self.0.layout.revisions(repository);
        self.0.contents_of(revisions, after, limit).await
    }

    async fn pushed_at(&self, repository: &Repository, target: &Target) -> Result<Timestamp> {
        let found = self.0.pushed_at(repository, target).await?;
        found.ok_or_else(|| StoreError::UnknownManifest(target.to_string()))
    }

    async fn record(&self, name: &'static str) -> Result<Option<Bytes>> {
        let key = self.0.layout.record(name);
        Ok(self.0.bucket.get(&key, RECORD_LIMIT_BYTES).await?)
    }

    async fn put_record(&self, name: &'static str, record: Bytes) -> Result<()> {
        Ok(self
            .0
            .bucket
            .put(&self.0.layout.record(name), record)
            .await?)
    }

    async fn expire(
        &self,
        repository: &Repository,
        target: &Target,
        pushed_at: Timestamp,
    ) -> Result<bool> {
        self.0.expire(repository, target, pushed_at).await
    }
}
