//! The image set: selection of a mirror run, in its configuration and in the metadata of archives.
//!
//! Source: oc-mirror, `ImageSetConfiguration` of `v1alpha2` and `v2alpha1`. Metadata has the members of `v1alpha2`,
//! and its readers refuse others, so those of `v2alpha1` and our own are read and never written.

use serde::{Deserialize, Serialize};

use crate::wire::{is_false, null_as_default, null_when_empty, wire_enum};

/// An image set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageSet {
    /// Largest archive file; none for the default. Units: GiB.
    pub archive_size: Option<u64>,
    /// Storage of the metadata; none for a set that is mirrored once.
    pub storage: Option<Storage>,
    /// The selection.
    pub mirror: MirrorSelection,
}

/// Storage of the metadata of previous runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// A folder.
    Local {
        /// Path, relative to the working directory.
        path: String,
    },
    /// An image.
    Registry {
        /// Its reference; without a tag, `latest`.
        image: String,
        /// Whether its certificate is not verified.
        skip_tls: bool,
    },
}

/// The selection of a mirror run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MirrorSelection {
    /// Releases.
    pub platform: PlatformSelection,
    /// Parts of operator catalogs.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub operators: Vec<OperatorSelection>,
    /// Additional images.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub additional_images: Vec<ImageSelection>,
    /// Charts and the images that they name.
    pub helm: Helm,
    /// Images that are never mirrored. Each is a regular expression.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub blocked_images: Vec<ImageSelection>,
    /// Accepted, and without effect, as with the peer.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub samples: Vec<ImageSelection>,
    /// Boot images of the releases; ours, in both versions.
    #[serde(skip_serializing)]
    pub boot_images: Option<BootImageSelection>,
}

/// Boot images: the live images of releases, which hosts boot for their installation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BootImageSelection {
    /// Architectures, as Go or the kernel names them; none for those of the releases.
    pub architectures: Vec<String>,
}

/// Releases of the platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PlatformSelection {
    /// Whether the data of the upgrade graph is mirrored.
    #[serde(skip_serializing_if = "is_false")]
    pub graph: bool,
    /// Channels and their version ranges.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub channels: Vec<ReleaseChannel>,
    /// Architectures, as Go names them, or `multi`; none for `amd64`.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub architectures: Vec<String>,
    /// One release by its image (`v2alpha1`).
    #[serde(skip_serializing)]
    pub release: Option<String>,
    /// Whether the KubeVirt disk image of the releases is mirrored (`v2alpha1`).
    #[serde(skip_serializing)]
    pub kube_virt_container: bool,
    /// Platforms of multi-architecture images; none for all (`v2alpha1`).
    #[serde(skip_serializing)]
    pub platforms: Vec<Instance>,
}

/// A channel of releases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReleaseChannel {
    pub name: String,
    /// Platform of the channel.
    #[serde(rename = "type")]
    pub kind: ReleaseKind,
    /// Minimum version; empty without a bound.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_version: String,
    /// Maximum version; empty without a bound.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub max_version: String,
    /// Only the shortest upgrade path.
    #[serde(skip_serializing_if = "is_false")]
    pub shortest_path: bool,
    /// The range from the channel's first release to its last.
    #[serde(skip_serializing_if = "is_false")]
    pub full: bool,
}

wire_enum! {
    /// Values of a channel's `type`.
    pub enum ReleaseKind {
        Ocp = "ocp",
        Okd = "okd",
    }
}

/// An operating system and an architecture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instance {
    pub os: String,
    pub architecture: String,
}

/// A part of an operator catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OperatorSelection {
    /// Packages; all without any. Metadata has `null` then.
    #[serde(
        serialize_with = "null_when_empty",
        deserialize_with = "null_as_default"
    )]
    pub packages: Vec<IncludePackage>,
    /// A reference, or `oci://` and a folder.
    pub catalog: String,
    /// Last component of the rebuilt catalog's repository.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_name: String,
    /// Repository of the rebuilt catalog. It wins over `target_name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_catalog: String,
    /// Tag of the rebuilt catalog.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_tag: String,
    /// All bundles without version bounds, rather than the heads of channels.
    #[serde(skip_serializing_if = "is_false")]
    pub full: bool,
    /// Whether the minimum versions of packages and channels without a maximum must exist, as in configurations of
    /// `v1alpha2`. It is no member of theirs.
    #[serde(skip)]
    pub from_exact: bool,
    /// Whether dependencies of the selected bundles are left out.
    #[serde(skip_serializing_if = "is_false")]
    pub skip_dependencies: bool,
    /// Accepted, and without effect.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub original_ref: String,
    /// Template of the CatalogSource (`v2alpha1`).
    #[serde(skip_serializing)]
    pub target_catalog_source_template: Option<String>,
    /// Platforms of multi-architecture images; none for all (`v2alpha1`).
    #[serde(skip_serializing)]
    pub platforms: Vec<Instance>,
}

/// A package, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IncludePackage {
    pub name: String,
    /// Channels; all without any.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub channels: Vec<IncludeChannel>,
    /// Bounds of channels without their own.
    #[serde(flatten)]
    pub versions: IncludeBundle,
    /// Default channel, where the package's own is not mirrored.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default_channel: String,
}

/// A channel of a package, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IncludeChannel {
    pub name: String,
    #[serde(flatten)]
    pub versions: IncludeBundle,
}

/// Range of bundles; an empty member is no bound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IncludeBundle {
    /// Minimum version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_version: String,
    /// Maximum version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub max_version: String,
    /// Minimum bundle, by name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_bundle: String,
}

/// An image by its reference; a blocked one by a regular expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ImageSelection {
    pub name: String,
    /// Repository in the target (`v2alpha1`).
    #[serde(skip_serializing)]
    pub target_repo: String,
    /// Tag in the target (`v2alpha1`).
    #[serde(skip_serializing)]
    pub target_tag: String,
    /// Platforms of a multi-architecture image; none for all (`v2alpha1`).
    #[serde(skip_serializing)]
    pub platforms: Vec<Instance>,
}

/// Charts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Helm {
    /// Charts of repositories.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub repositories: Vec<ChartRepository>,
    /// Charts on this machine.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub local: Vec<Chart>,
}

/// A chart repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChartRepository {
    pub url: String,
    pub name: String,
    /// Charts; all without any.
    #[serde(deserialize_with = "null_as_default")]
    pub charts: Vec<Chart>,
}

/// A chart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Chart {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// An archive or a folder, for charts on this machine.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// Additional JSONPaths of images.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub image_paths: Vec<String>,
    /// Files of values for the templates, of which later ones win. The peer lacks them, so they are not in metadata.
    #[serde(skip_serializing, deserialize_with = "null_as_default")]
    pub values_files: Vec<String>,
    /// Platforms of multi-architecture images; none for all (`v2alpha1`).
    #[serde(skip_serializing)]
    pub platforms: Vec<Instance>,
}
