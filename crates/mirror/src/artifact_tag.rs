//! Tags of attached artifacts, derived from the digests of their images.

use oci::{Digest, Tag};

/// Suffixes of cosign's tags: signatures, attestations, SBOMs.
pub(crate) const SUFFIXES: [&str; 3] = ["sig", "att", "sbom"];

/// Digest of the image that an artifact's tag refers to; none for other tags.
pub(crate) fn subject(tag: &str) -> Option<Digest> {
    let (own, suffix) = tag.split_once('.').unwrap_or((tag, ""));
    let is_attached = suffix.is_empty() || SUFFIXES.contains(&suffix);
    let digest = own.replacen('-', ":", 1);
    is_attached.then(|| digest.parse().ok()).flatten()
}

/// Digest of the image whose referrers the index of this tag lists; none for other tags.
pub(crate) fn stands_in_for(tag: &Tag) -> Option<Digest> {
    let has_suffix = tag.as_str().contains('.');
    subject(tag.as_str()).filter(|_| !has_suffix)
}
