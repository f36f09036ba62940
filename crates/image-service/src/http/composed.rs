//! Composed images, kept while they are read: a BMC reads an image in thousands of ranges.

use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{Duration, Instant, SystemTime};

use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use concurrency::{BoundedCache, KeyedMutex};
use model::Error;
use service::server::{ClientAddress, ClientQuota, Permit};
use tokio::sync::{OnceCell, Semaphore};

use super::error::ErrorResponse;
use super::recipe::{ImageKind, RecipeDigest};
use super::response::{ImageRepresentation, respond};
use crate::content::ContentPieces;
use crate::image::{BaseImage, CustomiseError};
use crate::stream_limit::{StreamLimit, StreamPermit};

/// Capacity. Units: bytes, of the pieces in memory: an ignition has some tens of kilobytes, the program for static networks
/// some megabytes.
pub(crate) const CAPACITY: usize = 32 << 20;
/// Memory of all composed images, those that are sent and those in the cache. Units: bytes.
pub(crate) const MAX_MEMORY: usize = 64 << 20;
/// The same of one client: more than the cache holds of it. Units: bytes.
pub(crate) const MEMORY_OF_CLIENT: usize = 48 << 20;
/// Images composed at once, each with some answers of the API in memory.
const COMPOSING: usize = 8;
/// How long an image can be read by its recipe after a request with credentials. Source: the lifetime of the API's image
/// tokens.
pub(crate) const GRANTED: Duration = Duration::from_hours(4);
/// Bound of the recent requests. Units: bytes; some thousand requests.
const REQUESTS: usize = 1 << 20;

/// An image as it is sent.
#[derive(Debug, Clone)]
pub(super) struct ComposedImage {
    pub(super) content: ContentPieces,
    pub(super) kind: ImageKind,
    /// The text, see [`super::recipe::Recipe`].
    pub(super) recipe: Bytes,
    /// Its SHA-256.
    pub(super) digest: RecipeDigest,
    pub(super) kernel_arguments: Arc<[String]>,
    pub(super) modified: SystemTime,
    /// SHA-256 in hexadecimal, once asked for.
    pub(super) checksum: Arc<OnceCell<String>>,
    /// Its own share of [`MAX_MEMORY`].
    pub(super) memory: Arc<Permit>,
    pub(super) base: Arc<BaseImage>,
    /// When the API last granted it to a client.
    pub(super) granted: Instant,
}

/// A request that was answered with an image.
#[derive(Debug, Clone)]
pub(super) struct RecentRequest {
    pub(super) image: RecipeDigest,
    /// Version of the infra-env; none if the API has none.
    pub(super) updated_at: Option<String>,
    pub(super) composed: Instant,
    /// When the API was last asked.
    pub(super) checked: Instant,
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
    pub(super) composing: KeyedMutex<[u8; 32]>,
    /// One permit per image that is composed.
    pub(super) places: Semaphore,
    /// One permit per KiB of [`MAX_MEMORY`].
    memory: ClientQuota,
    /// Checksums read whole images: one at a time, and one that waits.
    pub(super) summing: StreamLimit,
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
    pub(super) fn reserve(&self, client: ClientAddress, bytes: usize) -> Result<Permit, Error> {
        let reserved = self
            .memory
            .acquire_many_for(client, bytes.div_ceil(1 << 10));
        reserved.map_err(|_| Error::Unavailable {
            what: "memory for another customised image",
            source: None,
        })
    }

    /// Keeps an image; one that is equal already stays, and is granted again.
    pub(super) fn keep(&self, image: ComposedImage) -> Arc<ComposedImage> {
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

    pub(super) fn note(&self, key: [u8; 32], request: RecentRequest) {
        let text = request.updated_at.as_ref().map_or(0, String::len);
        let size = size_of::<RecentRequest>() + size_of_val(&key) + text;
        self.requests.put(key, request, size);
    }

    /// The image of a recent request, if it is of this base image.
    pub(super) fn recent(
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

    /// Runs `work` off the runtime, under a permit; the caller's stream limit bounds the queue.
    pub(super) async fn run<T: Send + 'static>(
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
}
