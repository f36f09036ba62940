//! Images into the target registry: each blob once, found again in other repositories, each manifest after its content.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Error;
use oci::{Digest, Manifest, Reference, Registry, Repository, Tag};
use oci_client::Client;
use oci_client::client::{BlobSource, Provided, RemoteBlob};
use tokio::sync::{OnceCell, Semaphore};

use crate::archive::FilePlace;
use crate::blobs::BlobProvider;
use crate::content::{ImageContent, ResolvedImage, SourceBlob, SourceRepository};
use crate::names;
use crate::progress::{Amount, Phase, RunProgress};

/// Concurrent images: their blobs are sent one after the other, so that an archive is read from its beginning to its end.
const IMAGES: usize = 8;
/// Usual transfers at a time, with each registry.
const TRANSFERS: usize = 8;
/// Blobs of one image that are provided at the same time.
const BLOBS: usize = 4;
/// Interval of progress reports for a blob in transfer.
const TICK: Duration = Duration::from_millis(250);

/// Destination of images.
#[derive(Debug, Clone)]
pub struct MirrorTarget {
    pub client: Client,
    pub registry: Registry,
    /// Prefix of all repositories; may be empty.
    pub namespace: String,
    /// Most components of a repository's name; 0 for no limit.
    pub max_components: usize,
}

/// Repositories of a target that have a blob, or had it when the metadata was written.
pub type HeldBlobs = BTreeMap<Digest, BTreeSet<Repository>>;

/// Result of a publication.
#[derive(Debug, Default)]
pub struct Published {
    /// Images that are in the target now, by place in the content.
    pub images: BTreeSet<usize>,
    /// Images that are not, and why, by place in the content.
    pub failed: Vec<(usize, Error)>,
    /// Blobs that were sent.
    pub sent: Amount,
}

impl MirrorTarget {
    /// Whether it is an image layout.
    pub(crate) fn is_layout(&self) -> bool {
        self.registry.folder().is_some()
    }

    /// The repository in the target.
    ///
    /// Errors: Invalid – the name does not fit.
    pub fn place(&self, repository: &Repository) -> Result<Reference, Error> {
        Ok(Reference {
            registry: self.registry.clone(),
            repository: names::repository(&self.namespace, repository, self.max_components)?,
            tag: None,
            digest: None,
        })
    }
}

/// Sends the images to the target, with at most `parallel` transfers at a time. `held` says in which repositories of the
/// target a blob is known to be. After a failure the other images are sent when `continue_on_error`, or else left.
pub async fn publish(
    content: &ImageContent,
    blobs: &dyn BlobProvider,
    target: &MirrorTarget,
    held: HeldBlobs,
    limits: TransferLimits,
    progress: &RunProgress,
) -> Published {
    let whole = Amount {
        items: content.images.len() as u64,
        bytes: content.blobs.values().map(|blob| blob.size).sum(),
    };
    progress.begin(Phase::Publishing, whole);
    let sender = Sender {
        content,
        blobs,
        target,
        transfers: Semaphore::new(limits.parallel.max(1)),
        places: Cells::default(),
        tags: Cells::default(),
        held,
        sent_blobs: AtomicU64::default(),
        sent_bytes: AtomicU64::default(),
        progress,
    };
    let mut published = Published::default();
    let mut images = stream::iter(content.images.iter().enumerate())
        .map(|(index, image)| {
            let sender = &sender;
            async move { (index, sender.image(image).await) }
        })
        .buffer_unordered(IMAGES);
    while let Some((index, outcome)) = images.next().await {
        progress.add_items(1);
        match outcome {
            Ok(()) => {
                published.images.insert(index);
            }
            Err(error) => published.failed.push((index, error)),
        }
        if !limits.continue_on_error && !published.failed.is_empty() {
            break;
        }
    }
    drop(images);
    published.sent = Amount {
        items: sender.sent_blobs.load(Ordering::Relaxed),
        bytes: sender.sent_bytes.load(Ordering::Relaxed),
    };
    published
}

