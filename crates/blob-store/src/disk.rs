//! A store in a folder, laid out as distribution's filesystem driver does.
//!
//! Links make content part of a repository; bytes are stored once, under their SHA-256. The folder is the truth, its
//! index is derived, and a write-ahead log (journal) makes changes durable before the folder is synced. One thread
//! makes all changes; bytes are written and read on the runtime's blocking pool.

mod adopt;
mod adoption;
mod adoption_progress;
mod audit;
mod change;
mod collect;
mod committer;
mod compare;
mod contents;
mod dangling;
mod download;
mod examine;
mod files;
mod holders;
mod index;
mod index_file;
mod inner;
mod journal;
mod layout;
mod orphans;
mod quarantine;
mod queries;
mod reserve;
mod rows;
mod scan;
mod staged;
mod tables;
mod upload;
mod upload_session;
mod verified_read;
mod verify_queue;
mod writable;

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use model::time::Timestamp;
use uuid::Uuid;

use super::caches::{BlobCache, ManifestCache};
use super::{ContentStore, Result, StoreError};
pub use adoption_progress::AdoptionProgress;
pub use audit::{Audited, Fault, FaultKind};
use change::{BlobSource, ContentName, JournalEntry, StoreChange};
use committer::nanos;
pub use download::Pieces;
pub use inner::DiskOptions;
use inner::{DiskInner, Opening};
use oci::{Digest, Manifest, Repository, Tag, Target};
pub use reserve::Room;

use super::{CollectedGarbage, Referrer, StoredContent, Usage};

/// A store in a folder. Clones share it.
#[derive(Debug, Clone)]
pub struct DiskStore {
    inner: Arc<DiskInner>,
    manifests: ManifestCache,
    blobs: BlobCache,
}

impl DiskStore {
    /// [`Self::open_with`], without a reserve.
    pub async fn open(root: &Path) -> Result<Self> {
        Self::open_with(root, DiskOptions::default()).await
    }

    /// Opens the store below `root`, which is created when absent, and removes unfinished writes. Changes that other
    /// programs made to the folder are adopted in the background; see [`Self::adoption`]. A full or read-only medium is
    /// served as it is.
    ///
    /// Errors: Io – the folder cannot be used; Damaged – another process uses it.
    pub async fn open_with(root: &Path, options: DiskOptions) -> Result<Self> {
        Self::open_folder(root, Opening::Adopt, options).await
    }

    /// Opens the store for an audit: without adoption and garbage collection.
    ///
    /// Errors: as [`Self::open_with`].
    pub async fn open_as_is(root: &Path) -> Result<Self> {
        Self::open_folder(root, Opening::AsIs, DiskOptions::default()).await
    }

    /// Opens the store with an empty index and fills it from the folder; see [`Self::adoption`].
    ///
    /// Errors: as [`Self::open_with`].
    pub async fn rebuild(root: &Path) -> Result<Self> {
        Self::open_folder(root, Opening::Rebuild, DiskOptions::default()).await
    }

    async fn open_folder(root: &Path, opening: Opening, options: DiskOptions) -> Result<Self> {
        let root = root.to_owned();
        let opened = tokio::task::spawn_blocking(move || DiskInner::open(&root, opening, options));
        let inner = Arc::new(join(opened.await)?);
        let (manifests, blobs) = Default::default();
        Ok(Self {
            inner,
            manifests,
            blobs,
        })
    }

    /// Why the store is read-only; `None` when it is writable.
    pub fn read_only(&self) -> Option<&str> {
        self.inner.shared.read_only.as_deref()
    }

    /// Capacity and free space of the medium.
    ///
    /// Errors: Io – statvfs failed.
    pub fn room(&self) -> Result<Room> {
        let room = self.inner.shared.reserve.room();
        room.map_err(StoreError::io(
            "reading the free space of the storage folder",
        ))
    }

    /// Compares content, links and the needs of manifests in the whole folder; calls `found` for each fault.
    ///
    /// Errors: Io – the folder cannot be read.
    pub async fn audit(&self, found: impl FnMut(Fault) + Send + 'static) -> Result<Audited> {
        self.adopted().await;
        self.run(move |inner| audit::audit(inner, found)).await
    }

    /// Progress of adoption.
    pub fn adoption(&self) -> AdoptionProgress {
        self.inner.shared.adoption.progress()
    }

