//! Release payloads: the components in a release image.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use model::Error;
use model::image_set::PlatformSelection as Wish;
use model::release_payload::{
    BOOT_IMAGES, BootImageManifest, IMAGE_REFERENCES, ImageReferences, OsStream,
};
use oci::live_image::architecture_of;
use oci::{Digest, Kind, Platform, Reference};
use oci_client::Client;
use oci_client::image::{ImageFile, fetch_files};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::live_image::{BootArchitectures, LiveImage};
use super::select::wished_architectures;

/// The version.
const METADATA: &str = "release-manifests/release-metadata";
/// Metadata key that overrides the image's architecture: that of multi-architecture releases.
const ARCHITECTURE: &str = "release.openshift.io/architecture";
/// Component with the disk image of virtual machines. Source: the peer.
const DISK_IMAGE: &str = "kube-virt-container";
/// For which architectures there are any, as Go names them, and as releases do. Source: the peer.
const DISK_ARCHITECTURES: [(&str, &str); 2] = [("amd64", "x86_64"), ("s390x", "s390x")];
/// Units: bytes. The longest of these files takes half of one percent of it.
const FILE_LIMIT_BYTES: u64 = 64 << 20;

/// A release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Payload {
    /// Its image by digest: an index, or one image.
    pub(super) image: Reference,
    pub(super) digest: Digest,
    pub(super) version: String,
    /// As the tags of releases name it: `x86_64`, `aarch64`, `multi`.
    pub(super) architecture: String,
    /// The images of its components, by name.
    pub(super) components: Vec<(String, Reference)>,
    /// Selected live images.
    pub(super) boot_images: Vec<LiveImage>,
    /// Architectures without one.
    pub(super) missing_boot_images: Vec<String>,
    /// The manifests that were read, by path: the references, and with disk images the boot images.
    pub(super) manifests: Vec<(&'static str, Bytes)>,
}

#[derive(Deserialize)]
struct ReleaseMetadata {
    version: String,
    #[serde(default)]
    metadata: BTreeMap<String, Value>,
}

/// The components of a release and their images, from its file with [`IMAGE_REFERENCES`].
///
/// Errors: it is malformed, or names none.
pub(crate) fn components(references: &[u8]) -> Result<Vec<(String, Reference)>, String> {
    let component = |(name, image): (String, String)| {
        let image = image.parse().map_err(|e: Error| format!("{name}: {e}"))?;
        Ok((name, image))
    };
    let images = ImageReferences::parse(references)?.images;
    images.into_iter().map(component).collect()
}

/// Reads the payload of a release. `wish` selects its disk images, `boot` its live images.
///
/// Errors: NotFound – no such image; Invalid – it is no release; others as the client's.
pub(super) async fn read(
    client: &Client,
    release: &Reference,
    wish: &Wish,
    boot: Option<&BootArchitectures>,
    scratch: &Path,
) -> Result<Payload, Error> {
    let folder = tempfile::Builder::new()
        .prefix("release-")
        .tempdir_in(scratch)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let opened = OpenedRelease::open(client, release, folder.path()).await?;
    let read = opened.files([IMAGE_REFERENCES, METADATA]).await;
    let [references, metadata] = read.map_err(|error| opened.incomplete(error))?;
    let metadata: ReleaseMetadata = opened.json(METADATA, &metadata)?;
    let components = components(&references);
    let mut components = components.map_err(|reason| opened.wrong(IMAGE_REFERENCES, reason))?;
    let mut manifests = vec![(IMAGE_REFERENCES, references.into())];
    if wish.kube_virt_container {
        let read = opened.boot_images().await;
        let (config_map, streams) = read.map_err(|error| opened.incomplete(error))?;
        components.extend(opened.disk_images(&streams, wish)?);
        manifests.push((BOOT_IMAGES, config_map));
    }
    let (boot_images, missing_boot_images) = match boot {
        Some(boot) => opened.live_images(boot).await?,
        None => Default::default(),
    };
    let architecture = match metadata.metadata.get(ARCHITECTURE).and_then(Value::as_str) {
        Some(own) => own.to_owned(),
        None => opened.architecture().await?,
    };
    Ok(Payload {
        image: release.with_digest(opened.digest.clone()),
        digest: opened.digest,
        version: metadata.version,
        architecture,
        components,
        boot_images,
        missing_boot_images,
        manifests,
    })
}

/// The image of a release: of an index, its first one, since these files are the same in all.
struct OpenedRelease<'a> {
    client: &'a Client,
    /// One image by digest.
    image: Reference,
    /// Digest of the release: an index, or one image.
    digest: Digest,
    folder: &'a Path,
}

impl<'a> OpenedRelease<'a> {
    async fn open(
        client: &'a Client,
        release: &Reference,
        folder: &'a Path,
    ) -> Result<Self, Error> {
        let manifest = client.pull_manifest(release).await?;
        let digest = manifest.digest.clone();
        let image = match &manifest.kind {
            Kind::Index { manifests } => {
                let first = manifests.first();
                let first = first.ok_or_else(|| {
                    Error::invalid("release", format!("{release} is an empty index"))
                })?;
                first.digest.clone()
            }
            Kind::Image { .. } | Kind::Schema1 { .. } => digest.clone(),
        };
        Ok(Self {
            client,
            image: release.with_digest(image),
            digest,
            folder,
        })
    }

