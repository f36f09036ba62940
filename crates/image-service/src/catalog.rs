//! Catalog of OS images, and the base image of each.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use model::Error;
use tokio::sync::{OnceCell, watch};

use crate::download::DownloadProgress;
use crate::image::{BaseImage, nmstatectl_archive};
use crate::os_image::{FULL_ISO, OsImage, normalised_architecture};

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
    /// Its stream; empty when unknown.
    pub(crate) os_stream: String,
    /// It is populated once this is set: images of other streams than the default one, when a client requests them.
    wanted: watch::Sender<bool>,
    /// Of the download that runs.
    pub(crate) progress: DownloadProgress,
    /// An attempt to populate it has failed.
    pub(crate) has_failed: AtomicBool,
    state: RwLock<Option<Arc<BaseImage>>>,
    /// Archive with its `nmstatectl`, once a network boot has needed it. Units: some megabytes.
    nmstatectl: OnceCell<Bytes>,
}

impl CatalogImage {
    fn new(image: &OsImage) -> Self {
        Self {
            version: image.version.clone(),
            architecture: image.cpu_architecture.clone(),
            url: image.url.clone(),
            sha256: image.sha256.to_ascii_lowercase(),
            os_stream: image.os_stream.clone(),
            wanted: watch::Sender::new(false),
            progress: DownloadProgress::default(),
            has_failed: AtomicBool::new(false),
            state: RwLock::default(),
            nmstatectl: OnceCell::new(),
        }
    }

    /// Whether both are the same image from the same place.
    fn is_like(&self, other: &Self) -> bool {
        self.version == other.version
            && self.architecture == other.architecture
            && self.url == other.url
            && self.sha256 == other.sha256
            && self.os_stream == other.os_stream
    }

    /// Has it populated.
    pub(crate) fn want(&self) {
        self.wanted
            .send_if_modified(|is_wanted| !std::mem::replace(is_wanted, true));
    }

    pub(crate) fn is_wanted(&self) -> bool {
        *self.wanted.borrow()
    }

    /// Waits for [`Self::want`].
    pub(crate) async fn wanted(&self) {
        // Its sender is in this image.
        let _ = self
            .wanted
            .subscribe()
            .wait_for(|is_wanted| *is_wanted)
            .await;
    }

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