/// Concurrency limit and failure policy.
#[derive(Debug, Clone, Copy)]
pub struct TransferLimits {
    /// Transfers at a time, with each registry.
    pub parallel: usize,
    /// Whether other images are transferred after one failed.
    pub continue_on_error: bool,
}

impl Default for TransferLimits {
    fn default() -> Self {
        Self {
            parallel: TRANSFERS,
            continue_on_error: false,
        }
    }
}

/// One value for each key, made once.
#[derive(Debug)]
struct Cells<K, V>(Mutex<HashMap<K, Arc<V>>>);

impl<K, V> Default for Cells<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone, V: Default> Cells<K, V> {
    fn get(&self, key: &K) -> Arc<V> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cells.entry(key.clone()).or_default())
    }
}

struct Sender<'a> {
    content: &'a ImageContent,
    blobs: &'a dyn BlobProvider,
    target: &'a MirrorTarget,
    transfers: Semaphore,
    /// Repositories of the target with a blob. The lock's holder adds a further one.
    places: Cells<Digest, tokio::sync::Mutex<BTreeSet<Repository>>>,
    /// The tags that a repository had at first.
    tags: Cells<Repository, OnceCell<BTreeSet<Tag>>>,
    held: HeldBlobs,
    sent_blobs: AtomicU64,
    sent_bytes: AtomicU64,
    progress: &'a RunProgress,
}

