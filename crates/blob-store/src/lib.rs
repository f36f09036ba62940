//! Content stores of a registry: blobs, manifests, tags, referrers and upload sessions.
//!
//! [`ContentStore`] is the trait. [`disk`] implements it in a folder and [`object`] in a bucket, both in distribution's
//! layout; [`conformance`] tests any store. The invariant: content that a store lists or returns is whole and durable.

mod any;
mod caches;
pub mod conformance;
mod content_name;
pub mod disk;
mod error;
pub mod object;
mod sessions;
mod verified;

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use model::time::Timestamp;
use uuid::Uuid;

use oci::{Digest, Manifest, Referrer, Repository, Tag, Target};

pub use any::AnyStore;
pub use disk::{DiskOptions, DiskStore};
pub use error::StoreError;
pub use object::BucketStore;

/// The result of a store's operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Counts of one garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct CollectedGarbage {
    /// Manifests that only a deleted index named, or whose subject was deleted.
    #[serde(default)]
    pub manifests: u64,
    /// Blobs that a repository had and none of its manifests needed.
    pub links: u64,
    /// Contents that no repository had.
    pub blobs: u64,
    /// Units: bytes. Of these contents.
    pub bytes: u64,
    /// Repositories without content.
    pub repositories: u64,
}

/// Usage of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Its tags.
    pub tags: u64,
    /// Its manifests, tagged or not.
    pub manifests: u64,
    /// Units: bytes. Of its blobs and manifests, each counted once.
    pub bytes: u64,
}

/// Stored content, without regard to repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredContent {
    /// Its SHA-256.
    pub digest: Digest,
    /// Units: bytes. `None`: the bytes are missing or damaged, and repositories still link to them.
    pub size: Option<u64>,
}

