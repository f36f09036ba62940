//! Composed images, kept while they are read: a BMC reads an image in thousands of ranges.
//!
//! A request from the first byte begins to read: the installer API says whether its infra-env has changed since the image was
//! composed, and checks the credentials. Later ranges continue with the same image, without a call.

use std::io;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant, SystemTime};

use axum::http::header;
use axum::http::request::Parts;
use axum::response::Response;
use concurrency::{BoundedCache, KeyedMutex};
use model::Error;
use sha2::{Digest as _, Sha256};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use super::error::ErrorResponse;
use super::response::{Representation, identity, respond};
use crate::ImageApp;
use crate::catalog::CatalogImage;
use crate::content::ImageContent;
use crate::image::{
    BaseImage, CustomiseError, InitrdArchives, full_iso, minimal_iso, needs_nmstatectl, pxe_initrd,
};
use crate::installer_api::RequestCredentials;
use crate::settings::{FULL_ISO, MINIMAL_ISO, S390X};
use crate::stream_limit::{MAX_QUEUE_WAIT, StreamLimit, StreamPermit};

/// Capacity. Units: bytes, of the pieces in memory: an ignition has some tens of kilobytes, the program for static networks
/// some megabytes.
pub(crate) const CAPACITY: usize = 32 << 20;
/// Memory of all composed images, those that are sent and those in the cache. Units: bytes.
pub(crate) const MAX_MEMORY: usize = 64 << 20;
/// Images composed at once, each with some answers of the API in memory.
const COMPOSING: usize = 8;
/// How long ranges continue with an image that was current.
const CONTINUED: Duration = Duration::from_mins(10);
/// Longest use of an image: more than the infra-env is in it, such as settings of the API.
const VALID: Duration = Duration::from_mins(1);
/// Attempts to use an image that another request composes.
const ATTEMPTS: usize = 3;

/// Kinds of composed images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageKind {
    Full,
    Minimal,
    /// The initrd of a network boot.
    Initrd,
}

/// An image as it is requested.
pub(super) struct ImageRequest {
    pub(super) id: Uuid,
    pub(super) version: String,
    pub(super) architecture: String,
    pub(super) kind: ImageKind,
    pub(super) credentials: RequestCredentials,
}

/// An image as it is sent.
#[derive(Debug, Clone)]
pub(super) struct ComposedImage {
    pub(super) content: ImageContent,
    /// Entity tag.
    identity: String,
    pub(super) modified: SystemTime,
    /// SHA-256 in hexadecimal, once asked for.
    checksum: Arc<OnceCell<String>>,
    /// Its own share of [`MAX_MEMORY`].
    memory: Arc<OwnedSemaphorePermit>,
    base: Arc<BaseImage>,
    /// Version of the infra-env; none if the API has none.
    updated_at: Option<String>,
    composed: Instant,
    /// When the API was last asked.
    checked: Instant,
}

impl ComposedImage {
    /// The response to a GET or HEAD. Its memory counts until the last byte.
    pub(super) fn respond(
        self: Arc<Self>,
        head: &Parts,
        file_name: String,
        content_type: &'static str,
        permit: StreamPermit,
    ) -> Response {
        let what = Representation {
            content: self.content.clone(),
            file_name,
            content_type,
            modified: self.modified,
            identity: self.identity.clone(),
        };
        respond(head, what, (permit, self))
    }
}

/// Recent images. The key is a digest of request and credentials.
#[derive(Debug)]
pub(crate) struct ComposedImages {
    cache: BoundedCache<[u8; 32], Arc<ComposedImage>>,
    composing: KeyedMutex<[u8; 32]>,
    /// One permit per image that is composed.
    places: Semaphore,
    /// One permit per KiB of [`MAX_MEMORY`].
    memory: Arc<Semaphore>,
    /// Checksums read whole images: one at a time, and one that waits.
    summing: StreamLimit,
    /// One permit per processor: each run compresses, with a thread and buffers of its own, and many hosts boot at once.
    processors: Semaphore,
}

