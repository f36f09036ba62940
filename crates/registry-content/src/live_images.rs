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

    /// The live image for an architecture of a release: that for its minor version, which a site has chosen, before that for
    /// the version of its operating system, and that in its payload.
    pub(crate) fn find(
        &self,
        release: &HeldRelease,
        minor: &str,
        architecture: &str,
    ) -> Option<HeldBootImage> {
        let mut systems = release.boot_images.iter();
        let system = systems.find(|it| it.architecture == architecture);
        let version = system.map(|it| it.version.as_str());
        for name in [Some(minor), version].into_iter().flatten() {
            let Ok(tag) = tag(name, architecture) else {
                continue;
            };
            if let Some((repository, held)) = self.0.get(tag.as_str()) {
                let own = Some(held.version.as_str()).filter(|it| !it.is_empty());
                let own = if name == minor { own } else { version };
                return Some(HeldBootImage {
                    architecture: architecture.to_owned(),
                    version: own.unwrap_or(name).to_owned(),
                    image: format!("{repository}@{}", held.digest),
                });
            }
        }
        system.filter(|it| !it.image.is_empty()).cloned()
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
