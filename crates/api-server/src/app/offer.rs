//! Installable releases and images: those of the settings, else those of the registry.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use model::Error;
use model::versions::{OfferedCatalog, OsImage, ReleaseImage};
use oci::Reference;
use preparation::{SiteCatalog, SiteCatalogs, SiteMirrors};
use registry_content::{
    HeldCatalog, RegistryContent, by_source, mirrors, os_images, release_images,
};
use rules::Offer;

/// The offer of this moment.
#[derive(Debug)]
pub(crate) struct CurrentOffer {
    images: RwLock<OfferedImages>,
    mirrors: SiteMirrors,
    catalogs: SiteCatalogs,
}

#[derive(Debug)]
struct OfferedImages {
    /// That of the settings.
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
    /// That of the settings. Images that have mirrors need no pull secret.
    pub(crate) fn new(offer: Offer, mirrors: SiteMirrors, catalogs: SiteCatalogs) -> Self {
        let mut images = OfferedImages {
            offer: Arc::new(offer.clone()),
            own: offer,
            content: None,
            mirrored: sources(&mirrors),
        };
        images.combine();
        Self {
            images: RwLock::new(images),
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

    /// The OS images of the settings.
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

    /// The operator catalogs of the registry.
    pub(crate) fn catalogs(&self) -> Vec<OfferedCatalog> {
        /// Images that are named: a filtered catalog may lack thousands.
        const NAMED: usize = 10;
        let images = self.images();
        let catalogs = images.content.iter().flat_map(|it| &it.catalogs);
        let offered = |catalog: &HeldCatalog| OfferedCatalog {
            openshift_version: catalog.version.clone(),
            image: catalog.image.clone(),
            missing_repositories: catalog.missing.len() as u64,
            missing: catalog.missing.iter().take(NAMED).cloned().collect(),
        };
        catalogs.map(offered).collect()
    }

    fn change(&self, change: impl FnOnce(&mut OfferedImages)) {
        let mut images = self.images.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut images);
        images.combine();
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