    /// Compares the folder with the index once more, in the background, unless that is in progress; see
    /// [`Self::adoption`]. Removes nothing from the folder.
    pub fn reindex(&self) {
        if self.inner.shared.adoption.begin_again() {
            let (store, shared) = (Arc::downgrade(&self.inner), Arc::clone(&self.inner.shared));
            // In the background and with a weak reference, so that closing the store does not wait for it.
            tokio::task::spawn_blocking(move || {
                adoption::run_again(&shared, |name| match store.upgrade() {
                    Some(inner) => inner.committer.refresh(name),
                    None => Err(scan::closing()),
                });
            });
        }
    }

    /// Waits until every repository of the folder is in the index.
    pub async fn adopted(&self) {
        self.inner.shared.adoption.finished().await;
    }

    /// Waits until a repository is adopted.
    async fn ensure_adopted(&self, repository: &Repository) -> Result<()> {
        if self.inner.shared.adoption.is_adopted(repository) {
            return Ok(());
        }
        let repository = repository.clone();
        self.run(move |inner| inner.committer.ensure_adopted(&repository).map(drop))
            .await
    }

    async fn commit(&self, change: StoreChange, content: Option<Bytes>) -> Result<()> {
        self.ensure_adopted(change.repository()).await?;
        self.inner
            .committer
            .commit(JournalEntry { change, content })
            .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<DiskInner>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.inner);
        join(tokio::task::spawn_blocking(move || work(&inner)).await)
    }
}

fn join<T>(result: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    result.unwrap_or_else(|error| Err(error.into()))
}

impl ContentStore for DiskStore {
    type Bytes = Pieces;

    async fn probe(&self, may_write: bool) -> Result<()> {
        self.run(move |inner| inner.probe(may_write)).await
    }

    async fn blob_size(&self, repository: &Repository, digest: &Digest) -> Result<u64> {
        self.ensure_adopted(repository).await?;
        let size = self.inner.blob(repository, digest)?.size;
        // The client may skip the upload because of this answer: collection spares the blob for a while.
        self.inner.checked_blobs.insert(repository, digest);
        Ok(size)
    }

