//! A store in a folder, laid out as distribution's filesystem driver does.
//!
//! Links make content part of a repository; bytes lie once under their SHA-256. All blocking work happens on
//! the runtime's blocking pool.

mod durable;
mod inner;
mod layout;
mod listing;
mod manifests;
mod receive;
mod sessions;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use model::time::Timestamp;
use uuid::Uuid;

use super::{Blob, BlobStore, Result, StoreError};
use crate::{Digest, Manifest, Repository, Tag};
use inner::Inner;

/// A store in a folder. Clones share it.
#[derive(Debug, Clone)]
pub struct DiskStore(Arc<Inner>);

impl DiskStore {
    /// Opens the store below `root`, which is created when absent, and clears away unfinished writes.
    ///
    /// Errors: Io – the folder cannot be used; Damaged – another process uses it.
    pub async fn open(root: &Path) -> Result<Self> {
        let root = root.to_owned();
        join(tokio::task::spawn_blocking(move || Inner::open(&root)).await)
            .map(|inner| Self(Arc::new(inner)))
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.0);
        join(tokio::task::spawn_blocking(move || work(&inner)).await)
    }
}

fn join<T>(result: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    result.unwrap_or_else(|error| Err(StoreError::io("running a task of the store")(error.into())))
}

impl BlobStore for DiskStore {
    type Reader = tokio::fs::File;

    async fn blob_size(&self, repository: &Repository, digest: &Digest) -> Result<u64> {
        let (repository, digest) = (repository.clone(), digest.clone());
        self.run(move |inner| Ok(inner.find_blob(&repository, &digest)?.size))
            .await
    }

    async fn open_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
        offset: u64,
    ) -> Result<Blob<Self::Reader>> {
        let (repository, digest) = (repository.clone(), digest.clone());
        let (file, size) = self
            .run(move |inner| inner.open_blob(&repository, &digest, offset))
            .await?;
        Ok(Blob {
            size,
            reader: tokio::fs::File::from_std(file),
        })
    }

    async fn delete_blob(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        let (repository, digest) = (repository.clone(), digest.clone());
        self.run(move |inner| inner.delete_blob(&repository, &digest))
            .await
    }

    async fn mount_blob(
        &self,
        repository: &Repository,
        from: Option<&Repository>,
        digest: &Digest,
    ) -> Result<bool> {
        let (repository, from, digest) = (repository.clone(), from.cloned(), digest.clone());
        self.run(move |inner| inner.mount_blob(&repository, from.as_ref(), &digest))
            .await
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
        // A task of its own: whoever asked may go away, what was received is written all the same.
        let task = tokio::spawn(async move {
            receive::append(&inner, &repository, upload, session, offset, bytes).await
        });
        join(task.await)
    }

    async fn finish_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        digest: &Digest,
    ) -> Result<()> {
        let session = self.0.sessions.get(upload).lock_owned().await;
        let (repository, digest) = (repository.clone(), digest.clone());
        self.run(move |inner| {
            let result = inner.finish_upload(&repository, upload, &session, &digest);
            if !matches!(result, Err(StoreError::Io { .. })) {
                inner.sessions.forget(upload);
            }
            result
        })
        .await
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

    async fn resolve_tag(&self, repository: &Repository, tag: &Tag) -> Result<Digest> {
        let (repository, tag) = (repository.clone(), tag.clone());
        self.run(move |inner| inner.resolve_tag(&repository, &tag))
            .await
    }

    async fn manifest(&self, repository: &Repository, digest: &Digest) -> Result<Manifest> {
        let (repository, digest) = (repository.clone(), digest.clone());
        self.run(move |inner| inner.manifest(&repository, &digest))
            .await
    }

    async fn put_manifest(
        &self,
        repository: &Repository,
        manifest: &Manifest,
        digest: &Digest,
        tags: &[Tag],
    ) -> Result<()> {
        let (repository, manifest) = (repository.clone(), manifest.clone());
        let (digest, tags) = (digest.clone(), tags.to_vec());
        self.run(move |inner| inner.put_manifest(&repository, &manifest, &digest, &tags))
            .await
    }

    async fn delete_manifest(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        let (repository, digest) = (repository.clone(), digest.clone());
        self.run(move |inner| inner.delete_manifest(&repository, &digest))
            .await
    }

    async fn delete_tag(&self, repository: &Repository, tag: &Tag) -> Result<()> {
        let (repository, tag) = (repository.clone(), tag.clone());
        self.run(move |inner| inner.delete_tag(&repository, &tag))
            .await
    }

    async fn tags(&self, repository: &Repository) -> Result<Vec<Tag>> {
        let repository = repository.clone();
        self.run(move |inner| inner.tags(&repository)).await
    }

    async fn repositories(&self) -> Result<Vec<Repository>> {
        self.run(Inner::repositories).await
    }
}
