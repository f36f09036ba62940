//! A store whose backend is chosen at start.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::future::Either;
use model::time::Timestamp;
use uuid::Uuid;

use super::{
    BucketStore, CollectedGarbage, ContentStore, DiskStore, Result, StoredContent, Usage,
    disk::{AdoptionProgress, Pieces},
};
use oci::{Digest, Manifest, Referrer, Repository, Tag, Target};

/// A store of either backend. Clones share it.
#[derive(Debug, Clone)]
pub enum AnyStore {
    /// In a folder.
    Disk(DiskStore),
    /// In a bucket.
    Bucket(BucketStore),
}

/// Calls a method of the chosen backend.
macro_rules! either {
    ($self:ident, $store:ident => $call:expr) => {
        match $self {
            Self::Disk($store) => $call.await,
            Self::Bucket($store) => $call.await,
        }
    };
}

impl AnyStore {
    /// Progress of adoption; `None` for a bucket, which has no index.
    pub fn adoption(&self) -> Option<AdoptionProgress> {
        match self {
            Self::Disk(store) => Some(store.adoption()),
            Self::Bucket(_) => None,
        }
    }

    /// Waits for the end of adoption.
    pub async fn adopted(&self) {
        if let Self::Disk(store) = self {
            store.adopted().await;
        }
    }

    /// Compares a folder with its index once more, in the background; see [`Self::adoption`].
    pub fn reindex(&self) {
        if let Self::Disk(store) = self {
            store.reindex();
        }
    }
}

impl ContentStore for AnyStore {
    type Bytes = Either<Pieces, <BucketStore as ContentStore>::Bytes>;

