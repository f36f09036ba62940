//! The releases that a registry holds: found by their tags, confirmed by their labels, complete or not. Beside them their
//! live images and the operator catalogs.
//!
//! Nothing here is stored or served. Invariant: a release without missing images had each image that its payload names
//! in this registry when it was read.

mod catalogs;
mod live_images;
mod offered;
mod payload;
mod places;
mod read;
mod tag;

use std::collections::{BTreeMap, BTreeSet};

use oci::Reference;
use serde::{Deserialize, Serialize};

pub use offered::{by_source, mirrors, offered_releases, os_images, release_images};
pub use places::places;
pub use read::{ContentReader, EarlierReadings};

/// Releases of a registry, ordered by version, architecture and reference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RegistryContent {
    /// The releases.
    pub releases: Vec<HeldRelease>,
    /// The operator catalogs.
    pub catalogs: Vec<HeldCatalog>,
    /// Live images that are artifacts, by `HOST/REPOSITORY:TAG`.
    pub live_images: BTreeMap<String, HeldLiveImage>,
    /// Images with tags of releases that are none, or images that cannot be read.
    pub rejected: Vec<RejectedImage>,
    /// Images with tags of catalogs that are none, with their digests.
    pub others: BTreeMap<String, String>,
}

/// A release in the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldRelease {
    /// `HOST/REPOSITORY:TAG`.
    pub image: String,
    /// Digest of that tag.
    pub digest: String,
    /// Full version, without the architecture.
    pub version: String,
    /// Architectures of its hosts, as the installer API names them.
    pub architectures: Vec<String>,
    /// Whether it is one for several architectures.
    pub is_multi: bool,
    /// Whether a signature in the registry is for that digest.
    pub is_signed: bool,
    /// Number of images that its payload names.
    pub images: usize,
    /// Images that are not in the registry, by the name of their component.
    pub missing: Vec<MissingImage>,
    /// Operating systems of its hosts, with the live images that its payload names; of each architecture, that of the
    /// default stream first.
    pub boot_images: Vec<HeldBootImage>,
    /// Repositories that its payload names, each with the one in the registry that has its images.
    pub mirrors: BTreeSet<HeldMirror>,
}

/// An operator catalog in the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldCatalog {
    /// `HOST/REPOSITORY:TAG`.
    pub image: String,
    /// Digest of that tag.
    pub digest: String,
    /// Version of the platform whose clusters it is for: `x.y`.
    pub version: String,
    /// Of each repository that its operators name and the registry has not: one image.
    pub missing: Vec<String>,
    /// The other repositories of which they name images by digest.
    pub mirrors: BTreeSet<HeldMirror>,
    /// Those of which they name images by tag.
    pub tag_mirrors: BTreeSet<HeldMirror>,
}

/// A repository, and its mirror. Each is `HOST/REPOSITORY`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldMirror {
    /// As the payload names it.
    pub source: String,
    /// In the registry.
    pub mirror: String,
}

impl HeldMirror {
    /// The mirror that has an image in this place; none if it is the image's own.
    pub(crate) fn of(image: &str, place: &Reference) -> Option<Self> {
        let source = image.parse::<Reference>().ok()?.without_version();
        let mirror = place.without_version();
        (source != mirror).then(|| Self {
            source: source.to_string(),
            mirror: mirror.to_string(),
        })
    }
}

/// An image of a release that the registry lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MissingImage {
    /// Name of the component.
    pub component: String,
    /// Its reference in the payload.
    pub image: String,
}

/// An operating system of a release for one architecture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldBootImage {
    /// As the installer API names it.
    pub architecture: String,
    /// Its stream; empty where the release names none.
    pub stream: String,
    /// Version of the operating system.
    pub version: String,
    /// The container image with the live images, by digest; empty for payloads without one.
    pub image: String,
}

/// A live image that is an artifact of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldLiveImage {
    /// Digest of its tag.
    pub digest: String,
    /// Version of the operating system by the name of its file; empty if that has none.
    pub version: String,
}

/// An image that is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RejectedImage {
    /// `HOST/REPOSITORY:TAG`.
    pub image: String,
    /// Digest of that tag.
    pub digest: String,
    /// Why it is left out.
    pub reason: String,
}
