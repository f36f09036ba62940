//! Image layouts in the place of registries: reads and writes go to files.

use std::collections::BTreeSet;
use std::io::{self, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::StreamExt as _;
use model::Error;
use tokio::fs::File;
use tokio::io::AsyncSeekExt as _;
use tokio_util::io::ReaderStream;

use super::source::{BUFFER_BYTES, BlobSource};
use super::{Client, Provided};
use crate::layout::{List, Part};
use oci::{Digest, Manifest, Reference, Registry, Repository, Tag, Target};

/// Batch of one write, so that threads change seldom. Units: bytes.
const WRITE_BYTES: usize = 1 << 20;

/// The image of a reference in a layout.
pub(super) struct Local {
    /// The index of the layout.
    list: Arc<List>,
    repository: Repository,
    target: Target,
}

impl Client {
    /// None for a reference of a registry.
    pub(super) fn local(&self, reference: &Reference) -> Option<Local> {
        Some(Local {
            list: self.0.layouts.of(reference.registry.folder()?),
            repository: reference.repository.clone(),
            target: reference.target(),
        })
    }

    /// Removes content that no image of a layout needs; a registry collects its own.
    ///
    /// Errors: NotFound and Invalid – an image there is missing or damaged; Internal – the disk refuses it.
    pub async fn sweep(&self, registry: &Registry) -> Result<(), Error> {
        let Some(folder) = registry.folder() else {
            return Ok(());
        };
        let list = self.0.layouts.of(folder);
        blocking(move || list.sweep()).await
    }
}

impl Local {
    /// Errors: NotFound; Invalid – it is no manifest, or damaged.
    pub(super) async fn manifest(self) -> Result<Manifest, Error> {
        blocking(move || {
            let folder = self.list.layout();
            let digest = self.digest()?.ok_or_else(|| {
                let (repository, target) = (&self.repository, &self.target);
                Error::not_found("image", format!("{folder}:{repository} {target}"))
            })?;
            folder.manifest(&digest)
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
        blocking(move || Ok(self.list.layout().blob_size(&digest))).await
    }

    /// The bytes of a blob after the first `received`.
    ///
    /// Errors: NotFound; Internal – it cannot be read.
    pub(super) async fn blob(
        self,
        digest: &Digest,
        received: u64,
    ) -> Result<ReaderStream<File>, Error> {
        let path = self.list.layout().path(digest);
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
            let index = self.list.index()?;
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
        digest: &Digest,
        source: &BlobSource,
        sent: &AtomicU64,
    ) -> Result<Provided, Error> {
        let begin = || {
            let (list, named) = (Arc::clone(&self.list), digest.clone());
            blocking(move || {
                list.hold()?;
                list.layout().part(&named)
            })
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

    pub(super) async fn push_manifest(self, manifest: &Manifest) -> Result<(), Error> {
        let manifest = manifest.clone();
        blocking(move || {
            self.list.hold()?;
            self.list.layout().put_manifest(&manifest)?;
            match &self.target {
                Target::Tag(tag) => self.list.name(&self.name(tag), &manifest),
                Target::Digest(_) => Ok(()),
            }
        })
        .await
    }

    /// A tag, or with a digest all tags of the repository that have it.
    pub(super) async fn delete(self) -> Result<(), Error> {
        let is_selected = move |name: &str, digest: &Digest| {
            let Some((repository, tag)) = name.rsplit_once(':') else {
                return false;
            };
            repository == self.repository.as_str()
                && match &self.target {
                    Target::Tag(meant) => tag == meant.as_str(),
                    Target::Digest(meant) => digest == meant,
                }
        };
        let list = Arc::clone(&self.list);
        blocking(move || list.delete(is_selected)).await
    }

    fn digest(&self) -> Result<Option<Digest>, Error> {
        match &self.target {
            Target::Tag(tag) => {
                let index = self.list.index()?;
                let named = index.named(&self.name(tag));
                Ok(named.map(|it| it.digest.clone()))
            }
            Target::Digest(digest) => {
                let size = self.list.layout().blob_size(digest);
                Ok(size.map(|_| digest.clone()))
            }
        }
    }

    /// The name of an image in the layout.
    fn name(&self, tag: &Tag) -> String {
        format!("{}:{tag}", self.repository)
    }
}

/// Writes the missing bytes of a blob. After a failure the next run resumes, unless the bytes were wrong.
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
