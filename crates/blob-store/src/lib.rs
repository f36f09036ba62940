//! Where a registry keeps its content.
//!
//! [`ContentStore`] is what a registry needs of a store. [`disk`] keeps it in a folder and [`object`] in a bucket, both in
//! distribution's layout; [`conformance`] holds any store to the rules. The invariant: what a store lists or hands out is whole and durable.

mod any;
pub mod conformance;
mod content_name;
pub mod disk;
mod error;
pub mod object;
mod remembered;
mod sessions;
mod verified;

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

/// What was garbage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Collected {
    /// Manifests that only a deleted index, or what they refer to and is deleted, had named.
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

/// How much a repository has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Its tags.
    pub tags: u64,
    /// Its manifests, tagged or not.
    pub manifests: u64,
    /// Units: bytes. Of its blobs and manifests, each counted once.
    pub bytes: u64,
}

/// Content, whoever has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Its SHA-256.
    pub digest: Digest,
    /// Units: bytes. Nothing when the bytes are gone or damaged, and repositories still refer to them.
    pub size: Option<u64>,
}

/// What a registry needs of a store. Methods are atomic and, when they answer `Ok`, durable.
pub trait ContentStore: Send + Sync + 'static {
    /// Bytes of a blob, in pieces of any length but none.
    type Bytes: Stream<Item = std::io::Result<Bytes>> + Send + Unpin + 'static;

    /// Whether the store works: something is read and, if it `may_write`, written and taken away again.
    ///
    /// Errors: Io, Damaged.
    fn probe(&self, may_write: bool) -> impl Future<Output = Result<()>> + Send;

    /// The size of a blob of `repository`. Errors: UnknownBlob.
    fn blob_size(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> impl Future<Output = Result<u64>> + Send;

    /// `length` bytes of a blob of `repository` from `first` on, which have to lie inside. Errors: UnknownBlob.
    fn open_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
        first: u64,
        length: u64,
    ) -> impl Future<Output = Result<Self::Bytes>> + Send;

    /// The file with a blob of `repository` and nothing else, where there are files, and if it is known to be whole.
    ///
    /// Errors: UnknownBlob.
    fn blob_file(
        &self,
        _repository: &Repository,
        _digest: &Digest,
    ) -> impl Future<Output = Result<Option<File>>> + Send {
        async { Ok(None) }
    }

    /// Takes a blob out of `repository`. Errors: UnknownBlob.
    fn delete_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Makes a blob of `from`, or without it any blob of the store, one of `repository` too; whether it was there.
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

    /// How many bytes of an upload are there. Errors: UnknownUpload.
    fn upload_size(
        &self,
        repository: &Repository,
        upload: Uuid,
    ) -> impl Future<Output = Result<u64>> + Send;

    /// Appends `bytes`, which have to begin at `offset` if one is given; the new size. Also when `bytes` end in
    /// an error, what came before stays and the upload can be resumed.
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

    /// `length` bytes of an open upload from `first` on, which have to be there. Errors: UnknownUpload.
    fn open_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        first: u64,
        length: u64,
    ) -> impl Future<Output = Result<Self::Bytes>> + Send;

    /// Makes an upload the blob `digest` of `repository`. With another digest, the upload is dropped.
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

    /// Drops the uploads that got no byte since `before` and that nobody writes to; how many.
    fn purge_uploads(&self, before: Timestamp) -> impl Future<Output = Result<usize>> + Send;

    /// Takes away what nothing needs and nobody has touched since `before`, while everything goes on; with `is_dry`,
    /// only counts it, where what would become garbage by that does not count yet.
    fn collect(
        &self,
        before: Timestamp,
        is_dry: bool,
    ) -> impl Future<Output = Result<Collected>> + Send;

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

    /// Keeps `manifest` under `digest` and points `tags` at it, all at once.
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

    /// Takes a manifest out of `repository`, with the tags that point at it. Errors: UnknownManifest.
    fn delete_manifest(
        &self,
        repository: &Repository,
        digest: &Digest,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Takes a tag away; its manifest stays. Errors: UnknownManifest.
    fn delete_tag(
        &self,
        repository: &Repository,
        tag: &Tag,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Up to `limit` tags of `repository` after `after`, which need not be one, sorted by bytes.
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

    /// How much `repository` has: nothing of an unknown one.
    fn usage(&self, repository: &Repository) -> impl Future<Output = Result<Usage>> + Send;

    /// Up to `limit` repositories after `after`, which have or had a manifest, sorted by bytes.
    fn repositories(
        &self,
        after: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Repository>>> + Send;

    /// The manifests of `repository` that refer to `subject`, sorted by digest. Neither need be there.
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
    ) -> impl Future<Output = Result<Vec<Content>>> + Send;

    /// The bytes of content as they are, without regard to repositories. Errors: UnknownBlob.
    fn open_content(&self, digest: &Digest) -> impl Future<Output = Result<Self::Bytes>> + Send;

    /// Takes content away that somebody found to be damaged or gone, and that still is: the bytes are set aside with
    /// a note, and nobody has them until they are pushed anew, by whomever, which gives them back to everybody who
    /// had them. Whether it was so.
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
    ) -> impl Future<Output = Result<Vec<Content>>> + Send;

    /// Up to `limit` manifests of `repository` after `after`, tagged or not, sorted by their SHA-256.
    fn manifests(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Content>>> + Send;

    /// When a tag or a manifest was pushed last. Errors: UnknownManifest.
    fn pushed_at(
        &self,
        repository: &Repository,
        target: &Target,
    ) -> impl Future<Output = Result<Timestamp>> + Send;

    /// What the registry keeps for itself under `name`, a word in lower case: it may be lost, and never is half.
    fn record(&self, name: &'static str) -> impl Future<Output = Result<Option<Bytes>>> + Send;

    /// Keeps `record` under `name`, in place of what was there.
    fn put_record(
        &self,
        name: &'static str,
        record: Bytes,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Takes a tag away, or a manifest that has no tag, that no index needs and that refers to nothing which is there;
    /// not when it was pushed later than `pushed_at`. Whether it went.
    fn expire(
        &self,
        repository: &Repository,
        target: &Target,
        pushed_at: Timestamp,
    ) -> impl Future<Output = Result<bool>> + Send;
}