impl ComposedImages {
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self {
            cache: BoundedCache::new(CAPACITY),
            composing: KeyedMutex::default(),
            places: Semaphore::new(COMPOSING),
            memory: Arc::new(Semaphore::new(MAX_MEMORY >> 10)),
            summing: StreamLimit::new(1),
            processors: Semaphore::new(processors),
        }
    }

    /// Takes `bytes` of [`MAX_MEMORY`].
    ///
    /// Errors: `Unavailable` – less is left.
    fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Error> {
        let permits = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(u32::MAX);
        let reserved = Arc::clone(&self.memory).try_acquire_many_owned(permits);
        reserved.map_err(|error| Error::unavailable("memory for another customised image", error))
    }

    fn put(&self, key: [u8; 32], image: ComposedImage) -> Arc<ComposedImage> {
        // Archives that images share are in memory once, however many are cached.
        let own = image.memory.num_permits() << 10;
        let image = Arc::new(image);
        let size = own + size_of::<ComposedImage>();
        self.cache.put(key, Arc::clone(&image), size);
        image
    }
}

impl ImageRequest {
    fn key(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        let (kind, secret): (&[u8], &[u8]) = match &self.credentials {
            RequestCredentials::None => (b"none", b""),
            RequestCredentials::ApiKey(key) => (b"api_key", key.as_bytes()),
            RequestCredentials::ImageToken(token) => (b"image_token", token.as_bytes()),
            RequestCredentials::Authorization(value) => (b"authorization", value.as_bytes()),
        };
        let image = match self.kind {
            ImageKind::Full => b"full",
            ImageKind::Minimal => b"mini",
            ImageKind::Initrd => b"init",
        };
        let (version, architecture) = (self.version.as_bytes(), self.architecture.as_bytes());
        for part in [
            self.id.as_bytes(),
            version,
            architecture,
            image,
            kind,
            secret,
        ] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }
}

/// Whether a request begins to read: no range, or one from the first byte or from the end.
fn begins(head: &Parts) -> bool {
    let range = head.headers.get(header::RANGE);
    let range = range.and_then(|value| value.to_str().ok());
    let first = range.and_then(|text| text.split_once('=')?.1.split('-').next());
    first
        .and_then(|first| first.trim().parse().ok())
        .unwrap_or(0_u64)
        == 0
}

impl ImageApp {
    /// The image that a request asks for.
    pub(super) async fn composed(
        &self,
        request: &ImageRequest,
        head: &Parts,
    ) -> Result<Arc<ComposedImage>, ErrorResponse> {
        let entry = self
            .catalog
            .entry(&request.version, &request.architecture)?;
        if request.kind == ImageKind::Minimal && entry.architecture == S390X {
            let reason = "there are no minimal images of s390x; use full.iso, or a network boot";
            return Err(Error::invalid("architecture", reason).into());
        }
        let base = entry.ready()?;
        let (key, is_begin) = (request.key(), begins(head));
        let cached = || {
            let known = self.composed.cache.get(key);
            known.filter(|known| Arc::ptr_eq(&known.base, &base))
        };
        for _ in 0..ATTEMPTS {
            let known = cached();
            if let Some(known) = &known {
                if !is_begin && known.checked.elapsed() < CONTINUED {
                    return Ok(Arc::clone(known));
                }
                if let Some(current) = self.check(request, key, known).await? {
                    return Ok(current);
                }
            }
            let _guard = self.composed.composing.lock(&key).await;
            // Another request has composed it meanwhile, perhaps before the infra-env changed.
            if cached().map(|new| Arc::as_ptr(&new)) != known.map(|known| Arc::as_ptr(&known)) {
                continue;
            }
            return self.compose(request, key, &entry, base).await;
        }
        self.compose(request, key, &entry, base).await
    }

    /// The image `known`, if its infra-env is unchanged.
    async fn check(
        &self,
        request: &ImageRequest,
        key: [u8; 32],
        known: &ComposedImage,
    ) -> Result<Option<Arc<ComposedImage>>, Error> {
        if known.composed.elapsed() >= VALID || known.updated_at.is_none() {
            return Ok(None);
        }
        let checked = Instant::now();
        let infra_env = self.api.infra_env(request.id, &request.credentials).await?;
        let is_current = infra_env.updated_at == known.updated_at;
        Ok(is_current.then(|| {
            let known = known.clone();
            self.composed.put(key, ComposedImage { checked, ..known })
        }))
    }

