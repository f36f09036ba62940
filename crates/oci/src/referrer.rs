//! Manifests that refer to another one: signatures, attestations, lists of components.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Digest, Manifest};

/// One entry of the list of referrers. Source: distribution-spec, listing referrers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Referrer {
    /// What the manifest is.
    pub media_type: String,
    /// Its digest, as it was pushed.
    pub digest: Digest,
    /// Units: bytes.
    pub size: u64,
    /// What the artifact is; clients filter by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The manifest's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

impl Referrer {
    /// The entry of `manifest`, which was pushed under `digest`.
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