    /// Reads files of the image.
    ///
    /// Errors: NotFound – one is missing; Invalid – one is too long; others as the client's.
    async fn files<const N: usize>(&self, paths: [&str; N]) -> Result<[Vec<u8>; N], Error> {
        let wanted = paths.map(|path| ImageFile {
            path: path.to_owned(),
            destination: self.folder.join(path.replace('/', "-")),
        });
        fetch_files(self.client, &self.image, &any(), &wanted).await?;
        let mut read = paths.map(|_| Vec::new());
        for ((wanted, path), bytes) in wanted.iter().zip(paths).zip(&mut read) {
            let failed = |e| Error::internal(format!("reading {path} of a release"), e);
            let file = tokio::fs::metadata(&wanted.destination);
            if file.await.map_err(failed)?.len() > FILE_LIMIT_BYTES {
                return Err(self.wrong(path, format!("it is longer than {FILE_LIMIT_BYTES} bytes")));
            }
            *bytes = tokio::fs::read(&wanted.destination).await.map_err(failed)?;
        }
        Ok(read)
    }

    /// The error of an image without a file that releases have.
    fn incomplete(&self, error: Error) -> Error {
        match error {
            Error::NotFound { kind, id } if kind != "image" => {
                let reason = format!("{id} is not in {}: it is no release", self.image);
                Error::invalid("release", reason)
            }
            other => other,
        }
    }

    fn json<T: DeserializeOwned>(&self, path: &str, bytes: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(bytes).map_err(|e| self.wrong(path, e))
    }

    /// The manifest with the release's disk images, and the streams in it.
    ///
    /// Errors: as [`Self::files`].
    async fn boot_images(&self) -> Result<(Bytes, Vec<OsStream>), Error> {
        let wrong = |reason: String| self.wrong(BOOT_IMAGES, reason);
        let [config_map] = self.files([BOOT_IMAGES]).await?;
        let text = str::from_utf8(&config_map).map_err(|e| wrong(e.to_string()))?;
        let parsed: BootImageManifest =
            serde_yaml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        let streams = parsed.data.all().map_err(wrong)?;
        Ok((config_map.into(), streams))
    }

    /// The live images, and the architectures without one; all, in a release without the metadata.
    async fn live_images(
        &self,
        boot: &BootArchitectures,
    ) -> Result<(Vec<LiveImage>, Vec<String>), Error> {
        let streams = match self.boot_images().await {
            Err(Error::NotFound { kind: "file", .. }) => Vec::new(),
            read => read?.1,
        };
        let images = boot.images(&streams);
        images.map_err(|reason| self.wrong(BOOT_IMAGES, reason))
    }

    /// The disk images of virtual machines in the default stream, for those selected architectures that have any.
    fn disk_images(
        &self,
        streams: &[OsStream],
        wish: &Wish,
    ) -> Result<Vec<(String, Reference)>, Error> {
        let wrong = |reason: String| self.wrong(BOOT_IMAGES, reason);
        let asked = disk_architectures(wish);
        let mut images = Vec::new();
        let stream = streams.first().map_or(&Value::Null, |it| &it.metadata);
        for architecture in &asked {
            let image = &stream["architectures"][architecture]["images"]["kubevirt"]["digest-ref"];
            let Some(image) = image.as_str() else {
                continue;
            };
            let image = image.parse().map_err(|e: Error| wrong(e.to_string()))?;
            let name = match asked.as_slice() {
                [_] => DISK_IMAGE.to_owned(),
                _ => format!("{DISK_IMAGE}-{architecture}"),
            };
            images.push((name, image));
        }
        if images.is_empty() {
            let asked = asked.join(", ");
            return Err(wrong(format!(
                "it has no disk image of KubeVirt for {asked}: leave kubeVirtContainer out"
            )));
        }
        Ok(images)
    }

    async fn architecture(&self) -> Result<String, Error> {
        let config = oci_client::image::config(self.client, &self.image, &any()).await?;
        match config["architecture"].as_str() {
            Some(own) if !own.is_empty() => Ok(architecture_of(own).to_owned()),
            _ => {
                let reason = format!("{} does not say its architecture", self.image);
                Err(Error::invalid("release", reason))
            }
        }
    }

    fn wrong(&self, path: &str, reason: impl std::fmt::Display) -> Error {
        Error::invalid("release", format!("{path} of {}: {reason}", self.image))
    }
}

/// Nothing is chosen by it: the image is named by digest, and no index.
fn any() -> Platform {
    Platform::linux("")
}

fn disk_architectures(wish: &Wish) -> Vec<&'static str> {
    let asked = wished_architectures(wish);
    let known = DISK_ARCHITECTURES.iter();
    let is_asked = |(go, _): &&(&str, &str)| asked.iter().any(|it| it == go || it == "multi");
    known.filter(is_asked).map(|(_, own)| *own).collect()
}
