//! Installable releases and images: those of the settings, with OS images that a file may change while the server runs,
//! and those that administrators added.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use concurrency::{BoxError, WatchedFile};
use model::Error;
use model::versions::{AddedOsImage, OsImage, ReleaseImage};
use preparation::SiteMirrors;
use registry_content::{RegistryContent, mirrors, os_images, release_images};
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
}

#[derive(Debug)]
struct OfferedImages {
    /// That of the settings, with the OS images of the file.
    own: Offer,
    added_releases: Vec<ReleaseImage>,
    /// None until they were read.
    added_os_images: Option<Vec<AddedOsImage>>,
    /// Of the registry.
    content: RegistryContent,
    /// Repositories that have mirrors.
    mirrored: Vec<String>,
    /// All of them.
    offer: Arc<Offer>,
}

impl OfferedImages {
    /// A default among the added releases is the default of all.
    fn combine(&mut self) {
        let mut releases = self.own.releases.clone();
        if releases.is_empty() {
            releases = release_images(&self.content);
        }
        if self.added_releases.iter().any(|image| image.default) {
            for image in &mut releases {
                image.default = false;
            }
        }
        releases.extend_from_slice(&self.added_releases);
        let mut os_images = self.own.os_images.clone();
        os_images.extend(self.other_os_images().into_iter().map(|other| other.image));
        let mut public_registries = self.own.public_registries.clone();
        public_registries.extend_from_slice(&self.mirrored);
        self.offer = Arc::new(Offer {
            releases,
            os_images,
            public_registries,
            ..self.own.clone()
        });
    }
}

impl OfferedImages {
    /// OS images of the registry, if the settings have none.
    fn held_os_images(&self) -> Vec<AddedOsImage> {
        if !self.own.os_images.is_empty() {
            return Vec::new();
        }
        let mut held = os_images(&self.content);
        held.retain(|image| {
            let mut added = self.added_os_images.iter().flatten();
            !added.any(|added| {
                added.image.openshift_version == image.openshift_version
                    && added.image.cpu_architecture == image.cpu_architecture
            })
        });
        let held = held.into_iter().map(|image| AddedOsImage {
            image,
            ..AddedOsImage::default()
        });
        held.collect()
    }

    /// OS images beside those of the settings.
    fn other_os_images(&self) -> Vec<AddedOsImage> {
        let added = self.added_os_images.iter().flatten().cloned();
        added.chain(self.held_os_images()).collect()
    }
}

impl CurrentOffer {
    /// The images of `file`, if there is one, replace those of `offer`. Those that have mirrors need no pull secret.
    pub(crate) fn new(offer: Offer, file: Option<OsImagesFile>, mirrors: SiteMirrors) -> Self {
        let mut images = OfferedImages {
            offer: Arc::new(offer.clone()),
            own: offer,
            added_releases: Vec::new(),
            added_os_images: None,
            content: RegistryContent::default(),
            mirrored: sources(&mirrors),
        };
        images.combine();
        Self {
            images: RwLock::new(images),
            file,
            mirrors,
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

    /// Offers `added` beside the release images of the settings.
    pub(super) fn set_added_releases(&self, added: Vec<ReleaseImage>) {
        if self.images().added_releases != added {
            self.change(|images| images.added_releases = added);
        }
    }

    /// Offers `added` beside the OS images of the settings.
    pub(super) fn set_added_os_images(&self, added: Vec<AddedOsImage>) {
        if self.images().added_os_images.as_ref() != Some(&added) {
            self.change(|images| images.added_os_images = Some(added));
        }
    }

    /// Offers the content of the registry, as far as the settings list nothing else.
    pub(super) fn set_content(&self, content: &RegistryContent) {
        if self.images().content == *content {
            return;
        }
        // Before the releases, whose images are there.
        if let Err(error) = self.mirrors.set_found(&mirrors(content)) {
            let error = error.chain();
            tracing::warn!(
                error,
                "the file of REGISTRIES_CONF_PATH stays alone: write its entries as [[registry]], else it has to name \
                 the registry of the site as a mirror"
            );
        }
        self.change(|images| {
            images.content = content.clone();
            images.mirrored = sources(&self.mirrors);
        });
    }

    /// The OS images of the registry that are on offer.
    pub(super) fn held_os_images(&self) -> Vec<AddedOsImage> {
        self.images().held_os_images()
    }

    /// Content of the registry.
    pub(super) fn content(&self) -> RegistryContent {
        self.images().content.clone()
    }

    /// The OS images beside those of the settings, which image services provide, too.
    ///
    /// Errors: Unavailable – they were not read yet.
    pub(crate) fn other_os_images(&self) -> Result<Vec<AddedOsImage>, Error> {
        let images = self.images();
        if images.added_os_images.is_none() {
            return Err(Error::Unavailable {
                what: "the list of OS images",
                source: None,
            });
        }
        Ok(images.other_os_images())
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
