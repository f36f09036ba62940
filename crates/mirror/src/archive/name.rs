//! Names of archive files and of their members.
//!
//! Source: the peer's v1, except for the index.

use oci::{Digest, Repository};

/// The metadata of the set: the first member of the first file.
pub const METADATA: &str = "publish/.metadata.json";
/// Index of all members of the set.
pub(super) const INDEX: &str = "atoll/index.json";
/// The signature over the bytes of the index.
pub(super) const SIGNATURE: &str = "atoll/index.json.sig";
/// Folder of release signatures.
pub const SIGNATURES: &str = "release-signatures/";
/// Folders of every archive. Source: the peer, which requires the first one.
pub(super) const FOLDERS: [&str; 2] = ["charts/", SIGNATURES];
/// Folders whose layout is reserved for this module.
pub(super) const RESERVED: [&str; 4] = ["atoll", "blobs", "publish", "v2"];

/// The name of a set's file; the first one has the number 0.
pub fn file_name(sequence: u64, number: usize) -> String {
    format!("mirror_seq{sequence}_{number:06}.tar")
}

/// Sequence and number of a file; nothing where it is called otherwise.
pub(super) fn parse_file_name(name: &str) -> Option<(u64, usize)> {
    let (sequence, number) = name
        .strip_prefix("mirror_seq")?
        .strip_suffix(".tar")?
        .split_once('_')?;
    let parsed = (sequence.parse().ok()?, number.parse().ok()?);
    (file_name(parsed.0, parsed.1) == name).then_some(parsed)
}

/// Whether it belongs to the beginning of the first file.
pub(super) fn is_head(path: &str) -> bool {
    [METADATA, INDEX, SIGNATURE].contains(&path)
}

pub(super) fn blob(digest: &Digest) -> String {
    format!("blobs/{digest}")
}

/// A manifest by digest or tag.
pub(super) fn manifest(repository: &Repository, id: impl std::fmt::Display) -> String {
    format!("v2/{repository}/manifests/{id}")
}

/// The digest that the name of a blob or a manifest promises, also in the layout of a catalog.
pub(super) fn promised(path: &str) -> Option<Digest> {
    let (_, name) = path.rsplit_once('/')?;
    if path.starts_with("blobs/") || path.starts_with("v2/") {
        return name.parse().ok();
    }
    let (_, in_layout) = path.rsplit_once("/layout/blobs/")?;
    let is_catalog = path.starts_with("catalogs/");
    is_catalog
        .then(|| in_layout.replacen('/', ":", 1).parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_peers() {
        assert_eq!(file_name(1, 0), "mirror_seq1_000000.tar");
        assert_eq!(parse_file_name("mirror_seq12_000003.tar"), Some((12, 3)));
        for other in [
            "mirror_seq1_0.tar",
            "mirror_seq+1_000000.tar",
            "mirror_seq1_000000.tar.part",
            "mirror_000001.tar",
        ] {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
    }

    #[test]
    fn only_content_is_named_by_its_digest() {
        let digest = Digest::sha256(b"x");
        let repository: Repository = "misc/tool".parse().unwrap();
        assert_eq!(promised(&blob(&digest)), Some(digest.clone()));
        assert_eq!(
            promised(&manifest(&repository, &digest)),
            Some(digest.clone())
        );
        assert_eq!(promised(&manifest(&repository, "latest")), None);
        assert_eq!(promised(&format!("catalogs/r/c/{digest}")), None);
        let layout = format!("catalogs/r/c/v1/layout/blobs/sha256/{}", digest.hex());
        assert_eq!(promised(&layout), Some(digest));
        assert_eq!(promised("catalogs/r/c/v1/layout/index.json"), None);
    }
}
