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
use bytes::Bytes;
use concurrency::{BoundedCache, KeyedMutex};
use model::Error;
use serde::Serialize;
use service::server::{ClientAddress, ClientQuota, Permit};
use sha2::{Digest as _, Sha256};
use tokio::sync::{OnceCell, Semaphore};
use uuid::Uuid;

use super::error::ErrorResponse;
use super::recipe::{Recipe, RecipeDigest};
use super::response::{ImageRepresentation, respond};
use crate::ImageApp;
use crate::catalog::CatalogImage;
use crate::content::ContentPieces;
use crate::image::{
    BaseImage, CustomiseError, InitrdArchives, KargsChange, customised, minimal_iso,
    needs_nmstatectl, pxe_initrd,
};
use crate::installer_api::RequestCredentials;
use crate::settings::{FULL_ISO, MINIMAL_ISO, S390X};
use crate::stream_limit::{MAX_QUEUE_WAIT, StreamLimit, StreamPermit};

/// Capacity. Units: bytes, of the pieces in memory: an ignition has some tens of kilobytes, the program for static networks
/// some megabytes.
pub(crate) const CAPACITY: usize = 32 << 20;
/// Memory of all composed images, those that are sent and those in the cache. Units: bytes.
pub(crate) const MAX_MEMORY: usize = 64 << 20;
/// The same of one client: more than the cache holds of it. Units: bytes.
pub(crate) const MEMORY_OF_CLIENT: usize = 48 << 20;
/// Images composed at once, each with some answers of the API in memory.
const COMPOSING: usize = 8;
/// How long ranges continue with an image that was current.
const CONTINUED: Duration = Duration::from_mins(10);
/// Longest use of an image: more than the infra-env is in it, such as settings of the API.
const VALID: Duration = Duration::from_mins(1);
/// Attempts to use an image that another request composes.
const ATTEMPTS: usize = 3;

/// How long an image can be read by its recipe after a request with credentials. Source: the lifetime of the API's image
/// tokens.
pub(crate) const GRANTED: Duration = Duration::from_hours(4);
/// Bound of the recent requests. Units: bytes; some thousand requests.
const REQUESTS: usize = 1 << 20;

/// Kinds of composed images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum ImageKind {
    #[serde(rename = "full-iso")]
    Full,
    #[serde(rename = "minimal-iso")]
    Minimal,
    /// The initrd of a network boot.
    #[serde(rename = "pxe-initrd")]
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
    pub(super) content: ContentPieces,
    pub(super) kind: ImageKind,
    /// The text, see [`Recipe`].
    pub(super) recipe: Bytes,
    /// Its SHA-256.
    digest: RecipeDigest,
    pub(super) kernel_arguments: Arc<[String]>,
    pub(super) modified: SystemTime,
    /// SHA-256 in hexadecimal, once asked for.
    checksum: Arc<OnceCell<String>>,
    /// Its own share of [`MAX_MEMORY`].
    memory: Arc<Permit>,
    pub(super) base: Arc<BaseImage>,
    /// When the API last granted it to a client.
    granted: Instant,
}

/// A request that was answered with an image.
#[derive(Debug, Clone)]
struct RecentRequest {
    image: RecipeDigest,
    /// Version of the infra-env; none if the API has none.
    updated_at: Option<String>,
    composed: Instant,
    /// When the API was last asked.
    checked: Instant,
}

impl ComposedImage {
    /// The digest of its recipe in hexadecimal.
    pub(super) fn name(&self) -> String {
        hex::encode(self.digest)
    }

    /// The response to a GET or HEAD. Its memory counts until the last byte.
    pub(super) fn respond(
        self: Arc<Self>,
        head: &Parts,
        file_name: String,
        content_type: &'static str,
        permit: StreamPermit,
    ) -> Response {
        let image = ImageRepresentation {
            content: self.content.clone(),
            file_name,
            content_type,
            modified: self.modified,
            identity: self.name(),
        };
        respond(head, image, (permit, self))
    }
}