    async fn open_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
        first: u64,
        length: u64,
    ) -> Result<Self::Bytes> {
        match self {
            Self::Disk(store) => {
                let bytes = store.open_blob(repository, digest, first, length);
                bytes.await.map(Either::Left)
            }
            Self::Bucket(store) => {
                let bytes = store.open_blob(repository, digest, first, length);
                bytes.await.map(Either::Right)
            }
        }
    }

    async fn blob_size(&self, repository: &Repository, digest: &Digest) -> Result<u64> {
        either!(self, store => store.blob_size(repository, digest))
    }

    async fn blob_file(&self, repository: &Repository, digest: &Digest) -> Result<Option<File>> {
        either!(self, store => store.blob_file(repository, digest))
    }

    async fn delete_blob(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        either!(self, store => store.delete_blob(repository, digest))
    }

    async fn mount_blob(
        &self,
        repository: &Repository,
        from: Option<&Repository>,
        digest: &Digest,
    ) -> Result<bool> {
        either!(self, store => store.mount_blob(repository, from, digest))
    }

    async fn start_upload(&self, repository: &Repository, now: Timestamp) -> Result<Uuid> {
        either!(self, store => store.start_upload(repository, now))
    }

    async fn upload_size(&self, repository: &Repository, upload: Uuid) -> Result<u64> {
        either!(self, store => store.upload_size(repository, upload))
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
        either!(self, store => store.append_upload(repository, upload, offset, bytes))
    }

    async fn finish_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        digest: &Digest,
    ) -> Result<()> {
        either!(self, store => store.finish_upload(repository, upload, digest))
    }

    async fn cancel_upload(&self, repository: &Repository, upload: Uuid) -> Result<()> {
        either!(self, store => store.cancel_upload(repository, upload))
    }

    async fn purge_uploads(&self, before: Timestamp) -> Result<usize> {
        either!(self, store => store.purge_uploads(before))
    }

    async fn collect(&self, before: Timestamp, is_dry: bool) -> Result<CollectedGarbage> {
        either!(self, store => store.collect(before, is_dry))
    }

    async fn resolve_tag(&self, repository: &Repository, tag: &Tag) -> Result<Digest> {
        either!(self, store => store.resolve_tag(repository, tag))
    }

    async fn manifest(&self, repository: &Repository, digest: &Digest) -> Result<Arc<Manifest>> {
        either!(self, store => store.manifest(repository, digest))
    }

    async fn put_manifest(
        &self,
        repository: &Repository,
        manifest: &Manifest,
        digest: &Digest,
        tags: &[Tag],
        is_sparse: bool,
    ) -> Result<()> {
        either!(self, store => store.put_manifest(repository, manifest, digest, tags, is_sparse))
    }

    async fn delete_manifest(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        either!(self, store => store.delete_manifest(repository, digest))
    }

    async fn delete_tag(&self, repository: &Repository, tag: &Tag) -> Result<()> {
        either!(self, store => store.delete_tag(repository, tag))
    }

    async fn tags(&self, repository: &Repository, after: &str, limit: usize) -> Result<Vec<Tag>> {
        either!(self, store => store.tags(repository, after, limit))
    }

    async fn tagged(
        &self,
        repository: &Repository,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(Tag, Digest)>> {
        either!(self, store => store.tagged(repository, after, limit))
    }

    async fn tags_at(
        &self,
        repository: &Repository,
        manifests: BTreeSet<Digest>,
    ) -> Result<Vec<(Tag, Digest)>> {
        either!(self, store => store.tags_at(repository, manifests))
    }

    async fn usage(&self, repository: &Repository) -> Result<Usage> {
        either!(self, store => store.usage(repository))
    }

    async fn repositories(&self, after: &str, limit: usize) -> Result<Vec<Repository>> {
        either!(self, store => store.repositories(after, limit))
    }

    async fn referrers(&self, repository: &Repository, subject: &Digest) -> Result<Vec<Referrer>> {
        either!(self, store => store.referrers(repository, subject))
    }

    async fn probe(&self, may_write: bool) -> Result<()> {
        either!(self, store => store.probe(may_write))
    }

    async fn contents(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredContent>> {
        either!(self, store => store.contents(after, limit))
    }

    async fn open_content(&self, digest: &Digest) -> Result<Self::Bytes> {
        match self {
            Self::Disk(store) => store.open_content(digest).await.map(Either::Left),
            Self::Bucket(store) => store.open_content(digest).await.map(Either::Right),
        }
    }

    async fn open_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        first: u64,
        length: u64,
    ) -> Result<Self::Bytes> {
        match self {
            Self::Disk(store) => {
                let bytes = store.open_upload(repository, upload, first, length);
                bytes.await.map(Either::Left)
            }
            Self::Bucket(store) => {
                let bytes = store.open_upload(repository, upload, first, length);
                bytes.await.map(Either::Right)
            }
        }
    }

    async fn quarantine(&self, digest: &Digest) -> Result<bool> {
        either!(self, store => store.quarantine(digest))
    }

    async fn holders(&self, digest: &Digest) -> Result<Vec<Repository>> {
        either!(self, store => store.holders(digest))
    }

    async fn needed_by(&self, repository: &Repository, digest: &Digest) -> Result<Vec<Digest>> {
        either!(self, store => store.needed_by(repository, digest))
    }

    async fn blobs(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> Result<Vec<StoredContent>> {
        either!(self, store => store.blobs(repository, after, limit))
    }

    async fn manifests(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> Result<Vec<StoredContent>> {
        either!(self, store => store.manifests(repository, after, limit))
    }

    async fn pushed_at(&self, repository: &Repository, target: &Target) -> Result<Timestamp> {
        either!(self, store => store.pushed_at(repository, target))
    }

    async fn record(&self, name: &'static str) -> Result<Option<Bytes>> {
        either!(self, store => store.record(name))
    }

    async fn put_record(&self, name: &'static str, record: Bytes) -> Result<()> {
        either!(self, store => store.put_record(name, record))
    }

    async fn expire(
        &self,
        repository: &Repository,
        target: &Target,
        pushed_at: Timestamp,
    ) -> Result<bool> {
        either!(self, store => store.expire(repository, target, pushed_at))
    }
}