/// A store of registry content. Methods are atomic and, once they return `Ok`, durable.
pub trait ContentStore: Send + Sync + 'static {
    /// Bytes of a blob, in chunks of any length except zero.
    type Bytes: Stream<Item = std::io::Result<Bytes>> + Send + Unpin + 'static;

    /// Checks that the store works: reads something and, if it `may_write`, writes and removes something.
    ///
    /// Errors: Io, Damaged.
    fn probe(&self, may_write: bool) -> impl Future<Output = Result<()>> + Send;

    /// The size of a blob of `repository`. Errors: UnknownBlob.
    fn blob_size(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> impl Future<Output = Result<u64>> + Send;

    /// `length` bytes of a blob of `repository` from `first` on, a range inside the blob. Errors: UnknownBlob.
    fn open_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
        first: u64,
        length: u64,
    ) -> impl Future<Output = Result<Self::Bytes>> + Send;

    /// The file that holds exactly a blob of `repository`, if the store has files and the blob is verified.
    ///
    /// Errors: UnknownBlob.
    fn blob_file(
        &self,
        _repository: &Repository,
        _digest: &Digest,
    ) -> impl Future<Output = Result<Option<File>>> + Send {
        async { Ok(None) }
    }

    /// Removes a blob from `repository`. Errors: UnknownBlob.
    fn delete_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Mounts a blob of `from`, or without it any blob of the store, into `repository`. Returns whether it exists.
    fn mount_blob(
        &self,
        repository: &Repository,
        from: Option<&Repository>,
        digest: &Digest,
    ) -> impl Future<Output = Result<bool>> + Send;

    /// Opens an upload session.
    fn start_upload(
        &self,
        repository: &Repository,
        now: Timestamp,
    ) -> impl Future<Output = Result<Uuid>> + Send;

    /// The size of an upload. Units: bytes. Errors: UnknownUpload.
    fn upload_size(
        &self,
        repository: &Repository,
        upload: Uuid,
    ) -> impl Future<Output = Result<u64>> + Send;

    /// Appends `bytes`, which begin at `offset` if one is given, and returns the new size. When `bytes` end in an
    /// error, the bytes before it stay and the upload can be resumed.
    ///
    /// Errors: UnknownUpload, OutOfOrder, Interrupted, Io.
    fn append_upload<S, E>(
        &self,
        repository: &Repository,
        upload: Uuid,
        offset: Option<u64>,
        bytes: S,
    ) -> impl Future<Output = Result<u64>> + Send
    where
        S: Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin + 'static,
        E: std::error::Error + Send + Sync + 'static;

    /// `length` bytes of an open upload from `first` on, all of them received. Errors: UnknownUpload.
    fn open_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        first: u64,
        length: u64,
    ) -> impl Future<Output = Result<Self::Bytes>> + Send;

    /// Commits an upload as the blob `digest` of `repository`. On another digest, the upload is dropped.
    ///
    /// Errors: UnknownUpload, WrongDigest.
    fn finish_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        digest: &Digest,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Drops an upload. Errors: UnknownUpload.
    fn cancel_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Drops idle uploads without a byte since `before`. Returns their number.
    fn purge_uploads(&self, before: Timestamp) -> impl Future<Output = Result<usize>> + Send;

    /// Collects garbage older than `before`, without blocking requests. With `is_dry`, only counts it; content that
    /// this run would turn into garbage is not counted then.
    fn collect(
        &self,
        before: Timestamp,
        is_dry: bool,
    ) -> impl Future<Output = Result<CollectedGarbage>> + Send;

    /// The digest that `tag` points at. Errors: UnknownManifest.
    fn resolve_tag(
        &self,
        repository: &Repository,
        tag: &Tag,
    ) -> impl Future<Output = Result<Digest>> + Send;

    /// A manifest of `repository`, as it was pushed. Errors: UnknownManifest.
    fn manifest(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> impl Future<Output = Result<Arc<Manifest>>> + Send;

    /// Stores `manifest` under `digest` and points `tags` at it, atomically.
    ///
    /// Errors: MissingContent – blobs or manifests that it needs and `repository` does not have, unless `is_sparse`.
    fn put_manifest(
        &self,
        repository: &Repository,
        manifest: &Manifest,
        digest: &Digest,
        tags: &[Tag],
        is_sparse: bool,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Removes a manifest from `repository`, with the tags that point at it. Errors: UnknownManifest.
    fn delete_manifest(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Removes a tag; its manifest stays. Errors: UnknownManifest.
    fn delete_tag(
        &self,
        repository: &Repository,
        tag: &Tag,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Up to `limit` tags of `repository` after `after`, which need not exist, sorted by bytes.
    ///
    /// Errors: UnknownRepository.
    fn tags(
        &self,
        repository: &Repository,
        after: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Tag>>> + Send;

    /// [`Self::tags`] with the digests that they point at. Errors: UnknownRepository.
    fn tagged(
        &self,
        repository: &Repository,
        after: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<(Tag, Digest)>>> + Send;

    /// The tags of `repository` that point at any of `manifests`, which are SHA-256 digests, each with the digest of its
    /// manifest; sorted by tag.
    fn tags_at(
        &self,
        repository: &Repository,
        manifests: BTreeSet<Digest>,
    ) -> impl Future<Output = Result<Vec<(Tag, Digest)>>> + Send;

    /// Usage of `repository`; zero for an unknown one.
    fn usage(&self, repository: &Repository) -> impl Future<Output = Result<Usage>> + Send;

    /// Up to `limit` repositories after `after` that have or had a manifest, sorted by bytes.
    fn repositories(
        &self,
        after: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Repository>>> + Send;

    /// The manifests of `repository` that refer to `subject`, sorted by digest. Neither need exist.
    fn referrers(
        &self,
        repository: &Repository,
        subject: &Digest,
    ) -> impl Future<Output = Result<Vec<Referrer>>> + Send;

    /// Up to `limit` contents after `after`, sorted by their SHA-256, without regard to repositories.
    fn contents(
        &self,
        after: Option<&Digest>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<StoredContent>>> + Send;

    /// The unverified bytes of content, without regard to repositories. Errors: UnknownBlob.
    fn open_content(&self, digest: &Digest) -> impl Future<Output = Result<Self::Bytes>> + Send;

    /// Quarantines content that is still damaged or missing: the bytes are set aside with a note, and every repository
    /// loses them until the next push of this content restores them to all. Returns whether it was damaged.
    fn quarantine(&self, digest: &Digest) -> impl Future<Output = Result<bool>> + Send;

    /// The repositories that have content, as a blob or as a manifest, sorted by bytes; also when it is damaged.
    fn holders(&self, digest: &Digest) -> impl Future<Output = Result<Vec<Repository>>> + Send;

    /// The manifests of `repository` that need a blob, and the indexes that need a manifest; sorted by digest.
    fn needed_by(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> impl Future<Output = Result<Vec<Digest>>> + Send;

    /// Up to `limit` blobs of `repository` after `after`, sorted by their SHA-256.
    fn blobs(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<StoredContent>>> + Send;

    /// Up to `limit` manifests of `repository` after `after`, tagged or not, sorted by their SHA-256.
    fn manifests(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<StoredContent>>> + Send;

    /// When a tag or a manifest was pushed last. Errors: UnknownManifest.
    fn pushed_at(
        &self,
        repository: &Repository,
        target: &Target,
    ) -> impl Future<Output = Result<Timestamp>> + Send;

    /// A record of the registry under `name`, a lower-case word. Records may get lost but are never torn.
    fn record(&self, name: &'static str) -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// Replaces the record `name` by `record`.
    fn put_record(
        &self,
        name: &'static str,
        record: Bytes,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Removes a tag, or an untagged manifest that no index and no existing subject needs, unless it was pushed after
    /// `pushed_at`. Returns whether it was removed.
    fn expire(
        &self,
        repository: &Repository,
        target: &Target,
        pushed_at: Timestamp,
    ) -> impl Future<Output = Result<bool>> + Send;
}
