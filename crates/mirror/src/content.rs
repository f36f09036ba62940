//! Content to be mirrored: images with their reasons, their manifests and blobs.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use model::Error;
use model::mirror_metadata::ImageType;
use oci::{Digest, Manifest, Reference, Registry, Repository, Tag, Target};
use url::Url;

use oci::artifact_tag;

/// An image that is selected and not yet resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedImage {
    /// Reference at the source.
    pub source: Reference,
    /// Repository below the target's namespace.
    pub repository: Repository,
    /// Its tag there.
    pub tag: Tag,
    pub kind: ImageType,
    /// Reasons; at least one.
    pub why: Vec<Why>,
    /// Mirrored platforms of an index; none for all.
    pub platforms: Vec<oci::Platform>,
    /// Whether the run skips it when the source does not have it.
    pub may_be_missing: bool,
}

/// Why an image is wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The configuration names it.
    Additional,
    /// Bundle of that name.
    Bundle {
        catalog: String,
        package: String,
        bundle: String,
    },
    /// That bundle needs it when it runs.
    Related {
        catalog: String,
        package: String,
        bundle: String,
    },
    /// Release of that name, in that channel, or named by its image.
    Release {
        release: String,
        channel: Option<String>,
    },
    /// That release consists of it.
    Component { release: String, component: String },
    /// Hosts boot it to install that release.
    BootImage { release: String, location: String },
    /// The image of the upgrade graph is made of it.
    GraphBase,
    /// Image with the upgrade graph.
    Graph,
    /// Catalog of operators.
    Catalog { catalog: String },
    /// Attached artifact of that image: a signature, an attestation, an SBOM.
    Attached { to: Reference },
    /// That chart names it.
    Chart { chart: String },
    /// Content of an archive, which has no reasons.
    Archive,
}

/// A part of a catalog that is selected and cannot be mirrored; the rest is.
#[derive(Debug)]
pub enum LeftOut {
    /// A package. Its images are unknown.
    Package(Error),
    /// An image with a malformed reference.
    Image(Error),
}

/// An image under its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedImage {
    pub wanted: SelectedImage,
    /// The digest that the source had.
    pub digest: Digest,
}

/// A blob, transferred once for all images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceBlob {
    /// Units: bytes.
    pub size: u64,
    /// Repositories that have it; one at least.
    pub sources: BTreeSet<SourceRepository>,
    /// The file of a web server that is it, instead.
    pub file: Option<Url>,
}

/// A repository of a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceRepository {
    pub registry: Registry,
    pub repository: Repository,
}

/// Content of a run.
#[derive(Debug, Clone, Default)]
pub struct ImageContent {
    /// In the order in which they were found.
    pub images: Vec<ResolvedImage>,
    /// The manifests of the images, and those of their parts.
    pub manifests: BTreeMap<Digest, Manifest>,
    /// Their layers and configurations.
    pub blobs: BTreeMap<Digest, SourceBlob>,
}

impl LeftOut {
    /// Why it is left out.
    pub fn error(&self) -> &Error {
        match self {
            Self::Package(error) | Self::Image(error) => error,
        }
    }
}

impl SelectedImage {
    /// Whether the target has it under the tag by which it is named. Attached artifacts are found by the digest of their
    /// image.
    pub fn is_known_by_tag(&self) -> bool {
        self.source.target() == Target::Tag(self.tag.clone())
            && artifact_tag::subject(self.tag.as_str()).is_none()
    }

    /// Merges the reasons and platforms of the same image.
    pub(crate) fn join(&mut self, other: Self) {
        self.may_be_missing &= other.may_be_missing;
        for why in other.why {
            if !self.why.contains(&why) {
                self.why.push(why);
            }
        }
        if other.platforms.is_empty() {
            self.platforms.clear();
        } else if !self.platforms.is_empty() {
            self.platforms.extend(other.platforms);
        }
    }
}

impl ResolvedImage {
    /// The source by digest.
    pub fn pinned(&self) -> Reference {
        self.wanted.source.with_digest(self.digest.clone())
    }
}

impl ImageContent {
    /// The manifests of an image: its parts first, then itself. Unmirrored parts are left out.
    pub fn manifests_of(&self, digest: &Digest) -> Vec<&Manifest> {
        let mut found = Vec::new();
        self.collect(digest, &mut BTreeSet::new(), &mut found);
        found
    }

    /// Merges other content.
    pub(crate) fn extend(&mut self, other: Self) {
        let Self {
            images,
            manifests,
            blobs,
        } = other;
        self.images.extend(images);
        self.manifests.extend(manifests);
        for (digest, blob) in blobs {
            match self.blobs.entry(digest) {
                Entry::Occupied(known) => known.into_mut().sources.extend(blob.sources),
                Entry::Vacant(free) => drop(free.insert(blob)),
            }
        }
    }

    /// Drops manifests and blobs that no image needs.
    pub(crate) fn forget_unused(&mut self) {
        let images = self.images.iter();
        let manifests = images.flat_map(|image| self.manifests_of(&image.digest));
        let (mut used, mut blobs) = (BTreeSet::new(), BTreeSet::new());
        for manifest in manifests {
            used.insert(manifest.digest.clone());
            blobs.extend(manifest.blobs().map(|blob| blob.digest.clone()));
        }
        self.manifests.retain(|digest, _| used.contains(digest));
        self.blobs.retain(|digest, _| blobs.contains(digest));
    }

    fn collect<'a>(
        &'a self,
        digest: &Digest,
        seen: &mut BTreeSet<Digest>,
        found: &mut Vec<&'a Manifest>,
    ) {
        if !seen.insert(digest.clone()) {
            return;
        }
        let Some(manifest) = self.manifests.get(digest) else {
            return;
        };
        for part in manifest.required_manifests() {
            self.collect(part, seen, found);
        }
        found.push(manifest);
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Additional => f.write_str("named in additionalImages"),
            Self::Bundle {
                catalog,
                package,
                bundle,
            } => {
                write!(f, "bundle {bundle} of package {package} in {catalog}")
            }
            Self::Related {
                catalog,
                package,
                bundle,
            } => {
                write!(
                    f,
                    "needed by bundle {bundle} of package {package} in {catalog}"
                )
            }
            Self::Release { release, channel } => match channel {
                Some(channel) => write!(f, "release {release} of channel {channel}"),
                None => write!(f, "release {release}, named in platform.release"),
            },
            Self::Component { release, component } => {
                write!(f, "component {component} of release {release}")
            }
            Self::BootImage { release, location } => {
                write!(f, "boot image of release {release}, from {location}")
            }
            Self::GraphBase => f.write_str("base image of the upgrade graph"),
            Self::Graph => f.write_str("the upgrade graph"),
            Self::Catalog { catalog } => write!(f, "the catalog {catalog}"),
            Self::Attached { to } => write!(f, "attached to {to}"),
            Self::Chart { chart } => write!(f, "named by the chart {chart}"),
            Self::Archive => f.write_str("in the archive"),
        }
    }
}
