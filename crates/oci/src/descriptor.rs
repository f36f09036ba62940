//! Descriptors of content, and platforms of images.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Digest;

/// A descriptor of content: a config, a layer, or a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// Its digest.
    pub digest: Digest,
    /// Units: bytes.
    pub size: u64,
    /// The platform of an index's entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The platform of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// Architecture in Go's spelling: `amd64`, `arm64`, `ppc64le`, `s390x`.
    #[serde(default)]
    pub architecture: String,
    /// `linux`.
    #[serde(default)]
    pub os: String,
}

impl Platform {
    /// Linux on `architecture`, in the spelling of Go (`amd64`) or of the kernel (`x86_64`).
    pub fn linux(architecture: &str) -> Self {
        let architecture = match architecture {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self {
            architecture: architecture.to_owned(),
            os: "linux".to_owned(),
        }
    }
}
