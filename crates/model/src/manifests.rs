//! Manifests that a user or the service adds to an installation.
//!
//! Source: the installer API description (wire names, presence rules).

use crate::wire::wire_enum;
use serde::{Deserialize, Serialize};

/// `manifest` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterManifest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<ManifestFolder>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_source: Option<ManifestSource>,
}

/// `create-manifest-params` of the installer API.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateManifestParams {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<ManifestFolder>,
    pub file_name: String,
    pub content: String,
}

/// `update-manifest-params` of the installer API: the first two members select the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateManifestParams {
    pub folder: ManifestFolder,
    pub file_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_folder: Option<ManifestFolder>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_file_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_content: Option<String>,
}

wire_enum! {
    /// Values of `ManifestFolder`.
    pub enum ManifestFolder {
        Manifests = "manifests",
        Openshift = "openshift",
    }
}

wire_enum! {
    /// Values of `ManifestSource`.
    pub enum ManifestSource {
        User = "user",
        System = "system",
    }
}
