//! Installable releases and images: those of the settings, with OS images that a file may change while the server runs,
//! else those of the registry.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use concurrency::{BoxError, WatchedFile};
use model::Error;
use model::versions::{OsImage, ReleaseImage};
use oci::Reference;
use preparation::{SiteCatalog, SiteCatalogs, SiteMirrors};
use registry_content::{RegistryContent, by_source, mirrors, os_images, release_images};
use rules::Offer;
use service::CancellationToken;

use crate::settings::{OsImages, Settings};

/// The file of `OS_IMAGES_FILE`.
pub(crate) type OsImagesFile = WatchedFile<Vec<OsImage>>;

/// The offer of this moment.
#[derive(Debug)]
pub(crate) struct CurrentOffer {
    images: RwLock<OfferedImages>,
    file: Option<OsImagesFile>,
    mirrors: SiteMirrors,
    catalogs: SiteCatalogs,
}

#[derive(Debug)]
struct OfferedImages {
    /// That of the settings, with the OS images of the file.
    own: Offer,
    /// Of the registry; none until it was read.
    content: Option<RegistryContent>,
    /// Repositories that have mirrors.
    mirrored: Vec<String>,
    /// All of them.
    offer: Arc<Offer>,
}

impl OfferedImages {
    fn combine(&mut self) {
        let mut offer = self.own.clone();
        if let Some(content) = &self.content {
            if offer.releases.is_empty() {
                offer.releases = release_images(content);
            }
            if offer.os_images.is_empty() {
                offer.os_images = os_images(content);
            }
        }
        offer.public_registries.extend_from_slice(&self.mirrored);
        self.offer = Arc::new(offer);
    }
}

impl CurrentOffer {
    /// The images of `file`, if there is one, replace those of `offer`. Those that have mirrors need no pull secret.
    pub(crate) fn new(
        offer: Offer,
        file: Option<OsImagesFile>,
        mirrors: SiteMirrors,
        catalogs: SiteCatalogs,
    ) -> Self {
        let mut images = OfferedImages {
            offer: Arc::new(offer.clone()),
            own: offer,
            content: None,
            mirrored: sources(&mirrors),
        };
        images.combine();
        Self {
            images: RwLock::new(images),
            file,
            mirrors,
            catalogs,
        }
    }

    fn images(&self) -> RwLockReadGuard<'_, OfferedImages> {
        self.images.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Installable releases and images.
    pub(crate) fn get(&self) -> Arc<Offer> {
        Arc::clone(&self.images().offer)
    }

    /// The OS images of the settings or their file.
    pub(super) fn own_os_images(&self) -> Vec<OsImage> {
        self.images().own.os_images.clone()
    }

    /// The release images of the settings.
    pub(super) fn own_releases(&self) -> Vec<ReleaseImage> {
        self.images().own.releases.clone()
    }

    /// Offers the content of the registry, as far as the settings list nothing else.
    pub(super) fn set_content(&self, content: &RegistryContent) {
        if self.images().content.as_ref() == Some(content) {
            return;
        }
        self.change(|images| {
            // Under the lock: another reading must not leave its mirrors to this content.
            if let Err(error) = self.mirrors.set_found(&mirrors(content)) {
                let error = error.chain();
                tracing::warn!(
                    error,
                    "the file of REGISTRIES_CONF_PATH stays alone: write its entries as [[registry]], else it has to \
                     name the registry of the site as a mirror"
                );
            }
            self.catalogs.set(site_catalogs(content));
            images.content = Some(content.clone());
            images.mirrored = sources(&self.mirrors);
        });
    }

    /// Whether the registry was read.
    pub(super) fn has_content(&self) -> bool {
        self.images().content.is_some()
    }

    /// Content of the registry.
    pub(super) fn content(&self) -> RegistryContent {
        self.images().content.clone().unwrap_or_default()
    }

    /// The OS images of the registry that are on offer, which image services provide, too.
    ///
    /// Errors: Unavailable – it was not read yet: after an empty list, image services would remove their files.
    pub(crate) fn held_os_images(&self) -> Result<Vec<OsImage>, Error> {
        let images = self.images();
        if !images.own.os_images.is_empty() {
            return Ok(Vec::new());
        }
        let content = images.content.as_ref().ok_or(Error::Unavailable {
            what: "the content of the registry",
            source: None,
        })?;
        Ok(os_images(content))
    }

    fn change(&self, change: impl FnOnce(&mut OfferedImages)) {
        let mut images = self.images.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut images);
        images.combine();
    }

    /// Replaces the OS images whenever their file changes.
    pub(crate) async fn follow(&self, shutdown: &CancellationToken) {
        let Some(file) = &self.file else { return };
        let mut images = file.get().await;
        loop {
            self.change(|offered| offered.own.os_images = images.to_vec());
            match shutdown.run_until_cancelled(file.changed(&images)).await {
                Some(changed) => images = changed,
                None => return,
            }
        }
    }
}

/// The catalogs of the registry.
fn site_catalogs(content: &RegistryContent) -> Vec<SiteCatalog> {
    let catalogs = content.catalogs.iter().filter_map(|catalog| {
        let image: Reference = catalog.image.parse().ok()?;
        Some(SiteCatalog {
            version: catalog.version.clone(),
            repository: image.repository.to_string(),
            tag: image.tag.as_ref()?.to_string(),
            image: catalog.image.clone(),
            mirrors: by_source(&catalog.mirrors),
            tag_mirrors: by_source(&catalog.tag_mirrors),
        })
    });
    catalogs.collect()
}

/// Repositories, or longer locations, that have mirrors.
fn sources(mirrors: &SiteMirrors) -> Vec<String> {
    let mirrors = mirrors.get();
    let sources = mirrors.iter().flat_map(|it| it.mirrors.sources());
    sources.map(|source| source.location.to_owned()).collect()
}

/// The file, whose images become those of the settings; none if none is set.
///
/// Errors: it cannot be read, or is no valid list.
pub(crate) async fn open_os_images_file(
    settings: &mut Settings,
) -> Result<Option<OsImagesFile>, service::Error> {
    let Some(path) = settings.os_images_file.as_deref() else {
        return Ok(None);
    };
    let file = WatchedFile::open(path, parse_os_images).await;
    let file = file.map_err(|error| service::Error::new("reading OS_IMAGES_FILE", error))?;
    settings.os_images = OsImages(file.get().await.to_vec());
    Ok(Some(file))
}

/// The content of the file.
pub(crate) fn parse_os_images(json: &[u8]) -> Result<Vec<OsImage>, BoxError> {
    Ok(rules::versions::load_os_images(std::str::from_utf8(json)?)?)
}
