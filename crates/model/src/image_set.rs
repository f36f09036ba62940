//! What a site wants carried across the gap: the image set, as its configuration and the metadata of archives spell it.
//!
//! Source: `ImageSetConfiguration` of `v1alpha2`, with what `v2alpha1` adds. Metadata knows the members of `v1alpha2` only,
//! and its readers refuse others, so those of `v2alpha1` are read and never written.

use serde::{Deserialize, Serialize};

use crate::wire::{is_false, null_as_default, null_when_empty, wire_enum};

/// An image set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageSet {
    /// Most that an archive file may take; nothing for the default. Units: GiB.
    pub archive_size: Option<u64>,
    /// Where what was carried is remembered; nothing for a set that is carried once.
    pub storage: Option<Storage>,
    /// What is carried.
    pub mirror: Mirror,
}

/// Where the metadata of former runs is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Storage {
    /// In a folder.
    Local {
        /// The folder, relative to the working directory.
        path: String,
    },
    /// In an image.
    Registry {
        /// Its reference; without a tag, `latest`.
        image: String,
        /// Whether its certificate may be any.
        skip_tls: bool,
    },
}

/// What is carried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Mirror {
    /// Releases.
    pub platform: Platform,
    /// Parts of operator catalogs.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub operators: Vec<Operator>,
    /// Single images.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub additional_images: Vec<Image>,
    /// Charts and the images that they name.
    pub helm: Helm,
    /// Images that are not carried, whoever names them. Each is a regular expression.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub blocked_images: Vec<Image>,
    /// Accepted, and without effect, as with the peer.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub samples: Vec<Image>,
}

/// Releases of the platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Platform {
    /// Whether the data of the upgrade graph is carried along.
    #[serde(skip_serializing_if = "is_false")]
    pub graph: bool,
    /// From which channels, and how much of each.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub channels: Vec<ReleaseChannel>,
    /// For which architectures, as Go names them, or `multi`; none for `amd64`.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub architectures: Vec<String>,
    /// One release by its image (`v2alpha1`).
    #[serde(skip_serializing)]
    pub release: Option<String>,
    /// Whether the KubeVirt disk image of the releases is carried (`v2alpha1`).
    #[serde(skip_serializing)]
    pub kube_virt_container: bool,
    /// Which parts of multi-architecture images are carried; none for all (`v2alpha1`).
    #[serde(skip_serializing)]
    pub platforms: Vec<Instance>,
}

/// A channel of releases.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReleaseChannel {
    pub name: String,
    /// Which platform's channel it is.
    #[serde(rename = "type")]
    pub kind: ReleaseKind,
    /// Empty where it is not bounded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_version: String,
    /// Empty where it is not bounded.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub max_version: String,
    /// Only what the shortest upgrade path needs.
    #[serde(skip_serializing_if = "is_false")]
    pub shortest_path: bool,
    /// From the channel's first release to its last.
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
pub struct Operator {
    /// All, where none is named; metadata has `null` then.
    #[serde(
        serialize_with = "null_when_empty",
        deserialize_with = "null_as_default"
    )]
    pub packages: Vec<Package>,
    /// A reference, or `oci://` and a folder.
    pub catalog: String,
    /// Another last component for the rebuilt catalog's repository.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_name: String,
    /// Another repository for the rebuilt catalog. It wins over `target_name`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_catalog: String,
    /// Another tag for the rebuilt catalog.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_tag: String,
    /// Everything where no versions are bounded, rather than the heads of channels.
    #[serde(skip_serializing_if = "is_false")]
    pub full: bool,
    /// Whether the lowest versions of packages and channels without a highest one have to be there, as configurations of
    /// `v1alpha2` have it. It is no member of theirs.
    #[serde(skip)]
    pub from_exact: bool,
    /// Whether what the selected bundles need is left out.
    #[serde(skip_serializing_if = "is_false")]
    pub skip_dependencies: bool,
    /// Accepted, and without effect.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub original_ref: String,
    /// A file to make the CatalogSource from (`v2alpha1`).
    #[serde(skip_serializing)]
    pub target_catalog_source_template: Option<String>,
    /// Which parts of multi-architecture images are carried; none for all (`v2alpha1`).
    #[serde(skip_serializing)]
    pub platforms: Vec<Instance>,
}

/// A package, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Package {
    pub name: String,
    /// All, where none is named.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub channels: Vec<Channel>,
    /// For the channels without versions of their own.
    #[serde(flatten)]
    pub versions: Versions,
    /// The default channel, where the package's own is not carried.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default_channel: String,
}

/// A channel of a package, or a part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Channel {
    pub name: String,
    #[serde(flatten)]
    pub versions: Versions,
}

/// Which bundles; members are empty where nothing is bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Versions {
    /// The lowest version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_version: String,
    /// The highest version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub max_version: String,
    /// The lowest bundle, by name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub min_bundle: String,
}

/// An image by its reference; a blocked one by a regular expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Image {
    pub name: String,
    /// Another repository in the target (`v2alpha1`).
    #[serde(skip_serializing)]
    pub target_repo: String,
    /// Another tag in the target (`v2alpha1`).
    #[serde(skip_serializing)]
    pub target_tag: String,
    /// Which parts of a multi-architecture image are carried; none for all (`v2alpha1`).
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
    /// All, where none is named.
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
    /// Where images stand besides the usual places. Each is a JSONPath.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_as_default"
    )]
    pub image_paths: Vec<String>,
    /// Which parts of multi-architecture images are carried; none for all (`v2alpha1`).
    #[serde(skip_serializing)]
    pub platforms: Vec<Instance>,
}