    async fn open_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
        first: u64,
        length: u64,
    ) -> Result<Pieces> {
        self.ensure_adopted(repository).await?;
        let blob = self.inner.blob(repository, digest)?;
        let is_small = length == blob.size && length <= BlobCache::LIMIT;
        if is_small && let Some(bytes) = self.blobs.get(&blob.canonical) {
            return Ok(Pieces::in_memory(bytes));
        }
        let canonical = blob.canonical.clone();
        let pieces = self
            .run(move |inner| inner.open_blob(&blob, first, length))
            .await?;
        if is_small && let Some(bytes) = pieces.whole() {
            self.blobs.insert(&canonical, bytes);
        }
        Ok(pieces)
    }

    async fn blob_file(&self, repository: &Repository, digest: &Digest) -> Result<Option<File>> {
        self.ensure_adopted(repository).await?;
        let blob = self.inner.blob(repository, digest)?;
        self.run(move |inner| inner.verified_file(&blob)).await
    }

    async fn delete_blob(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        let change = StoreChange::RemoveBlob {
            repository: repository.clone(),
            blob: ContentName::new(digest.clone(), digest),
            only_unused: false,
        };
        self.commit(change, None).await
    }

    async fn mount_blob(
        &self,
        repository: &Repository,
        from: Option<&Repository>,
        digest: &Digest,
    ) -> Result<bool> {
        self.ensure_adopted(repository).await?;
        let found = if let Some(from) = from {
            self.ensure_adopted(from).await?;
            self.inner.shared.index.snapshot()?.blob(from, digest)?
        } else {
            let digest = digest.clone();
            self.run(move |inner| inner.stored(&digest)).await?
        };
        let Some(found) = found else {
            return Ok(false);
        };
        let change = StoreChange::AddBlob {
            repository: repository.clone(),
            blob: ContentName::new(found.canonical, digest),
            size: found.size,
            from: BlobSource::Stored,
        };
        self.commit(change, None).await?;
        Ok(true)
    }

    async fn start_upload(&self, repository: &Repository, now: Timestamp) -> Result<Uuid> {
        let repository = repository.clone();
        self.run(move |inner| inner.start_upload(&repository, now))
            .await
    }

    async fn upload_size(&self, repository: &Repository, upload: Uuid) -> Result<u64> {
        let repository = repository.clone();
        self.run(move |inner| inner.upload_size(&repository, upload))
            .await
    }

    async fn open_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        first: u64,
        length: u64,
    ) -> Result<Pieces> {
        let repository = repository.clone();
        self.run(move |inner| inner.open_upload(&repository, upload, first, length))
            .await
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
        let session = self.inner.sessions.get(upload).lock_owned().await;
        let (inner, repository) = (Arc::clone(&self.inner), repository.clone());
        // A separate task: received bytes are written even if the client disconnects.
        let task = tokio::spawn(async move {
            upload::append(&inner, &repository, upload, session, offset, bytes).await
        });
        join(task.await)
    }

    async fn finish_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        digest: &Digest,
    ) -> Result<()> {
        self.ensure_adopted(repository).await?;
        let session = self.inner.sessions.get(upload).lock_owned().await;
        let (repository, digest) = (repository.clone(), digest.clone());
        let entry = self.run(move |inner| inner.finished(&repository, upload, &session, &digest));
        let result = match entry.await {
            Ok(JournalEntry { change, content }) => self.commit(change, content).await,
            Err(error) => Err(error),
        };
        if !matches!(result, Err(StoreError::Io { .. })) {
            self.inner.sessions.forget(upload);
        }
        result
    }

    async fn cancel_upload(&self, repository: &Repository, upload: Uuid) -> Result<()> {
        let repository = repository.clone();
        self.run(move |inner| {
            inner.sessions.forget(upload);
            inner.upload_size(&repository, upload)?;
            inner.drop_upload(&repository, upload)
        })
        .await
    }

    async fn purge_uploads(&self, before: Timestamp) -> Result<usize> {
        self.run(move |inner| inner.purge_uploads(before)).await
    }

    async fn collect(&self, before: Timestamp, is_dry: bool) -> Result<CollectedGarbage> {
        self.adopted().await;
        self.run(move |inner| collect::collect(inner, before.into(), is_dry))
            .await
    }

    async fn resolve_tag(&self, repository: &Repository, tag: &Tag) -> Result<Digest> {
        self.ensure_adopted(repository).await?;
        let found = self.inner.shared.index.snapshot()?.tag(repository, tag)?;
        found.ok_or_else(|| StoreError::UnknownManifest(tag.to_string()))
    }

    async fn manifest(&self, repository: &Repository, digest: &Digest) -> Result<Arc<Manifest>> {
        self.ensure_adopted(repository).await?;
        let unknown = || StoreError::UnknownManifest(digest.to_string());
        let row = self.inner.shared.index.snapshot()?;
        let row = row.manifest(repository, digest)?.ok_or_else(unknown)?;
        if let Some(manifest) = self.manifests.get(&row.canonical) {
            return Ok(manifest);
        }
        let (repository, canonical) = (repository.clone(), row.canonical.clone());
        let read = self.run(move |inner| inner.manifest(&repository, &canonical));
        let manifest = Arc::new(read.await?.ok_or_else(unknown)?);
        self.manifests.insert(Arc::clone(&manifest));
        Ok(manifest)
    }

    async fn put_manifest(
        &self,
        repository: &Repository,
        manifest: &Manifest,
        digest: &Digest,
        tags: &[Tag],
        is_sparse: bool,
    ) -> Result<()> {
        let change = StoreChange::AddManifest {
            is_sparse,
            is_signed: manifest.digested() != &manifest.bytes,
            repository: repository.clone(),
            manifest: ContentName::new(manifest.digest.clone(), digest),
            tags: tags.to_vec(),
        };
        self.commit(change, Some(manifest.bytes.clone())).await
    }

    async fn delete_manifest(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        let change = StoreChange::RemoveManifest {
            repository: repository.clone(),
            manifest: ContentName::new(digest.clone(), digest),
            tags: Vec::new(),
            unless_since: None,
            frees: true,
        };
        self.commit(change, None).await
    }

    async fn delete_tag(&self, repository: &Repository, tag: &Tag) -> Result<()> {
        let (repository, tag) = (repository.clone(), tag.clone());
        let change = StoreChange::RemoveTag {
            repository,
            tag,
            unless_since: None,
        };
        self.commit(change, None).await
    }

    async fn tags(&self, repository: &Repository, after: &str, limit: usize) -> Result<Vec<Tag>> {
        let tagged = self.tagged(repository, after, limit).await?;
        Ok(tagged.into_iter().map(|(tag, _)| tag).collect())
    }

    async fn tagged(
        &self,
        repository: &Repository,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(Tag, Digest)>> {
        self.ensure_adopted(repository).await?;
        let snapshot = self.inner.shared.index.snapshot()?;
        snapshot
            .tags(repository, after, limit)?
            .ok_or_else(|| StoreError::UnknownRepository(repository.clone()))
    }

    async fn tags_at(
        &self,
        repository: &Repository,
        manifests: BTreeSet<Digest>,
    ) -> Result<Vec<(Tag, Digest)>> {
        self.ensure_adopted(repository).await?;
        let repository = repository.clone();
        self.run(move |inner| {
            let snapshot = inner.shared.index.snapshot()?;
            snapshot.tags_at(&repository, &manifests)
        })
        .await
    }

    async fn usage(&self, repository: &Repository) -> Result<Usage> {
        self.ensure_adopted(repository).await?;
        let repository = repository.clone();
        self.run(move |inner| inner.shared.index.snapshot()?.usage(&repository))
            .await
    }

    async fn repositories(&self, after: &str, limit: usize) -> Result<Vec<Repository>> {
        let Some(names) = self.inner.shared.adoption.names().await? else {
            return self
                .inner
                .shared
                .index
                .snapshot()?
                .repositories(after, limit);
        };
        let after = after.to_owned();
        self.run(move |inner| adoption::list_repositories(&inner.shared, &names, after, limit))
            .await
    }

    async fn referrers(&self, repository: &Repository, subject: &Digest) -> Result<Vec<Referrer>> {
        self.ensure_adopted(repository).await?;
        let snapshot = self.inner.shared.index.snapshot()?;
        snapshot.referrers(repository, subject)
    }

    async fn contents(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredContent>> {
        self.adopted().await;
        let after = after.cloned();
        self.run(move |inner| contents::list(inner, after.as_ref(), limit))
            .await
    }

    async fn open_content(&self, digest: &Digest) -> Result<Pieces> {
        let digest = digest.clone();
        self.run(move |inner| contents::open(inner, &digest)).await
    }

    async fn quarantine(&self, digest: &Digest) -> Result<bool> {
        self.adopted().await;
        let digest = digest.clone();
        self.run(move |inner| {
            let canonical = inner.canonical(&digest)?;
            canonical.map_or(Ok(false), |canonical| inner.quarantine(&canonical))
        })
        .await
    }

    async fn holders(&self, digest: &Digest) -> Result<Vec<Repository>> {
        self.adopted().await;
        let canonical = self.inner.canonical(digest)?;
        let snapshot = self.inner.shared.index.snapshot()?;
        canonical.map_or(Ok(Vec::new()), |canonical| snapshot.holders(&canonical))
    }

    async fn needed_by(&self, repository: &Repository, digest: &Digest) -> Result<Vec<Digest>> {
        self.ensure_adopted(repository).await?;
        let snapshot = self.inner.shared.index.snapshot()?;
        snapshot.needed_by(repository, digest)
    }

    async fn blobs(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> Result<Vec<StoredContent>> {
        self.ensure_adopted(repository).await?;
        let snapshot = self.inner.shared.index.snapshot()?;
        snapshot.blobs_after(repository, after, limit)
    }

    async fn manifests(
        &self,
        repository: &Repository,
        after: Option<&Digest>,
        limit: usize,
    ) -> Result<Vec<StoredContent>> {
        self.ensure_adopted(repository).await?;
        let snapshot = self.inner.shared.index.snapshot()?;
        snapshot.manifests(repository, after, limit)
    }

    async fn pushed_at(&self, repository: &Repository, target: &Target) -> Result<Timestamp> {
        let layout = self.inner.layout();
        let link = match target {
            Target::Tag(tag) => layout.tag_current(repository, tag),
            Target::Digest(digest) => layout.revision_link(repository, digest),
        };
        match std::fs::metadata(link).and_then(|found| found.modified()) {
            Ok(time) => Ok(time.into()),
            Err(error) if staged::is_absent(&error) => {
                Err(StoreError::UnknownManifest(target.to_string()))
            }
            Err(error) => Err(StoreError::io("reading the time of a push")(error)),
        }
    }

    async fn record(&self, name: &'static str) -> Result<Option<Bytes>> {
        self.run(move |inner| inner.record(name)).await
    }

    async fn put_record(&self, name: &'static str, record: Bytes) -> Result<()> {
        self.run(move |inner| inner.put_record(name, &record)).await
    }

    async fn expire(
        &self,
        repository: &Repository,
        target: &Target,
        pushed_at: Timestamp,
    ) -> Result<bool> {
        let (repository, unless_since) = (repository.clone(), Some(nanos(pushed_at.into())));
        let change = match target.clone() {
            Target::Tag(tag) => StoreChange::RemoveTag {
                repository,
                tag,
                unless_since,
            },
            Target::Digest(digest) => StoreChange::RemoveManifest {
                repository,
                manifest: ContentName::new(digest.clone(), &digest),
                tags: Vec::new(),
                unless_since,
                // A retention policy judges each manifest by itself.
                frees: false,
            },
        };
        match self.commit(change, None).await {
            Ok(()) => Ok(true),
            Err(StoreError::InUse(_) | StoreError::Renewed | StoreError::UnknownManifest(_)) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}
