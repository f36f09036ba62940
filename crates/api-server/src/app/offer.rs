//! Installable releases and images: those of the settings, with OS images that a file may change while the server runs.

use std::sync::{Arc, PoisonError, RwLock};

use concurrency::{BoxError, WatchedFile};
use model::versions::{OsImage, ReleaseImage};
use rules::Offer;
use service::CancellationToken;

use super::ApiServer;
use crate::settings::{OsImages, Settings};

/// The file of `OS_IMAGES_FILE`.
pub(crate) type OsImagesFile = WatchedFile<Vec<OsImage>>;

/// The offer of this moment.
#[derive(Debug)]
pub(crate) struct CurrentOffer {
    offer: RwLock<Arc<Offer>>,
    /// Release images of the settings.
    releases: Vec<ReleaseImage>,
    file: Option<OsImagesFile>,
}

impl CurrentOffer {
    /// The images of `file`, if there is one, replace those of `offer`.
    pub(crate) fn new(offer: Offer, file: Option<OsImagesFile>) -> Self {
        Self {
            releases: offer.releases.clone(),
            offer: RwLock::new(Arc::new(offer)),
            file,
        }
    }

    fn get(&self) -> Arc<Offer> {
        Arc::clone(&self.offer.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Offers `added` beside the release images of the settings. A default among them is the default of all.
    pub(super) fn set_added_releases(&self, added: Vec<ReleaseImage>) {
        let mut releases = self.releases.clone();
        if added.iter().any(|image| image.default) {
            for image in &mut releases {
                image.default = false;
            }
        }
        releases.extend(added);
        let mut offer = self.offer.write().unwrap_or_else(PoisonError::into_inner);
        if offer.releases != releases {
            *offer = Arc::new(Offer {
                releases,
                ..Offer::clone(&offer)
            });
        }
    }

    fn replace(&self, os_images: &[OsImage]) {
        let mut offer = self.offer.write().unwrap_or_else(PoisonError::into_inner);
        *offer = Arc::new(Offer {
            os_images: os_images.to_vec(),
            ..Offer::clone(&offer)
        });
    }

    /// Replaces the OS images whenever their file changes.
    pub(crate) async fn follow(&self, shutdown: &CancellationToken) {
        let Some(file) = &self.file else { return };
        let mut images = file.get().await;
        loop {
            self.replace(&images);
            match shutdown.run_until_cancelled(file.changed(&images)).await {
                Some(changed) => images = changed,
                None => return,
            }
        }
    }
}

impl ApiServer {
    /// Installable releases and images.
    pub(crate) fn offer(&self) -> Arc<Offer> {
        self.current_offer.get()
    }
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
