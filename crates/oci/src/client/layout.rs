//! Folders that take the place of registries.

//! Folders that take the place of registries: what a registry answers is read from files, and what it stores is written.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt as _;
use model::Error;
use tokio::fs::File;
use tokio::io::AsyncSeekExt as _;
use tokio_util::io::ReaderStream;

use super::source::{BUFFER_BYTES, BlobSource};
use super::{Client, Provided};
use crate::layout::{Index, Layout, Part};
use crate::reference::LAYOUT_PREFIX;
use crate::{Digest, Manifest, Reference, Repository, Tag, Target};

/// Units: bytes. What is written at once, so that threads change seldom.
const WRITE_BYTES: usize = 1 << 20;

/// The image that a reference means in a folder.
pub(super) struct Local {
    /// With the name of a tag; without one, its manifest is meant by its digest.
    layout: Layout,
    repository: Repository,
    target: Target,
}

impl Local {
    /// Nothing for a reference of a registry.
    pub(super) fn of(reference: &Reference) -> Option<Self> {
        let (target, repository) = (reference.target(), reference.repository.clone());
        let name = match &target {
            Target::Tag(tag) => Some(format!("{repository}:{tag}")),
            Target::Digest(_) => None,
        };
        let folder = reference.folder()?.to_owned();
        Some(Self {
            layout: Layout { folder, name },
            repository,
            target,
        })
    }

    /// Errors: NotFound; Invalid – it is no manifest, or damaged.
    pub(super) async fn manifest(self) -> Result<Manifest, Error> {
        blocking(move || match self.digest()? {
            Some(digest) => self.layout.manifest(&digest),
            None => Err(Error::not_found("image", &self.layout)),
        })
        .await
    }

    /// The digest that is there now.
    pub(super) async fn manifest_digest(self) -> Result<Option<Digest>, Error> {
        blocking(move || self.digest()).await
    }

    /// Units: bytes.
    pub(super) async fn blob_size(self, digest: &Digest) -> Result<Option<u64>, Error> {
        let digest = digest.clone();
        blocking(move || Ok(self.layout.blob_size(&digest))).await
    }

    /// The bytes of a blob after the first `received`.
    ///
    /// Errors: NotFound; Internal – it cannot be read.
    pub(super) async fn blob(
        self,
        digest: &Digest,
        received: u64,
    ) -> Result<ReaderStream<File>, Error> {
        let path = self.layout.path(digest);
        let open = async {
            let mut file = File::open(&path).await?;
            file.seek(SeekFrom::Start(received)).await?;
            Ok(ReaderStream::with_capacity(file, BUFFER_BYTES))
        };
        open.await.map_err(|e: io::Error| match e.kind() {
            io::ErrorKind::NotFound => Error::not_found("blob", path.display()),
            _ => Error::internal(format!("reading {}", path.display()), e),
        })
    }

    /// The tags of the repository; none where there is no folder yet.
    pub(super) async fn tags(self) -> Result<Vec<Tag>, Error> {
        let read = move || {
            let index = Index::read_or_empty(&self.layout.folder)?;
            let names = index.names().filter_map(|name| name.rsplit_once(':'));
            let own = names.filter(|(repository, _)| *repository == self.repository.as_str());
            let tags: BTreeSet<Tag> = own.filter_map(|(_, tag)| tag.parse().ok()).collect();
            Ok(tags.into_iter().collect())
        };
        blocking(read).await
    }

    /// `sent` shows how many bytes were written so far.
    pub(super) async fn provide(
        self,
        client: &Client,
        digest: &Digest,
        source: &BlobSource,
        sent: &AtomicU64,
    ) -> Result<Provided, Error> {
        client.hold(&self.layout).await?;
        let begin = || {
            let (layout, named) = (self.layout.clone(), digest.clone());
            blocking(move || layout.part(&named))
        };
        let Some(part) = begin().await? else {
            return Ok(Provided::There);
        };
        let is_continued = part.size() > 0;
        match fill(part, source, sent).await {
            // An earlier run may have left bytes that never reached the disk. They are gone now.
            Err(Error::Invalid { .. }) if is_continued => match begin().await? {
                Some(part) => fill(part, source, sent).await?,
                None => return Ok(Provided::There),
            },
            filled => filled?,
        }
        Ok(Provided::Sent)
    }

