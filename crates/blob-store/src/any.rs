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

/// Methods of both backends, called on the chosen one.
macro_rules! delegate {
    ($(fn $method:ident($($name:ident: $kind:ty),* $(,)?) -> $output:ty;)*) => {$(
        async fn $method(&self, $($name: $kind),*) -> Result<$output> {
            match self {
                Self::Disk(store) => store.$method($($name),*).await,
                Self::Bucket(store) => store.$method($($name),*).await,
            }
        }
    )*};
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

    delegate! {
        fn blob_size(repository: &Repository, digest: &Digest) -> u64;
        fn blob_file(repository: &Repository, digest: &Digest) -> Option<File>;
        fn delete_blob(repository: &Repository, digest: &Digest) -> ();
        fn mount_blob(repository: &Repository, from: Option<&Repository>, digest: &Digest) -> bool;
        fn start_upload(repository: &Repository, now: Timestamp) -> Uuid;
        fn upload_size(repository: &Repository, upload: Uuid) -> u64;
        fn finish_upload(repository: &Repository, upload: Uuid, digest: &Digest) -> ();
        fn cancel_upload(repository: &Repository, upload: Uuid) -> ();
        fn purge_uploads(before: Timestamp) -> usize;
        fn collect(before: Timestamp, is_dry: bool) -> CollectedGarbage;
        fn resolve_tag(repository: &Repository, tag: &Tag) -> Digest;
        fn manifest(repository: &Repository, digest: &Digest) -> Arc<Manifest>;
        fn put_manifest(
            repository: &Repository,
            manifest: &Manifest,
            digest: &Digest,
            tags: &[Tag],
            is_sparse: bool,
        ) -> ();
        fn delete_manifest(repository: &Repository, digest: &Digest) -> ();
        fn delete_tag(repository: &Repository, tag: &Tag) -> ();
        fn tags(repository: &Repository, after: &str, limit: usize) -> Vec<Tag>;
        fn tagged(repository: &Repository, after: &str, limit: usize) -> Vec<(Tag, Digest)>;
        fn tags_at(repository: &Repository, manifests: BTreeSet<Digest>) -> Vec<(Tag, Digest)>;
        fn usage(repository: &Repository) -> Usage;
        fn repositories(after: &str, limit: usize) -> Vec<Repository>;
        fn referrers(repository: &Repository, subject: &Digest) -> Vec<Referrer>;
        fn probe(may_write: bool) -> ();
        fn contents(after: Option<&Digest>, limit: usize) -> Vec<StoredContent>;
        fn quarantine(digest: &Digest) -> bool;
        fn holders(digest: &Digest) -> Vec<Repository>;
        fn needed_by(repository: &Repository, digest: &Digest) -> Vec<Digest>;
        fn blobs(repo: &Repository, after: Option<&Digest>, limit: usize) -> Vec<StoredContent>;
        fn manifests(repo: &Repository, after: Option<&Digest>, limit: usize) -> Vec<StoredContent>;
        fn pushed_at(repository: &Repository, target: &Target) -> Timestamp;
        fn record(name: &'static str) -> Option<Bytes>;
        fn put_record(name: &'static str, record: Bytes) -> ();
        fn expire(repository: &Repository, target: &Target, pushed_at: Timestamp) -> bool;
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
        match self {
            Self::Disk(store) => store.append_upload(repository, upload, offset, bytes).await,
            Self::Bucket(store) => store.append_upload(repository, upload, offset, bytes).await,
        }
    }

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
}
