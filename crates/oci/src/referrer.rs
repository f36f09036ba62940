//! Referrers of a manifest: signatures, attestations, SBOMs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, Manifest};

/// An entry of the list of referrers. Source: distribution-spec, listing referrers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Referrer {
    /// Media type of the manifest.
    pub media_type: String,
    /// Digest of the manifest, as pushed.
    pub digest: Digest,
    /// Units: bytes.
    pub size: u64,
    /// Artifact type, by which clients filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Annotations of the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

impl Referrer {
    /// The entry of `manifest`, pushed under `digest`.
    pub fn of(manifest: &Manifest, digest: &Digest) -> Self {
        Self {
            media_type: manifest.media_type.to_owned(),
            digest: digest.clone(),
            size: manifest.bytes.len() as u64,
            artifact_type: manifest.artifact_type.clone(),
            annotations: manifest.annotations.clone(),
        }
    }
}