    async fn compose(
        &self,
        request: &ImageRequest,
        key: [u8; 32],
        entry: &CatalogImage,
        base: Arc<BaseImage>,
    ) -> Result<Arc<ComposedImage>, ErrorResponse> {
        let place = tokio::time::timeout(MAX_QUEUE_WAIT, self.composed.places.acquire()).await;
        let _place =
            place.map_err(|late| Error::unavailable("a free place to customise an image", late))?;
        let asked = Instant::now();
        let (id, credentials) = (request.id, &request.credentials);
        let kind = match request.kind {
            ImageKind::Full => Some(FULL_ISO),
            ImageKind::Minimal => Some(MINIMAL_ISO),
            ImageKind::Initrd => None,
        };
        let rootfs_url = match request.kind {
            ImageKind::Minimal => self.rootfs_url(entry)?,
            _ => String::new(),
        };
        let network = async {
            if request.kind == ImageKind::Full {
                return Ok(InitrdArchives::default());
            }
            self.network_archives(entry, id, credentials).await
        };
        let (ignition, infra_env, mut archives) = tokio::try_join!(
            self.api.ignition(id, kind, credentials),
            self.api.infra_env(id, credentials),
            network,
        )?;
        if infra_env.embedded_agent {
            archives.agent = Some(self.agents.archive(&entry.architecture).await?);
        }
        let shared = [&archives.nmstatectl, &archives.agent]
            .into_iter()
            .flatten();
        let shared: usize = shared.map(bytes::Bytes::len).sum();
        // A network boot has them in its script.
        let kargs = match request.kind {
            ImageKind::Initrd => Vec::new(),
            _ => infra_env.kargs()?,
        };
        let modified = ignition.modified.unwrap_or(base.modified);
        let (image, json, kind) = (Arc::clone(&base), ignition.json, request.kind);
        let work = move || {
            let content = match kind {
                ImageKind::Full => full_iso(&image, &json, archives, &kargs),
                ImageKind::Minimal => minimal_iso(&image, &json, archives, &kargs, &rootfs_url),
                ImageKind::Initrd => pxe_initrd(&image, &json, archives),
            }?;
            let identity = identity(&content, image.modified);
            Ok((content, identity))
        };
        let (content, identity) = self.composed.run(work).await?;
        let memory: usize = content.memory().map(bytes::Bytes::len).sum();
        let memory = self.composed.reserve(memory.saturating_sub(shared))?;
        let image = ComposedImage {
            content,
            identity,
            modified,
            checksum: Arc::default(),
            memory: Arc::new(memory),
            base,
            updated_at: infra_env.updated_at,
            composed: asked,
            checked: asked,
        };
        Ok(self.composed.put(key, image))
    }

    /// The SHA-256 of an image in hexadecimal: computed once.
    pub(super) async fn checksum(&self, image: &ComposedImage) -> Result<String, Error> {
        let doing = "computing the checksum of the image";
        let failed = |error| Error::internal(doing, error);
        let checksum = image.checksum.get_or_try_init(|| async {
            let _permit = self.composed.summing.acquire().await?;
            let content = image.content.clone();
            let summed = tokio::task::spawn_blocking(move || {
                let mut hash = Sha256::new();
                content.for_each_chunk(|chunk| {
                    hash.update(chunk);
                    Ok(())
                })?;
                Ok::<_, io::Error>(hex::encode(hash.finalize()))
            });
            let summed = summed.await.map_err(io::Error::other).map_err(failed)?;
            summed.map_err(failed)
        });
        checksum.await.cloned()
    }

