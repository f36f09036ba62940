//! Tags of attached artifacts, derived from the digests of their images.
//!
//! Source: cosign; distribution-spec, referrers tag schema.

use crate::{Digest, Tag};

const SIGNATURE: &str = "sig";
/// Suffixes of cosign's tags: signatures, attestations, SBOMs.
pub const SUFFIXES: [&str; 3] = [SIGNATURE, "att", "sbom"];

/// Digest of the image that an artifact's tag refers to; none for other tags.
pub fn subject(tag: &str) -> Option<Digest> {
    let (own, suffix) = tag.split_once('.').unwrap_or((tag, ""));
    let is_attached = suffix.is_empty() || SUFFIXES.contains(&suffix);
    let digest = own.replacen('-', ":", 1);
    is_attached.then(|| digest.parse().ok()).flatten()
}

/// Digest of the image whose referrers the index of this tag lists; none for other tags.
pub fn stands_in_for(tag: &Tag) -> Option<Digest> {
    let has_suffix = tag.as_str().contains('.');
    subject(tag.as_str()).filter(|_| !has_suffix)
}

/// Digest of the image that the signature of this tag is for; none for other tags.
pub fn signed(tag: &Tag) -> Option<Digest> {
    let suffix = tag.as_str().split_once('.').map(|(_, suffix)| suffix);
    subject(tag.as_str()).filter(|_| suffix == Some(SIGNATURE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_artifacts_name_their_image() {
        let digest = Digest::sha256(b"image");
        let hex = digest.hex();
        for (suffix, is_subject, is_index, is_signed) in [
            ("", true, true, false),
            (".sig", true, false, true),
            (".att", true, false, false),
            (".other", false, false, false),
        ] {
            let tag: Tag = format!("sha256-{hex}{suffix}").parse().unwrap();
            let found = |it: Option<Digest>| it.as_ref() == Some(&digest);
            assert_eq!(found(subject(tag.as_str())), is_subject, "{tag}");
            assert_eq!(found(stands_in_for(&tag)), is_index, "{tag}");
            assert_eq!(found(signed(&tag)), is_signed, "{tag}");
        }
        assert_eq!(subject("4.18.7-x86_64"), None);
    }
}
