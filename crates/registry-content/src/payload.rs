//! Reading of one payload: its images, its architectures, its boot images.

use std::collections::BTreeSet;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use model::Error;
use model::release_payload::{
    BOOT_IMAGES, BootImageManifest, IMAGE_REFERENCES, ImageReferences, OsStream,
};
use model::versions::CpuArchitecture;
use oci::{Kind, Platform, Reference};
use oci_client::Client;
use oci_client::image::{self, FileContent, FileVisitor, visit_files};
use serde_json::Value;

use crate::places::places;
use crate::{HeldBootImage, HeldMirror, HeldRelease, MissingImage};

/// Label with the version.
const RELEASE: &str = "io.openshift.release";
/// Component with the live images.
const LIVE_IMAGES: &str = "machine-os-images";
/// Images of a release that are looked for at a time.
const CONCURRENT: usize = 8;
/// Longest file of a payload that is read. Units: bytes.
const FILE_BYTES: u64 = 4 << 20;
/// Longest configuration. Units: bytes.
const CONFIG_BYTES: u64 = 1 << 20;
/// Longest name or reference of an image, and version of an operating system. Units: bytes.
pub(crate) const TEXT_BYTES: usize = 255;
/// Characters of a label that a reason shows: it is text of whichever client pushed it.
const SHOWN: usize = 64;
/// Repositories that a release is mirrored from at most; real ones have a handful. Each discovery image lists those of all
/// releases, and has little room.
const MAX_MIRRORS: usize = 100;
/// Images of a release at most; releases have some two hundred.
const MAX_IMAGES: usize = 1_000;

/// An image that has the tag of a release.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    pub(crate) image: Reference,
    pub(crate) digest: String,
    pub(crate) version: String,
    pub(crate) architecture: CpuArchitecture,
}

/// Files of a payload that are read.
#[derive(Debug, Default)]
struct PayloadFiles {
    references: Option<Vec<u8>>,
    boot_images: Option<Vec<u8>>,
}

impl FileVisitor for PayloadFiles {
    fn file(&mut self, path: &str, content: &mut FileContent<'_>) -> Result<(), Error> {
        if content.size() > FILE_BYTES {
            let reason = format!("{path} is longer than {FILE_BYTES} bytes");
            return Err(Error::invalid("release", reason));
        }
        let mut read = Vec::new();
        while let Some(chunk) = content.next_chunk()? {
            read.extend_from_slice(&chunk);
        }
        match path {
            IMAGE_REFERENCES => self.references = Some(read),
            _ => self.boot_images = Some(read),
        }
        Ok(())
    }

    /// The other file is in the same layer.
    fn is_complete(&self) -> bool {
        self.references.is_some()
    }
}

/// Images of a release after a search.
#[derive(Debug, Default)]
pub(crate) struct SoughtImages {
    /// Those that are in none of their places.
    pub(crate) missing: Vec<MissingImage>,
    /// Places of the others.
    pub(crate) mirrors: BTreeSet<HeldMirror>,
}

/// Reader of payloads in one registry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PayloadReader<'a> {
    pub(crate) client: &'a Client,
    pub(crate) namespace: &'a str,
}

/// Names of an architecture: of the API, of streams, of images.
fn names(architecture: &str) -> Option<(&'static str, &'static str, &'static str)> {
    Some(match architecture {
        "x86_64" | "amd64" => ("x86_64", "x86_64", "amd64"),
        "arm64" | "aarch64" => ("arm64", "aarch64", "arm64"),
        "ppc64le" => ("ppc64le", "ppc64le", "ppc64le"),
        "s390x" => ("s390x", "s390x", "s390x"),
        _ => return None,
    })
}

