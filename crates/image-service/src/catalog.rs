//! Catalog of OS images, and the base image of each.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use model::Error;
use tokio::sync::OnceCell;

use crate::download::DownloadProgress;
use crate::image::{BaseImage, nmstatectl_archive};
use crate::settings::{FULL_ISO, OsImage, normalised_architecture};

/// A base image that several entries may share.
#[derive(Debug)]
pub(crate) struct CatalogImage {
    /// Version of the operating system.
    pub(crate) version: String,
    pub(crate) architecture: String,
    /// URL of the download; may be empty.
    pub(crate) url: String,
    /// Its SHA-256 in hexadecimal; empty when unknown.
    pub(crate) sha256: String,
    /// Of the download that runs.
    pub(crate) progress: DownloadProgress,
    state: RwLock<Option<Arc<BaseImage>>>,
    /// Archive with its `nmstatectl`, once a network boot has needed it. Units: some megabytes.
    nmstatectl: OnceCell<Bytes>,
}

impl CatalogImage {
    /// The archive with `nmstatectl`: the file of that name in `folder`, else out of the root file system.
    ///
    /// Errors: `Unavailable` – neither; the remedy is the file.
    pub(crate) async fn nmstatectl(&self, folder: &Path) -> Result<Bytes, Error> {
        let file = folder.join(self.nmstatectl_name());
        let archive = self.nmstatectl.get_or_try_init(|| async {
            if let Ok(bytes) = tokio::fs::read(&file).await {
                return Ok(Bytes::from(bytes));
            }
            let Some(image) = self.get() else {
                return Err(io::ErrorKind::NotFound.into());
            };
            let extracted = tokio::task::spawn_blocking(move || nmstatectl_archive(&image)).await;
            extracted.map_err(io::Error::other)?
        });
        archive.await.cloned().map_err(|error| {
            let (file, error_text) = (file.display(), error.to_string());
            tracing::error!(
                error = error_text,
                "static networks of a network boot need nmstatectl, which cannot be taken out of the OS image; \
                 write a gzip-compressed cpio archive with /usr/bin/nmstatectl to {file}"
            );
            Error::unavailable("nmstatectl of the OS image", error)
        })
    }

    /// The file that a `file://` URL names.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let url = url::Url::parse(&self.url).ok()?;
        let url = Some(url).filter(|url| url.scheme() == "file")?;
        url.to_file_path().ok()
    }

    /// Name of the file with its `nmstatectl` in the data folder.
    pub(crate) fn nmstatectl_name(&self) -> String {
        format!("nmstatectl-{}-{}", self.version, self.architecture)
    }

    /// Name of its file in the data folder.
    pub(crate) fn file_name(&self) -> String {
        format!("rhcos-full-iso-{}-{}.iso", self.version, self.architecture)
    }

    pub(crate) fn set(&self, image: BaseImage) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(image));
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.get().is_some()
    }

    /// The image.
    ///
    /// Errors: `Unavailable` while it is not populated.
    pub(crate) fn ready(&self) -> Result<Arc<BaseImage>, Error> {
        self.get().ok_or(Error::Unavailable {
            what: "the OS image (it is being downloaded, or its download is retried)",
            source: None,
        })
    }

    fn get(&self) -> Option<Arc<BaseImage>> {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// All OS images.
#[derive(Debug, Default)]
pub(crate) struct ImageCatalog {
    entries: Vec<(OsImage, usize)>,
    pub(crate) bases: Vec<Arc<CatalogImage>>,
}

impl ImageCatalog {
    pub(crate) fn new(images: &[OsImage]) -> Self {
        let mut catalog = Self::default();
        for image in images.iter().filter(|image| image.kind == FULL_ISO) {
            let mut image = image.clone();
            let architecture = normalised_architecture(&image.cpu_architecture);
            image.cpu_architecture = String::from(architecture);
            let is_same = |base: &Arc<CatalogImage>| {
                base.version == image.version && base.architecture == image.cpu_architecture
            };
            let base = catalog.bases.iter().position(is_same).unwrap_or_else(|| {
                catalog.bases.push(Arc::new(CatalogImage {
                    version: image.version.clone(),
                    architecture: image.cpu_architecture.clone(),
                    url: image.url.clone(),
                    sha256: image.sha256.to_ascii_lowercase(),
                    progress: DownloadProgress::default(),
                    state: RwLock::default(),
                    nmstatectl: OnceCell::new(),
                }));
                catalog.bases.len() - 1
            });
            catalog.entries.push((image, base));
        }
        catalog
    }

    /// Images that are not populated yet, each with the progress of its download.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let waiting = self.bases.iter().filter(|base| !base.is_ready());
        waiting
            .map(|base| {
                let (version, architecture) = (&base.version, &base.architecture);
                format!("{version} {architecture}{}", base.progress)
            })
            .collect()
    }

    /// The image of an architecture: the first of that OS version, else the first of that platform version. Source:
    /// assisted-image-service; the text has to be equal.
    ///
    /// Errors: `NotFound` when there is no such entry, `Unavailable` while its image is not populated.
    pub(crate) fn image(&self, version: &str, architecture: &str) -> Result<Arc<BaseImage>, Error> {
        self.entry(version, architecture)?.ready()
    }

    /// The entry of an architecture, populated or not; as [`Self::image`].
    ///
    /// Errors: `NotFound`.
    pub(crate) fn entry(
        &self,
        version: &str,
        architecture: &str,
    ) -> Result<&Arc<CatalogImage>, Error> {
        let architecture = normalised_architecture(architecture);
        let of_architecture = || {
            let entries = self.entries.iter();
            entries.filter(|(image, _)| image.cpu_architecture == architecture)
        };
        let entry = of_architecture()
            .find(|(image, _)| image.version == version)
            .or_else(|| of_architecture().find(|(image, _)| image.openshift_version == version));
        let Some((_, base)) = entry else {
            let known: Vec<_> = self
                .entries
                .iter()
                .map(|(image, _)| format!("{} {}", image.openshift_version, image.cpu_architecture))
                .collect();
            let id = format!("{version} {architecture} (on offer: {})", known.join(", "));
            return Err(Error::not_found("OS image", id));
        };
        Ok(&self.bases[*base])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(platform: &str, architecture: &str, version: &str) -> OsImage {
        OsImage {
            openshift_version: platform.to_owned(),
            cpu_architecture: architecture.to_owned(),
            url: String::new(),
            sha256: String::new(),
            version: version.to_owned(),
            kind: FULL_ISO.to_owned(),
        }
    }

    #[test]
    fn entries_are_found_by_either_version() {
        let catalog = ImageCatalog::new(&[
            entry("4.18", "x86_64", "418.94.1"),
            entry("4.18.3", "x86_64", "418.94.1"),
            entry("4.18", "aarch64", "418.94.1"),
        ]);
        assert_eq!(catalog.bases.len(), 2);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.iso");
        testkit::iso::write(&path, &testkit::iso::LiveImageOptions::small()).unwrap();
        let missing = catalog.image("4.18", "arm64").unwrap_err();
        assert!(matches!(missing, Error::Unavailable { .. }));
        catalog.bases[0].set(BaseImage::open(&path).unwrap());
        for version in ["4.18", "4.18.3", "418.94.1"] {
            assert!(catalog.image(version, "x86_64").is_ok(), "{version}");
        }
        let unknown = catalog.image("4.18.4", "x86_64").unwrap_err();
        assert!(unknown.to_string().contains("4.18.3 x86_64"), "{unknown}");
    }
}