    /// The image, which is populated from now on at the latest.
    ///
    /// Errors: `Unavailable` while it is not populated.
    pub(crate) fn ready(&self) -> Result<Arc<BaseImage>, Error> {
        self.want();
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

/// The OS images on offer. They may change while the service runs.
#[derive(Debug)]
pub(crate) struct ImageCatalog {
    offer: RwLock<Arc<OfferedImages>>,
}

#[derive(Debug, Default)]
struct OfferedImages {
    entries: Vec<(OsImage, Arc<CatalogImage>)>,
    bases: Vec<Arc<CatalogImage>>,
}

impl OfferedImages {
    /// Images that are in `known` already stay as they are.
    fn new(images: &[OsImage], known: &Self) -> Self {
        let mut offer = Self::default();
        for image in images.iter().filter(|image| image.kind == FULL_ISO) {
            let mut image = image.clone();
            let architecture = normalised_architecture(&image.cpu_architecture);
            image.cpu_architecture = String::from(architecture);
            let is_same = |base: &&Arc<CatalogImage>| {
                base.version == image.version && base.architecture == image.cpu_architecture
            };
            let is_other_stream = offer.entries.iter().any(|(default, _)| {
                default.openshift_version == image.openshift_version
                    && default.cpu_architecture == image.cpu_architecture
            });
            let base = offer.bases.iter().find(is_same).cloned();
            let base = base.unwrap_or_else(|| {
                let base = CatalogImage::new(&image);
                let known = known.bases.iter().find(|known| known.is_like(&base));
                let base = known.cloned().unwrap_or_else(|| Arc::new(base));
                offer.bases.push(Arc::clone(&base));
                base
            });
            if !is_other_stream {
                base.want();
            }
            offer.entries.push((image, base));
        }
        offer
    }
}

impl ImageCatalog {
    pub(crate) fn new(images: &[OsImage]) -> Self {
        let offer = OfferedImages::new(images, &OfferedImages::default());
        Self {
            offer: RwLock::new(Arc::new(offer)),
        }
    }

    /// Offers other images; unchanged ones stay populated.
    pub(crate) fn replace(&self, images: &[OsImage]) {
        let offer = OfferedImages::new(images, &self.offer());
        *self.offer.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(offer);
    }

    fn offer(&self) -> Arc<OfferedImages> {
        Arc::clone(&self.offer.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The base images, each once.
    pub(crate) fn bases(&self) -> Vec<Arc<CatalogImage>> {
        self.offer().bases.clone()
    }

    /// Wanted images that are not populated yet, each with the progress of its download.
    pub(crate) fn waiting(&self) -> Vec<String> {
        let offer = self.offer();
        let waiting = offer.bases.iter();
        let waiting = waiting.filter(|base| base.is_wanted() && !base.is_ready());
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
    ) -> Result<Arc<CatalogImage>, Error> {
        let architecture = normalised_architecture(architecture);
        let offer = self.offer();
        let of_architecture = || {
            let entries = offer.entries.iter();
            entries.filter(|(image, _)| image.cpu_architecture == architecture)
        };
        let entry = of_architecture()
            .find(|(image, _)| image.version == version)
            .or_else(|| of_architecture().find(|(image, _)| image.openshift_version == version));
        let Some((_, base)) = entry else {
            let known: Vec<_> = offer
                .entries
                .iter()
                .map(|(image, _)| format!("{} {}", image.openshift_version, image.cpu_architecture))
                .collect();
            let id = format!("{version} {architecture} (on offer: {})", known.join(", "));
            return Err(Error::not_found("OS image", id));
        };
        Ok(Arc::clone(base))
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
            os_stream: String::new(),
        }
    }

    #[test]
    fn entries_are_found_by_either_version() {
        let catalog = ImageCatalog::new(&[
            entry("4.18", "x86_64", "418.94.1"),
            entry("4.18.3", "x86_64", "418.94.1"),
            entry("4.18", "aarch64", "418.94.1"),
        ]);
        assert_eq!(catalog.bases().len(), 2);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.iso");
        testkit::iso::write(&path, &testkit::iso::LiveImageOptions::small()).unwrap();
        let missing = catalog.image("4.18", "arm64").unwrap_err();
        assert!(matches!(missing, Error::Unavailable { .. }));
        catalog.bases()[0].set(BaseImage::open(&path).unwrap());
        for version in ["4.18", "4.18.3", "418.94.1"] {
            assert!(catalog.image(version, "x86_64").is_ok(), "{version}");
        }
        let unknown = catalog.image("4.18.4", "x86_64").unwrap_err();
        assert!(unknown.to_string().contains("4.18.3 x86_64"), "{unknown}");
    }

    #[test]
    fn other_streams_are_found_by_their_versions_and_wait_for_a_request() {
        let mut ten = entry("5.0", "x86_64", "10.0");
        ten.os_stream = "rhel-10".to_owned();
        let images = [entry("5.0", "x86_64", "9.6"), ten];
        let catalog = ImageCatalog::new(&images);
        let default = catalog.entry("5.0", "x86_64").unwrap();
        let other = catalog.entry("10.0", "x86_64").unwrap();
        assert_eq!((&*default.version, &*other.version), ("9.6", "10.0"));
        assert_eq!((default.is_wanted(), other.is_wanted()), (true, false));
        assert_eq!(catalog.waiting(), ["9.6 x86_64"]);
        other.want();
        assert_eq!(catalog.waiting().len(), 2);
        catalog.replace(&images);
        assert!(catalog.entry("10.0", "x86_64").unwrap().is_wanted());
    }

    #[test]
    fn unchanged_images_stay_when_the_offer_changes() {
        let images = |versions: &[&str]| -> Vec<_> {
            let entries = versions.iter();
            entries
                .map(|version| entry(version, "x86_64", version))
                .collect()
        };
        let catalog = ImageCatalog::new(&images(&["1", "2"]));
        let before = catalog.bases();
        let mut changed = images(&["2", "3"]);
        catalog.replace(&changed);
        let after = catalog.bases();
        assert!(Arc::ptr_eq(&before[1], &after[0]), "kept");
        assert!(catalog.entry("1", "x86_64").is_err(), "removed");
        assert!(catalog.entry("3", "x86_64").is_ok(), "added");
        changed[0].sha256 = "00".repeat(32);
        catalog.replace(&changed);
        assert!(
            !Arc::ptr_eq(&after[0], &catalog.bases()[0]),
            "another image"
        );
        assert!(Arc::ptr_eq(&after[1], &catalog.bases()[1]));
    }
}