impl PayloadReader<'_> {
    /// Reads the release of a candidate.
    ///
    /// Errors: Invalid – it is no release of that version; NotFound – it lacks a file; those of the registry.
    pub(crate) async fn release(&self, candidate: &Candidate) -> Result<HeldRelease, Error> {
        let architectures = self.architectures(candidate).await?;
        let Some((_, _, first)) = architectures.first().and_then(|it| names(it)) else {
            return Err(wrong("it is for no architecture that is known here"));
        };
        let platform = Platform::linux(first);
        let files = self.files(candidate, &platform).await?;
        let references = files
            .references
            .ok_or_else(|| wrong(&format!("it has no file {IMAGE_REFERENCES}")))?;
        let references = ImageReferences::parse(&references);
        let references = references.map_err(|why| wrong(&format!("{IMAGE_REFERENCES}: {why}")))?;
        if references.images.len() > MAX_IMAGES {
            let reason = format!("it names more than {MAX_IMAGES} images");
            return Err(wrong(&reason));
        }
        let mut texts = references
            .images
            .iter()
            .flat_map(|(name, image)| [name, image]);
        if texts.any(|text| text.len() > TEXT_BYTES) {
            let reason = format!("a name or a reference in it is longer than {TEXT_BYTES} bytes");
            return Err(wrong(&reason));
        }
        let images = references.images.iter();
        let images = images.map(|(component, image)| MissingImage {
            component: component.clone(),
            image: image.clone(),
        });
        let SoughtImages { missing, mirrors } =
            self.sought(&candidate.image, images.collect()).await?;
        check_mirrors(&mirrors)?;
        let streams = match files.boot_images {
            Some(yaml) => os_streams(&yaml).map_err(|why| wrong(&why))?,
            None => Vec::new(),
        };
        let boot_images = self.boot_images(candidate, &streams, &references, &architectures);
        let boot_images = boot_images.await?;
        Ok(HeldRelease {
            image: candidate.image.to_string(),
            digest: candidate.digest.clone(),
            version: candidate.version.clone(),
            architectures,
            is_multi: candidate.architecture == CpuArchitecture::Multi,
            // The tags of the repository say so.
            is_signed: false,
            images: references.images.len(),
            missing,
            boot_images,
            mirrors,
        })
    }

    /// Architectures as the API names them: that of the tag, or those of the index.
    async fn architectures(&self, candidate: &Candidate) -> Result<Vec<String>, Error> {
        if candidate.architecture != CpuArchitecture::Multi {
            return Ok(vec![candidate.architecture.to_string()]);
        }
        let manifest = self.client.pull_manifest(&candidate.image).await?;
        let Kind::Index { manifests } = manifest.kind else {
            return Err(wrong(
                "its tag is that of several architectures, but it is no index",
            ));
        };
        let platforms = manifests.iter().filter_map(|it| it.platform.as_ref());
        let known = platforms.filter_map(|it| names(&it.architecture));
        let mut found: Vec<String> = known.map(|(api, _, _)| api.to_owned()).collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Checks the label of a candidate, and reads its files.
    async fn files(
        &self,
        candidate: &Candidate,
        platform: &Platform,
    ) -> Result<PayloadFiles, Error> {
        let image = &candidate.image;
        let manifest = image::resolve(self.client, image, platform).await?;
        let Kind::Image { config, layers, .. } = &manifest.kind else {
            return Err(wrong("it is no image"));
        };
        let config = self.client.pull_blob_bytes(image, config, CONFIG_BYTES);
        let config: Value = serde_json::from_slice(&config.await?)
            .map_err(|error| wrong(&format!("its configuration: {error}")))?;
        let wanted = platform.architecture.as_str();
        let known = config["architecture"].as_str().and_then(names);
        if let Some((_, _, built_for)) = known.filter(|it| it.2 != wanted) {
            let reason = format!("it is built for {built_for}, not for {wanted}");
            return Err(wrong(&reason));
        }
        let label = config["config"]["Labels"][RELEASE].as_str();
        let label = label.unwrap_or_default();
        if label.trim_end_matches("-multi") != candidate.version {
            let (version, shown) = (&candidate.version, label.chars().take(SHOWN));
            let shown: String = shown.collect();
            let reason = format!("its label {RELEASE} is {shown:?}, not {version:?}");
            return Err(wrong(&reason));
        }
        let wanted = [IMAGE_REFERENCES, BOOT_IMAGES].map(str::to_owned);
        visit_files(self.client, image, layers, wanted, PayloadFiles::default()).await
    }

    /// Looks for images of a release in all their places.
    pub(crate) async fn sought(
        &self,
        release: &Reference,
        images: Vec<MissingImage>,
    ) -> Result<SoughtImages, Error> {
        let look = |one: MissingImage| async move {
            let place = self.place(&one.image, release).await?;
            Ok::<_, Error>((one, place))
        };
        let looked: Vec<_> = images.into_iter().map(look).collect();
        let looked: Vec<_> = stream::iter(looked)
            .buffered(CONCURRENT)
            .try_collect()
            .await?;
        let mut sought = SoughtImages::default();
        for (image, place) in looked {
            match place {
                Some(place) => sought.mirrors.extend(HeldMirror::of(&image.image, &place)),
                None => sought.missing.push(image),
            }
        }
        Ok(sought)
    }

    /// The first place of an image that has it.
    async fn place(&self, image: &str, release: &Reference) -> Result<Option<Reference>, Error> {
        let Ok(image) = image.parse::<Reference>() else {
            return Ok(None);
        };
        for place in places(&image, release, self.namespace) {
            match self.client.manifest_digest(&place).await {
                Ok(Some(_)) => return Ok(Some(place)),
                Ok(None) => {}
                Err(error) if is_closed(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The versions that the payload's streams name, with the live images in the payload's component.
    async fn boot_images(
        &self,
        candidate: &Candidate,
        streams: &[OsStream],
        references: &ImageReferences,
        architectures: &[String],
    ) -> Result<Vec<HeldBootImage>, Error> {
        let place = match references.image(LIVE_IMAGES) {
            Some(image) => self.place(image, &candidate.image).await?,
            None => None,
        };
        let place = place.map(|place| place.to_string()).unwrap_or_default();
        let named = architectures.iter().filter_map(|it| names(it));
        let all = named.flat_map(|it| streams.iter().map(move |stream| (it, stream)));
        let found = all.filter_map(|((api, in_stream, _), stream)| {
            let metal = &stream.metadata["architectures"][in_stream]["artifacts"]["metal"];
            let version = metal["release"].as_str()?;
            (version.len() <= TEXT_BYTES).then(|| HeldBootImage {
                architecture: api.to_owned(),
                stream: stream.name.clone(),
                version: version.to_owned(),
                image: place.clone(),
            })
        });
        Ok(found.collect())
    }
}

/// The streams of a release, the default one first.
fn os_streams(yaml: &[u8]) -> Result<Vec<OsStream>, String> {
    let why = |reason: String| format!("{BOOT_IMAGES}: {reason}");
    let text = std::str::from_utf8(yaml).map_err(|e| why(e.to_string()))?;
    let manifest = serde_yaml::from_str::<BootImageManifest>(text);
    let manifest = manifest.map_err(|e| why(e.to_string()))?;
    manifest.data.all().map_err(why)
}

/// Whether a repository is not this server's to read. Many registries answer so for repositories that they do not have.
pub(crate) fn is_closed(error: &Error) -> bool {
    matches!(
        error,
        Error::Unauthenticated { .. } | Error::Forbidden { .. }
    )
}

/// Errors: Invalid – more than discovery images have room for.
fn check_mirrors(mirrors: &BTreeSet<HeldMirror>) -> Result<(), Error> {
    if mirrors.len() <= MAX_MIRRORS {
        return Ok(());
    }
    Err(wrong(&format!(
        "its images are of more than {MAX_MIRRORS} repositories"
    )))
}

fn wrong(reason: &str) -> Error {
    Error::invalid("release", reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_mirrored_from_so_many_repositories() {
        let mirrors = |count: usize| {
            let mirror = |number: usize| HeldMirror {
                source: format!("quay.example/{number}"),
                mirror: "r:5000/openshift/release".to_owned(),
            };
            (0..count).map(mirror).collect()
        };
        assert!(check_mirrors(&mirrors(MAX_MIRRORS)).is_ok());
        assert!(check_mirrors(&mirrors(MAX_MIRRORS + 1)).is_err());
    }
}
