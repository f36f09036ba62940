//! OS images on offer: those of the settings or their file, and those that administrators added in the installer API.

use std::time::Duration;

use crate::installer_api::InstallerApi;
use crate::os_image::{OsImage, os_image_problems};
use crate::os_images_file::OsImagesFile;

/// Time between two looks at the added images.
const INTERVAL: Duration = Duration::from_secs(5);

/// The OS images of this moment.
#[derive(Debug)]
pub(crate) struct ImageOffer {
    /// Of the settings, unless there is a file.
    own: Vec<OsImage>,
    file: Option<OsImagesFile>,
    api: InstallerApi,
    /// None until the API has responded.
    added: Option<Vec<OsImage>>,
}

impl ImageOffer {
    pub(crate) fn new(own: &[OsImage], file: Option<OsImagesFile>, api: InstallerApi) -> Self {
        Self {
            own: own.to_vec(),
            file,
            api,
            added: None,
        }
    }

    /// All images, own ones first. Sound entries alone: the API has checked the added ones for itself.
    pub(crate) fn images(&self) -> Vec<OsImage> {
        let own = self.file.as_ref().map_or(&*self.own, OsImagesFile::images);
        let mut images = own.to_vec();
        for image in self.added.iter().flatten() {
            images.push(image.clone());
            if !os_image_problems(&images).is_empty() {
                images.pop();
            }
        }
        images
    }

    /// Whether the added images are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.added.is_some()
    }

    /// Waits until other images are on offer, or the added ones are known.
    pub(crate) async fn changed(&mut self) {
        let of_file = async {
            match &mut self.file {
                Some(file) => drop(file.changed().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = of_file => {}
            added = changed_images(&self.api, self.added.as_deref()) => self.added = Some(added),
        }
    }
}

/// Waits until the added images are others than `known`.
async fn changed_images(api: &InstallerApi, known: Option<&[OsImage]>) -> Vec<OsImage> {
    let mut is_known = known.is_some();
    loop {
        if is_known {
            tokio::time::sleep(INTERVAL).await;
        }
        is_known = true;
        match api.added_os_images().await {
            Ok(Some(images)) if known != Some(&images) => return images,
            // Another installer's. An API that had the path is an older replica, or behind a proxy that fails.
            Ok(None) if known.is_none() => return Vec::new(),
            Ok(_) => {}
            Err(error) => tracing::debug!(
                error = error.chain(),
                "added OS images not read, the previous ones stay"
            ),
        }
    }
}
