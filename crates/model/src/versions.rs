//! Installable versions: platform versions, release images, OS images.
//!
//! Source: the installer API description (wire names, presence rules).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::wire::{is_false, null_as_default, wire_enum};

/// `openshift-version` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenshiftVersion {
    pub display_name: String,
    pub support_level: ReleaseSupportLevel,
    #[serde(skip_serializing_if = "is_false")]
    pub default: bool,
    #[serde(deserialize_with = "null_as_default")]
    pub cpu_architectures: Vec<String>,
    /// Streams of its operating system, if there are several. An addition to the peer's API.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub os_streams: Vec<OfferedOsStream>,
}

/// A stream of the operating system of a version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferedOsStream {
    /// As `os_stream` of clusters and infra-envs names it; empty for a default one without a name.
    pub name: String,
    /// Whether it is taken where none is chosen.
    #[serde(skip_serializing_if = "is_false")]
    pub default: bool,
}

/// `release-image` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReleaseImage {
    pub openshift_version: String,
    pub cpu_architecture: CpuArchitecture,
    #[serde(deserialize_with = "null_as_default")]
    pub cpu_architectures: Vec<String>,
    pub url: String,
    pub version: String,
    #[serde(skip_serializing_if = "is_false")]
    pub default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub support_level: Option<ReleaseSupportLevel>,
}

/// A release image on offer. No other installer has the members beside its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferedRelease {
    #[serde(flatten)]
    pub image: ReleaseImage,
    /// Whether it was found in the registry, and is in no list.
    #[serde(skip_serializing_if = "is_false")]
    pub is_found: bool,
    /// Whether the registry has a signature of it, which clusters may verify.
    #[serde(skip_serializing_if = "is_false")]
    pub is_signed: bool,
    /// Components whose images the registry lacks: a release without them cannot be installed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// `os-image` of the installer API. Of several for one version and architecture, the first is that of the default stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OsImage {
    pub openshift_version: String,
    pub cpu_architecture: CpuArchitecture,
    pub url: String,
    pub version: String,
    /// Its stream, as in `osImageStream` of an install-config; empty where the release names none. An addition to the
    /// peer's API.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub os_stream: String,
}

/// An OS image on offer. No other installer has the members beside its own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferedOsImage {
    #[serde(flatten)]
    pub image: OsImage,
    /// Whether it was found in the registry, and is in no list.
    #[serde(skip_serializing_if = "is_false")]
    pub is_found: bool,
}

/// An operator catalog in the registry, which new clusters of its minor version get. No other installer has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferedCatalog {
    /// Minor version.
    pub openshift_version: String,
    /// `HOST/REPOSITORY:TAG`.
    pub image: String,
    /// Repositories that its operators name and the registry has not.
    pub missing_repositories: u64,
    /// An image of each of the first ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// `release-source` of the installer API: channels of an update service that list the releases of a minor version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReleaseSource {
    pub openshift_version: String,
    pub multi_cpu_architectures: Vec<CpuArchitecture>,
    pub upgrade_channels: Vec<UpgradeChannel>,
}

/// `upgrade-channel` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UpgradeChannel {
    pub cpu_architecture: CpuArchitecture,
    pub channels: Vec<ReleaseChannel>,
}

/// `list-versions` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListVersions {
    /// Component name → version or image reference.
    pub versions: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub release_tag: String,
}

wire_enum! {
    /// Values of `ReleaseChannel`.
    pub enum ReleaseChannel {
        Candidate = "candidate",
        Fast = "fast",
        Stable = "stable",
        Eus = "eus",
    }
}

wire_enum! {
    /// Values of `CpuArchitecture`.
    pub enum CpuArchitecture {
        X86_64 = "x86_64",
        Aarch64 = "aarch64",
        Arm64 = "arm64",
        Ppc64le = "ppc64le",
        S390x = "s390x",
        Multi = "multi",
    }
}

wire_enum! {
    /// Values of `ReleaseSupportLevel`.
    pub enum ReleaseSupportLevel {
        Beta = "beta",
        Production = "production",
        Maintenance = "maintenance",
        EndOfLife = "end-of-life",
    }
}
