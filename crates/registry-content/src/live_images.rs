//! Live images that are artifacts: those of mirroring runs, and those of a site for its minor versions.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::Error;
use oci::live_image::{image_layer, os_version, tag};
use oci::{Digest, Kind, Reference};
use oci_client::Client;

use crate::payload::TEXT_BYTES;
use crate::{HeldBootImage, HeldLiveImage, HeldRelease, RegistryContent};

/// Live images of a registry at most.
pub(crate) const MAX_LIVE_IMAGES: usize = 1_000;

/// Live images by their tags, with their repositories.
#[derive(Debug)]
pub(crate) struct LiveImages<'a>(BTreeMap<&'a str, (&'a str, &'a HeldLiveImage)>);

impl<'a> LiveImages<'a> {
    /// Those of a registry; of several with one tag, that of the shortest repository: of the registry's own namespace.
    pub(crate) fn of(content: &'a RegistryContent) -> Self {
        let images = content.live_images.iter();
        let images = images.filter_map(|(image, held)| {
            let (repository, tag) = image.rsplit_once(':')?;
            Some((tag, (repository, held)))
        });
        let mut images: Vec<_> = images.collect();
        images.sort_by_key(|(_, (repository, _))| Reverse(repository.len()));
        Self(images.into_iter().collect())
    }

    /// The live images for an architecture of a release, each of another version: that of the default stream first.
    /// Without it, there are none.
    pub(crate) fn find(
        &self,
        release: &HeldRelease,
        minor: &str,
        architecture: &str,
    ) -> Vec<HeldBootImage> {
        let systems = release.boot_images.iter();
        let mut systems = systems.filter(|it| it.architecture == architecture);
        let default = systems.next();
        let chosen = self.chosen(minor, architecture, default);
        let Some(first) = chosen.or_else(|| self.of_system(default?)) else {
            return Vec::new();
        };
        let mut found = vec![first];
        for other in systems.filter_map(|it| self.of_system(it)) {
            // Image services distinguish images by their versions.
            if found.iter().all(|known| known.version != other.version) {
                found.push(other);
            }
        }
        found
    }

    /// The live image that the site has chosen for a minor version, in place of that of the default stream.
    fn chosen(
        &self,
        minor: &str,
        architecture: &str,
        default: Option<&HeldBootImage>,
    ) -> Option<HeldBootImage> {
        let (image, held) = self.tagged(minor, architecture)?;
        let version = Some(held.version.as_str()).filter(|it| !it.is_empty());
        Some(HeldBootImage {
            architecture: architecture.to_owned(),
            stream: default.map(|it| it.stream.clone()).unwrap_or_default(),
            version: version.unwrap_or(minor).to_owned(),
            image,
        })
    }

    /// The live image of an operating system: that of a mirroring run before that in the payload.
    fn of_system(&self, system: &HeldBootImage) -> Option<HeldBootImage> {
        let tagged = self.tagged(&system.version, &system.architecture);
        let image = tagged.map_or_else(|| system.image.clone(), |(image, _)| image);
        (!image.is_empty()).then(|| HeldBootImage {
            image,
            ..system.clone()
        })
    }

    fn tagged(&self, version: &str, architecture: &str) -> Option<(String, &HeldLiveImage)> {
        let tag = tag(version, architecture).ok()?;
        let (repository, held) = self.0.get(tag.as_str())?;
        Some((format!("{repository}@{}", held.digest), *held))
    }
}

/// Reads the manifest of a live image.
///
/// Errors: Invalid – it is no artifact with one live image; those of the registry.
pub(crate) async fn read(
    client: &Client,
    image: &Reference,
    digest: &Digest,
) -> Result<HeldLiveImage, Error> {
    let wrong = |reason: &str| Error::invalid("live image", reason.to_owned());
    let image = image.with_digest(digest.clone());
    let Kind::Image { layers, .. } = client.pull_manifest(&image).await?.kind else {
        return Err(wrong("it is no artifact"));
    };
    let layer = image_layer(&layers)
        .ok_or_else(|| wrong("expected one layer, or one whose title ends with .iso"))?;
    let version = os_version(layer).filter(|version| version.len() <= TEXT_BYTES);
    Ok(HeldLiveImage {
        digest: digest.to_string(),
        version: version.unwrap_or_default().to_owned(),
    })
}
