//! OS images on offer: those of the settings, and those that the installer API found in the registry.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::installer_api::InstallerApi;
use crate::os_image::{OsImage, os_image_problems};

/// Time between two looks at the images of the API.
const INTERVAL: Duration = Duration::from_secs(5);
/// The same while clients ask for images that are not on offer.
const SHORT_INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait of such a client for a look.
const LOOK_TIMEOUT: Duration = Duration::from_secs(3);

/// Looks at the images of the API that do not wait for the interval: a release may have been published a moment ago.
#[derive(Debug, Default)]
pub(crate) struct OfferLooks {
    wanted: Notify,
    done: watch::Sender<u64>,
}

impl OfferLooks {
    /// Waits until the offer is that of the installer API, or the API does not respond in time.
    pub(crate) async fn look(&self) {
        let mut done = self.done.subscribe();
        self.wanted.notify_one();
        let _ = tokio::time::timeout(LOOK_TIMEOUT, done.changed()).await;
    }

    fn has_looked(&self) {
        self.done
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Waits for the next look.
    async fn due(&self) {
        tokio::time::sleep(SHORT_INTERVAL).await;
        tokio::select! {
            () = tokio::time::sleep(INTERVAL.saturating_sub(SHORT_INTERVAL)) => {}
            () = self.wanted.notified() => {}
        }
    }
}

/// The OS images of this moment.
#[derive(Debug)]
pub(crate) struct ImageOffer {
    /// Of the settings.
    own: Vec<OsImage>,
    api: InstallerApi,
    looks: Arc<OfferLooks>,
    /// Of the API; none until it has responded.
    found: Option<Vec<OsImage>>,
}

impl ImageOffer {
    pub(crate) fn new(own: &[OsImage], api: InstallerApi, looks: Arc<OfferLooks>) -> Self {
        Self {
            own: own.to_vec(),
            api,
            looks,
            found: None,
        }
    }

    /// All images, own ones first. Sound entries alone: the API has checked the others for itself.
    pub(crate) fn images(&self) -> Vec<OsImage> {
        let mut images = self.own.clone();
        for image in self.found.iter().flatten() {
            images.push(image.clone());
            if !os_image_problems(&images).is_empty() {
                images.pop();
            }
        }
        images
    }

    /// Whether the images of the API are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.found.is_some()
    }

    /// The images on offer are those of the last look.
    pub(crate) fn is_applied(&self) {
        self.looks.has_looked();
    }

    /// Waits until other images are on offer, or those of the API are known.
    pub(crate) async fn changed(&mut self) {
        let found = changed_images(&self.api, &self.looks, self.found.as_deref());
        self.found = Some(found.await);
    }
}

/// Waits until the images of the API are others than `known`.
async fn changed_images(
    api: &InstallerApi,
    looks: &OfferLooks,
    known: Option<&[OsImage]>,
) -> Vec<OsImage> {
    let mut is_known = known.is_some();
    loop {
        if is_known {
            looks.due().await;
        }
        is_known = true;
        match api.os_images().await {
            Ok(Some(images)) if known != Some(&images) => return images,
            // Another installer's. An API that had the path is an older replica, or behind a proxy that fails.
            Ok(None) if known.is_none() => return Vec::new(),
            Ok(_) => looks.has_looked(),
            Err(error) => {
                let error = error.chain();
                tracing::debug!(
                    error,
                    "OS images of the installer API not read, the previous ones stay"
                );
                looks.has_looked();
            }
        }
    }
}
