//! The file with the OS images on offer, which may change while the service runs.

use std::path::Path;
use std::sync::Arc;

use concurrency::{BoxError, WatchedFile};

use crate::os_image::{OsImage, os_image_problems};

/// The file and its last valid list.
#[derive(Debug)]
pub(crate) struct OsImagesFile {
    file: WatchedFile<Vec<OsImage>>,
    images: Arc<Vec<OsImage>>,
}

impl OsImagesFile {
    /// Errors: it cannot be read, or is no valid list.
    pub(crate) async fn open(path: &Path) -> Result<Self, BoxError> {
        let file = WatchedFile::open(path, parse_os_images).await?;
        let images = file.get().await;
        Ok(Self { file, images })
    }

    /// Its images.
    pub(crate) fn images(&self) -> &[OsImage] {
        &self.images
    }

    /// Waits until it has another valid list.
    pub(crate) async fn changed(&mut self) -> &[OsImage] {
        self.images = self.file.changed(&self.images).await;
        &self.images
    }
}

/// A valid list of OS images.
pub(crate) fn parse_os_images(json: &[u8]) -> Result<Vec<OsImage>, BoxError> {
    let images: Vec<OsImage> = serde_json::from_slice(json)
        .map_err(|error| format!("no JSON list of OS images: {error}"))?;
    match os_image_problems(&images).as_slice() {
        [] => Ok(images),
        problems => Err(problems.join("; ").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_lists_are_refused() {
        let list = r#"[{"openshift_version":"4.18","cpu_architecture":"x86_64","version":"418","url":""}]"#;
        assert_eq!(parse_os_images(list.as_bytes()).unwrap().len(), 1);
        let refused = |text: &str| parse_os_images(text.as_bytes()).unwrap_err().to_string();
        assert!(refused("[").contains("no JSON list"));
        let bad = refused(&list.replace("4.18", "4 18"));
        assert!(bad.contains("[0].openshift_version"), "{bad}");
    }
}