    pub(super) async fn push_manifest(
        self,
        client: &Client,
        manifest: &Manifest,
    ) -> Result<(), Error> {
        client.hold(&self.layout).await?;
        let manifest = manifest.clone();
        blocking(move || self.layout.put_manifest(&manifest)).await
    }

    /// A tag, or with a digest all tags of the repository that have it.
    pub(super) async fn delete(self) -> Result<(), Error> {
        let is_meant = move |name: &str, digest: &Digest| {
            let Some((repository, tag)) = name.rsplit_once(':') else {
                return false;
            };
            repository == self.repository.as_str()
                && match &self.target {
                    Target::Tag(meant) => tag == meant.as_str(),
                    Target::Digest(meant) => digest == meant,
                }
        };
        let layout = self.layout.clone();
        blocking(move || layout.delete(is_meant)).await
    }

    fn digest(&self) -> Result<Option<Digest>, Error> {
        match (&self.target, &self.layout.name) {
            (Target::Tag(_), Some(name)) => {
                let index = Index::read_or_empty(&self.layout.folder)?;
                Ok(index.named(name).map(|it| it.digest.clone()))
            }
            (Target::Digest(digest), _) => {
                let size = self.layout.blob_size(digest);
                Ok(size.map(|_| digest.clone()))
            }
            (Target::Tag(_), None) => Ok(None),
        }
    }
}

impl Client {
    /// Removes what no image needs of a folder that takes the place of a registry; of a registry, that is its own affair.
    ///
    /// Errors: NotFound and Invalid – an image there is missing or damaged; Internal – the disk does not do it.
    pub async fn sweep(&self, registry: &str) -> Result<(), Error> {
        let Some(folder) = registry.strip_prefix(LAYOUT_PREFIX) else {
            return Ok(());
        };
        let (folder, name) = (PathBuf::from(folder), None);
        self.held().remove(&folder);
        blocking(move || Layout { folder, name }.sweep()).await
    }

    /// Keeps others from removing what is written to the layout, until it is swept.
    async fn hold(&self, layout: &Layout) -> Result<(), Error> {
        if !self.held().contains_key(&layout.folder) {
            let (folder, layout) = (layout.folder.clone(), layout.clone());
            let lock = blocking(move || layout.hold()).await?;
            self.held().insert(folder, lock);
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, HashMap<PathBuf, fs::File>> {
        let held = self.0.held.lock();
        held.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what is missing of a blob. After a failure the next run goes on, unless the bytes were wrong.
async fn fill(mut part: Part, source: &BlobSource, sent: &AtomicU64) -> Result<(), Error> {
    let mut chunks = source.chunks_after(part.hasher(), part.size()).await?;
    let mut batch: Vec<Bytes> = Vec::new();
    loop {
        let chunk = chunks.next().await;
        let is_end = chunk.is_none();
        let failure = match chunk {
            Some(Ok(chunk)) => {
                batch.push(chunk);
                None
            }
            Some(Err(error)) => Some(error),
            None => None,
        };
        let size: usize = batch.iter().map(Bytes::len).sum();
        if size >= WRITE_BYTES || is_end || failure.is_some() {
            let batch = std::mem::take(&mut batch);
            part = blocking(move || {
                batch.iter().try_for_each(|chunk| part.write(chunk))?;
                Ok(part)
            })
            .await?;
            sent.store(part.size(), Ordering::Relaxed);
        }
        match failure {
            Some(error @ Error::Invalid { .. }) => {
                blocking(move || part.restart()).await?;
                return Err(error);
            }
            Some(error) => return Err(error),
            None if is_end => return blocking(move || part.finish()).await,
            None => {}
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("working with an image layout", error)))
}
