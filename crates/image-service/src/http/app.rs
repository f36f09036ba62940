//! State of the handlers, which composes the images that they send.
//!
//! A request from the first byte begins to read: the installer API says whether its infra-env has changed since the image was
//! composed, and checks the credentials. Later ranges continue with the same image, without a call.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::header;
use axum::http::request::Parts;
use bytes::Bytes;
use model::Error;
use service::server::ClientAddress;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::composed::{ComposedImage, ComposedImages, RecentRequest};
use super::error::ErrorResponse;
use super::recipe::{ImageKind, Recipe};
use crate::catalog::{CatalogImage, ImageCatalog};
use crate::image::agent::AgentArchives;
use crate::image::{
    BaseImage, InitrdArchives, KargsChange, customised, minimal_iso, needs_nmstatectl, pxe_initrd,
};
use crate::installer_api::{InstallerApi, RequestCredentials};
use crate::offer::OfferLooks;
use crate::os_image::{FULL_ISO, MINIMAL_ISO, S390X};
use crate::stream_limit::{MAX_QUEUE_WAIT, StreamLimit, StreamPermit};

/// How long ranges continue with an image that was current.
const CONTINUED: Duration = Duration::from_mins(10);
/// Longest use of an image: more than the infra-env is in it, such as settings of the API.
const VALID: Duration = Duration::from_mins(1);
/// Attempts to use an image that another request composes.
const ATTEMPTS: usize = 3;

/// State shared by handlers.
#[derive(Debug, Clone)]
pub(crate) struct ImageApp {
    pub(crate) catalog: Arc<ImageCatalog>,
    pub(crate) looks: Arc<OfferLooks>,
    pub(crate) data_dir: Arc<Path>,
    pub(crate) api: InstallerApi,
    pub(crate) streams: StreamLimit,
    pub(crate) composed: Arc<ComposedImages>,
    pub(crate) agents: Arc<AgentArchives>,
    /// Public URL of this service, without a slash at the end.
    pub(crate) base_url: Option<Arc<str>>,
}

/// An image as it is requested.
pub(super) struct ImageRequest {
    pub(super) id: Uuid,
    pub(super) version: String,
    pub(super) architecture: String,
    pub(super) kind: ImageKind,
    pub(super) credentials: RequestCredentials,
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
    /// Waits for a look at the offer if no such image is on offer.
    pub(super) async fn look_for(&self, version: &str, architecture: &str) {
        if self.catalog.entry(version, architecture).is_err() {
            self.looks.look().await;
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

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