/// Recent requests, and their images.
#[derive(Debug)]
pub(crate) struct ComposedImages {
    /// By a digest of request and credentials.
    requests: BoundedCache<[u8; 32], RecentRequest>,
    /// By their recipes: equal images are in memory once.
    images: BoundedCache<RecipeDigest, Arc<ComposedImage>>,
    composing: KeyedMutex<[u8; 32]>,
    /// One permit per image that is composed.
    places: Semaphore,
    /// One permit per KiB of [`MAX_MEMORY`].
    memory: ClientQuota,
    /// Checksums read whole images: one at a time, and one that waits.
    summing: StreamLimit,
    /// One permit per processor: each run compresses, with a thread and buffers of its own, and many hosts boot at once.
    processors: Semaphore,
}

impl ComposedImages {
    pub(crate) fn new() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self {
            requests: BoundedCache::new(REQUESTS),
            images: BoundedCache::new(CAPACITY),
            composing: KeyedMutex::default(),
            places: Semaphore::new(COMPOSING),
            memory: ClientQuota::new(MAX_MEMORY >> 10, MEMORY_OF_CLIENT >> 10),
            summing: StreamLimit::with_share(1, 2),
            processors: Semaphore::new(processors),
        }
    }

    /// Takes `bytes` of [`MAX_MEMORY`] for the client that composes an image.
    ///
    /// Errors: `Unavailable` – less is left, or the client has its share.
    fn reserve(&self, client: ClientAddress, bytes: usize) -> Result<Permit, Error> {
        let reserved = self
            .memory
            .acquire_many_for(client, bytes.div_ceil(1 << 10));
        reserved.map_err(|_| Error::Unavailable {
            what: "memory for another customised image",
            source: None,
        })
    }

    /// Keeps an image; one that is equal already stays, and is granted again.
    fn keep(&self, image: ComposedImage) -> Arc<ComposedImage> {
        let known = self.images.get(image.digest);
        let image = match known.filter(|known| Arc::ptr_eq(&known.base, &image.base)) {
            Some(known) => ComposedImage {
                granted: image.granted,
                ..ComposedImage::clone(&known)
            },
            None => image,
        };
        // Archives that images share are in memory once, however many are cached.
        let own = image.memory.count() << 10;
        let image = Arc::new(image);
        let size = own + image.recipe.len() + size_of::<ComposedImage>();
        self.images.put(image.digest, Arc::clone(&image), size);
        image
    }

    fn note(&self, key: [u8; 32], request: RecentRequest) {
        let text = request.updated_at.as_ref().map_or(0, String::len);
        let size = size_of::<RecentRequest>() + size_of_val(&key) + text;
        self.requests.put(key, request, size);
    }

    /// The image of a recent request, if it is of this base image.
    fn recent(
        &self,
        key: [u8; 32],
        base: &Arc<BaseImage>,
    ) -> Option<(RecentRequest, Arc<ComposedImage>)> {
        let request = self.requests.get(key)?;
        let image = self.images.get(request.image)?;
        Arc::ptr_eq(&image.base, base).then_some((request, image))
    }

    /// The image of a recipe, as long as it may be read without credentials.
    pub(super) fn of_recipe(&self, digest: RecipeDigest) -> Option<Arc<ComposedImage>> {
        let image = self.images.get(digest)?;
        (image.granted.elapsed() < GRANTED).then_some(image)
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

/// The client of a request.
pub(super) fn client_of(head: &Parts) -> Result<ClientAddress, Error> {
    let client = head.extensions.get::<ClientAddress>().copied();
    client.ok_or_else(|| Error::internal("identifying the client", "the server has not named it"))
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
    /// A permit of a stream for the client of a request.
    ///
    /// Errors: as [`StreamLimit::acquire`].
    pub(super) async fn stream_permit(&self, head: &Parts) -> Result<StreamPermit, Error> {
        self.streams.acquire(client_of(head)?).await
    }

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
        let client = client_of(head)?;
        let recent = || self.composed.recent(key, &base);
        for _ in 0..ATTEMPTS {
            let known = recent();
            if let Some((known, image)) = &known {
                let continues = !is_begin && known.checked.elapsed() < CONTINUED;
                if continues || self.check(request, key, known).await? {
                    return Ok(Arc::clone(image));
                }
            }
            let _guard = self.composed.composing.lock(&key).await;
            // Another request has composed it meanwhile, perhaps before the infra-env changed.
            let composed = |(recent, _): (RecentRequest, _)| recent.composed;
            if recent().map(composed) != known.map(composed) {
                continue;
            }
            return self.compose(request, key, &entry, base, client).await;
        }
        self.compose(request, key, &entry, base, client).await
    }

    /// Whether the infra-env of the image is unchanged.
    async fn check(
        &self,
        request: &ImageRequest,
        key: [u8; 32],
        known: &RecentRequest,
    ) -> Result<bool, Error> {
        if known.composed.elapsed() >= VALID || known.updated_at.is_none() {
            return Ok(false);
        }
        let checked = Instant::now();
        let infra_env = self.api.infra_env(request.id, &request.credentials).await?;
        let is_current = infra_env.updated_at == known.updated_at;
        if is_current {
            let known = known.clone();
            self.composed.note(key, RecentRequest { checked, ..known });
        }
        Ok(is_current)
    }

    async fn compose(
        &self,
        request: &ImageRequest,
        key: [u8; 32],
        entry: &Arc<CatalogImage>,
        base: Arc<BaseImage>,
        client: ClientAddress,
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
            ImageKind::Minimal => Some(self.rootfs_url(entry)?),
            _ => None,
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
        let shared: usize = shared.map(Bytes::len).sum();
        let kargs = KargsChange::adding(infra_env.kargs()?);
        let modified = ignition.modified.unwrap_or(base.modified);
        let (entry, image) = (Arc::clone(entry), Arc::clone(&base));
        let (json, kind) = (ignition.json, request.kind);
        let work = move || {
            let rootfs_url = rootfs_url.as_deref();
            let of = (&*entry, &*image);
            let recipe = Recipe::new(kind, of, &json, &archives, &kargs.append, rootfs_url).text();
            let content = match (kind, rootfs_url) {
                (ImageKind::Minimal, Some(url)) => {
                    minimal_iso(&image, &json, archives, &kargs, url)
                }
                // The script of a network boot has the kernel arguments.
                (ImageKind::Initrd, _) => pxe_initrd(&image, &json, archives),
                (ImageKind::Full | ImageKind::Minimal, _) => {
                    customised(&image, Some(&json), archives, &kargs)
                }
            }?;
            Ok((recipe, content, kargs.append))
        };
        let (recipe, content, kargs) = self.composed.run(work).await?;
        let (recipe, digest) =
            recipe.map_err(|error| Error::internal("writing the recipe of the image", error))?;
        let memory: usize = content.memory().map(Bytes::len).sum();
        let memory = self
            .composed
            .reserve(client, memory.saturating_sub(shared))?;
        let image = self.composed.keep(ComposedImage {
            content,
            kind,
            recipe,
            digest,
            kernel_arguments: kargs.into(),
            modified,
            checksum: Arc::default(),
            memory: Arc::new(memory),
            base,
            granted: asked,
        });
        let recent = RecentRequest {
            image: digest,
            updated_at: infra_env.updated_at,
            composed: asked,
            checked: asked,
        };
        self.composed.note(key, recent);
        Ok(image)
    }

    /// The SHA-256 of an image in hexadecimal: computed once.
    pub(super) async fn checksum(
        &self,
        image: &ComposedImage,
        client: ClientAddress,
    ) -> Result<String, Error> {
        let doing = "computing the checksum of the image";
        let failed = |error| Error::internal(doing, error);
        let checksum = image.checksum.get_or_try_init(|| async {
            let _permit = self.composed.summing.acquire(client).await?;
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

    /// URL of this service for hosts, without a slash at the end.
    pub(super) fn public_url(&self) -> Result<&str, Error> {
        self.base_url.as_deref().ok_or_else(|| {
            Error::conflict(
                "hosts that boot a minimal image or a script download their root file system from IMAGE_SERVICE_BASE_URL, \
                 which is not set; set it, or use full.iso",
            )
        })
    }

    fn rootfs_url(&self, entry: &CatalogImage) -> Result<String, Error> {
        let base_url = self.public_url()?;
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

    fn client(last: u8) -> ClientAddress {
        ClientAddress {
            ip: [192, 0, 2, last].into(),
            is_forwarded: false,
        }
    }

    fn image(
        images: &ComposedImages,
        base: &Arc<BaseImage>,
        name: u8,
        memory: usize,
    ) -> ComposedImage {
        let mut content = ContentPieces::new();
        content.push(Piece::Memory(Bytes::from(vec![1; memory])));
        ComposedImage {
            content,
            kind: ImageKind::Full,
            recipe: Bytes::new(),
            digest: [name; 32],
            kernel_arguments: Arc::new([]),
            modified: SystemTime::UNIX_EPOCH,
            checksum: Arc::default(),
            memory: Arc::new(images.reserve(client(name), memory).unwrap()),
            base: Arc::clone(base),
            granted: Instant::now(),
        }
    }

    fn base() -> Arc<BaseImage> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.iso");
        testkit::iso::write(&path, &testkit::iso::LiveImageOptions::small()).unwrap();
        Arc::new(BaseImage::open(&path).unwrap())
    }

    // limit: composed images
    #[test]
    fn least_recent_images_beyond_the_capacity_are_forgotten() {
        let (base, images) = (base(), ComposedImages::new());
        // Memory counts in KiB; the rest is for the record.
        let half = CAPACITY / 2 - (1 << 10);
        images.keep(image(&images, &base, 1, half));
        images.keep(image(&images, &base, 2, half));
        assert!(images.images.get([1; 32]).is_some(), "both fit");
        images.keep(image(&images, &base, 3, 4 << 10));
        assert!(images.images.get([2; 32]).is_none());
        assert!(images.images.get([1; 32]).is_some(), "used later");
    }

    #[test]
    fn equal_images_are_in_memory_once() {
        let (base, images) = (base(), ComposedImages::new());
        let first = images.keep(image(&images, &base, 1, 4 << 10));
        let second = images.keep(image(&images, &base, 1, 4 << 10));
        assert!(Arc::ptr_eq(&first.memory, &second.memory));
        assert!(second.granted >= first.granted);
        let other = images.keep(image(&images, &self::base(), 1, 4 << 10));
        assert!(
            !Arc::ptr_eq(&first.memory, &other.memory),
            "of another file"
        );
    }

    // limit: image by its recipe
    #[test]
    fn recipes_are_granted_for_some_hours() {
        let (base, images) = (base(), ComposedImages::new());
        let of = |age: Duration| ComposedImage {
            granted: Instant::now().checked_sub(age).unwrap(),
            ..image(&images, &base, 1, 1)
        };
        images.keep(of(GRANTED.mul_f32(0.99)));
        assert!(images.of_recipe([1; 32]).is_some());
        images.keep(of(GRANTED));
        assert!(images.of_recipe([1; 32]).is_none());
        assert!(images.of_recipe([2; 32]).is_none());
    }

    // limit: memory of composed images
    #[test]
    fn memory_is_taken_from_the_bound_and_given_back() {
        let images = ComposedImages::new();
        let most = images.reserve(client(1), MEMORY_OF_CLIENT).unwrap();
        let rest = images.reserve(client(2), MAX_MEMORY - MEMORY_OF_CLIENT);
        let refused = images.reserve(client(2), 1).unwrap_err();
        assert!(matches!(refused, Error::Unavailable { .. }), "{refused}");
        drop((most, rest));
        assert_eq!(images.memory.held(), 0);
    }

    // share: memory of composed images
    #[test]
    fn a_client_leaves_memory_to_the_others() {
        let images = ComposedImages::new();
        let _own = images.reserve(client(1), MEMORY_OF_CLIENT).unwrap();
        assert!(images.reserve(client(1), 1).is_err(), "one above");
        assert!(images.reserve(client(2), 1 << 20).is_ok());
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