impl Sender<'_> {
    async fn image(&self, image: &ResolvedImage) -> Result<(), Error> {
        let place = self.target.place(&image.wanted.repository)?;
        let tagged = Reference {
            tag: Some(image.wanted.tag.clone()),
            ..place.clone()
        };
        if self.is_there(&tagged, &image.digest).await? {
            return Ok(());
        }
        for manifest in self.content.manifests_of(&image.digest) {
            self.content_of(manifest, &place).await?;
            let is_part = manifest.digest != image.digest;
            let name = if is_part {
                place.with_digest(manifest.digest.clone())
            } else {
                tagged.clone()
            };
            let _permit = self.permit().await;
            let pushed = self.target.client.push_manifest(&name, manifest).await;
            pushed.map_err(|error| self.explained(error, manifest))?;
        }
        Ok(())
    }

    /// Why a target may have refused a manifest.
    fn explained(&self, error: Error, manifest: &Manifest) -> Error {
        let mut parts = manifest.required_manifests();
        let is_whole = parts.all(|part| self.content.manifests.contains_key(part));
        match error {
            Error::Invalid { field, reason } if !is_whole => Error::Invalid {
                field,
                reason: format!(
                    "{reason}; some of its platforms are not mirrored, and the registry may require them all: mirror all, or let it \
                     take others (as by REGISTRY_VALIDATION_MANIFESTS_INDEXES_PLATFORMS=none)"
                ),
            },
            error => error,
        }
    }

    /// Whether the target has the image under its tag. A repository's tags are listed once: most often it has none.
    async fn is_there(&self, tagged: &Reference, digest: &Digest) -> Result<bool, Error> {
        let tags = self.tags.get(&tagged.repository);
        let client = &self.target.client;
        let tags = tags
            .get_or_try_init(|| async {
                let _permit = self.permit().await;
                match client.tags(tagged).await {
                    Ok(tags) => Ok(tags.into_iter().collect::<BTreeSet<_>>()),
                    Err(Error::NotFound { .. }) => Ok(BTreeSet::new()),
                    Err(error) => Err(error),
                }
            })
            .await?;
        if !tagged.tag.as_ref().is_some_and(|tag| tags.contains(tag)) {
            return Ok(false);
        }
        let has = async |name: &Reference, digest: &Digest| {
            let _permit = self.permit().await;
            let there = client.manifest_digest(name).await?;
            Ok::<_, Error>(there.as_ref() == Some(digest))
        };
        if !has(tagged, digest).await? {
            return Ok(false);
        }
        // The target's index may have fewer parts than this run.
        for part in self.content.manifests_of(digest) {
            let name = tagged.with_digest(part.digest.clone());
            if part.digest != *digest && !has(&name, &part.digest).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Provides the blobs of a manifest in the repository of `place`.
    async fn content_of(&self, manifest: &Manifest, place: &Reference) -> Result<(), Error> {
        let needed: BTreeSet<&Digest> = manifest.required_blobs().collect();
        stream::iter(needed.into_iter().map(Ok))
            .try_for_each_concurrent(BLOBS, |digest| self.blob(digest, place))
            .await
    }

    async fn blob(&self, digest: &Digest, place: &Reference) -> Result<(), Error> {
        let places = self.places.get(digest);
        let mut places = places.lock().await;
        if places.contains(&place.repository) {
            return Ok(());
        }
        let _permit = self.permit().await;
        let held = self.held.get(digest).into_iter().flatten();
        let mut known = places.iter().chain(held);
        if let Some(source) = self.blobs.source(digest) {
            self.send(digest, &source, place, known.next()).await?;
        } else if !self.find(digest, place, known).await? {
            let reason = format!(
                "{digest} of {}/{} is not in this archive, and the target does not have it: an archive before this one \
                 was not published here, or its images were removed since",
                place.registry, place.repository
            );
            return Err(Error::not_found("blob", reason));
        }
        places.insert(place.repository.clone());
        Ok(())
    }

    /// Sends a blob, or has the target find it.
    async fn send(
        &self,
        digest: &Digest,
        source: &BlobSource,
        place: &Reference,
        from: Option<&Repository>,
    ) -> Result<(), Error> {
        let sent = Arc::new(AtomicU64::new(0));
        let client = &self.target.client;
        let provide = client.provide_blob(place, digest, source, from, &sent);
        let mut reported = 0;
        let mut report = |now: u64| {
            self.progress.add_bytes(now.saturating_sub(reported));
            reported = reported.max(now);
        };
        tokio::pin!(provide);
        let provided = loop {
            tokio::select! {
                provided = &mut provide => break provided,
                () = tokio::time::sleep(TICK) => report(sent.load(Ordering::Relaxed)),
            }
        };
        let provided = match provided {
            Err(refused @ Error::Invalid { .. }) => {
                return Err(damage(digest, source).await.unwrap_or(refused));
            }
            provided => provided?,
        };
        let size = self.content.blobs.get(digest).map_or(0, |blob| blob.size);
        if provided == Provided::Sent {
            self.sent_blobs.fetch_add(1, Ordering::Relaxed);
            self.sent_bytes.fetch_add(size, Ordering::Relaxed);
        }
        // Progress counts each blob once: mounts cost nothing.
        if from.is_none() || provided == Provided::Sent {
            report(size);
        }
        Ok(())
    }

    /// Whether the target has a blob whose bytes are unavailable; it is in `place` then. Where the registry refuses the
    /// mount from another repository, it is copied.
    async fn find(
        &self,
        digest: &Digest,
        place: &Reference,
        known: impl Iterator<Item = &Repository>,
    ) -> Result<bool, Error> {
        let client = &self.target.client;
        if client.has_blob(place, digest).await? {
            return Ok(true);
        }
        for repository in known {
            if client.mount_blob(place, repository, digest).await? {
                return Ok(true);
            }
            let from = SourceRepository {
                registry: place.registry.clone(),
                repository: repository.clone(),
            };
            let reference = from.reference(digest);
            if let Some(size) = client.blob_size(&reference, digest).await? {
                let (sources, file) = (BTreeSet::new(), None);
                let blob = SourceBlob {
                    size,
                    sources,
                    file,
                };
                let source = BlobSource::Remote(Box::new(RemoteBlob {
                    client: client.clone(),
                    reference,
                    blob: blob.descriptor(digest),
                }));
                self.send(digest, &source, place, None).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn permit(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        // It is never closed.
        self.transfers.acquire().await.ok()
    }
}

/// The fault of an archive's blob that the target refused, so that the target is not blamed.
async fn damage(digest: &Digest, source: &BlobSource) -> Option<Error> {
    let place = FilePlace::of_source(source)?;
    let digest = digest.clone();
    let check = move || place.check(&format!("blob {digest}"), &digest).err();
    tokio::task::spawn_blocking(check).await.ok().flatten()
}
