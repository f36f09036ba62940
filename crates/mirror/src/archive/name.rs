//! Names of archive files and of their members.
//!
//! Source: the peer's v1, except for the index.

pub use model::archive_name::file_name;
pub(super) use model::archive_name::parse as parse_file_name;
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