    fn rootfs_url(&self, entry: &CatalogImage) -> Result<String, Error> {
        let base_url = self.base_url.as_deref().ok_or_else(|| {
            Error::conflict(
                "hosts that boot a minimal image download their root file system from IMAGE_SERVICE_BASE_URL, \
                 which is not set; set it, or use full.iso",
            )
        })?;
        let (architecture, version) = (&entry.architecture, &entry.version);
        Ok(format!(
            "{base_url}/boot-artifacts/rootfs?arch={architecture}&version={version}"
        ))
    }

    /// The archives that early boot needs for a static network: none, if the infra-env has neither that nor a proxy.
    async fn network_archives(
        &self,
        entry: &CatalogImage,
        id: Uuid,
        credentials: &RequestCredentials,
    ) -> Result<InitrdArchives, Error> {
        let ramdisk = self.api.minimal_initrd(id, credentials).await?;
        let unreadable = |error| Error::internal("reading the ramdisk of the installer API", error);
        let nmstatectl = match &ramdisk {
            Some(ramdisk) if needs_nmstatectl(ramdisk).map_err(unreadable)? => {
                Some(entry.nmstatectl(&self.data_dir).await?)
            }
            _ => None,
        };
        Ok(InitrdArchives {
            ramdisk,
            nmstatectl,
            agent: None,
        })
    }
}

impl ComposedImages {
    /// Runs `work` off the runtime, under a permit; the caller's stream limit bounds the queue.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, CustomiseError> + Send + 'static,
    ) -> Result<T, ErrorResponse> {
        let doing = "customising the image";
        let permit = self.processors.acquire().await;
        let _permit = permit.map_err(|closed| Error::internal(doing, closed))?;
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => Ok(done?),
            Err(panic) => Err(Error::internal(doing, panic).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::content::Piece;

    // limit: composed images
    #[test]
    fn least_recent_images_beyond_the_capacity_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.iso");
        testkit::iso::write(&path, &testkit::iso::LiveImageOptions::small()).unwrap();
        let base = Arc::new(BaseImage::open(&path).unwrap());
        let images = ComposedImages::new();
        let image = |memory: usize| {
            let mut content = ImageContent::new();
            content.push(Piece::Memory(Bytes::from(vec![1; memory])));
            ComposedImage {
                content,
                identity: String::new(),
                modified: SystemTime::UNIX_EPOCH,
                checksum: Arc::default(),
                memory: Arc::new(images.reserve(memory).unwrap()),
                base: Arc::clone(&base),
                updated_at: None,
                composed: Instant::now(),
                checked: Instant::now(),
            }
        };
        // Memory counts in KiB; the rest is for the record.
        let half = CAPACITY / 2 - (1 << 10);
        images.put([1; 32], image(half));
        images.put([2; 32], image(half));
        assert!(images.cache.get([1; 32]).is_some(), "both fit");
        images.put([3; 32], image(4 << 10));
        assert!(images.cache.get([2; 32]).is_none());
        assert!(images.cache.get([1; 32]).is_some(), "used later");
    }

    // limit: memory of composed images
    #[test]
    fn memory_is_taken_from_the_bound_and_given_back() {
        let images = ComposedImages::new();
        let all = images.reserve(MAX_MEMORY).unwrap();
        let refused = images.reserve(1).unwrap_err();
        assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
        drop(all);
        assert!(images.reserve(1).is_ok());
    }

    #[test]
    fn keys_depend_on_each_member() {
        let request = || ImageRequest {
            id: Uuid::from_u128(1),
            version: "4.18".to_owned(),
            architecture: "x86_64".to_owned(),
            kind: ImageKind::Full,
            credentials: RequestCredentials::ApiKey("a".to_owned()),
        };
        let changes: [fn(&mut ImageRequest); 6] = [
            |request| request.id = Uuid::from_u128(2),
            |request| request.version = "4.18x".to_owned(),
            |request| request.architecture = "86_64".to_owned(),
            |request| request.kind = ImageKind::Minimal,
            |request| request.credentials = RequestCredentials::ApiKey("b".to_owned()),
            |request| request.credentials = RequestCredentials::ImageToken("a".to_owned()),
        ];
        for change in changes {
            let mut other = request();
            change(&mut other);
            assert_ne!(other.key(), request().key());
        }
        assert_eq!(request().key(), request().key());
    }
}
