//! Names of archive files and of their members.
//!
//! Source: the peer's v1, except for the index.

use model::archive_name;
pub use model::archive_name::file_name;
use oci::{Digest, Repository};

use super::storage_tree::{self, TreeFile};

/// The metadata of the set: the first member of the first file.
pub const METADATA: &str = "publish/.metadata.json";
/// Index of all members of the set.
pub(super) const INDEX: &str = "atoll/index.json";
/// The signature over the bytes of the index.
pub(super) const SIGNATURE: &str = "atoll/index.json.sig";
/// Folder of release signatures.
pub const SIGNATURES: &str = "release-signatures/";
/// Folders of every archive of v1. Source: the peer, which requires the first one.
const FOLDERS: [&str; 2] = ["charts/", SIGNATURES];
/// Folders whose layout is reserved for this module.
pub(super) const RESERVED: [&str; 5] = ["atoll", "blobs", "docker", "publish", "v2"];

/// The tool whose archives those of a set are like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ArchiveFormat {
    /// The peer's v1.
    #[default]
    V1,
    /// The peer's v2.
    V2 {
        /// Whether members that do not fit into a file are refused. They get a file of their own otherwise.
        is_strict: bool,
    },
}

impl ArchiveFormat {
    /// The names of a set's files.
    pub(super) fn files(self, sequence: u64) -> NamedSet {
        match self {
            Self::V1 => NamedSet::Sequence(sequence),
            Self::V2 { .. } => NamedSet::V2,
        }
    }

    /// Folders of every archive, which the peer's v1 requires.
    pub(super) fn folders(self) -> &'static [&'static str] {
        match self {
            Self::V1 => &FOLDERS,
            Self::V2 { .. } => &[],
        }
    }

    /// Name of a blob.
    pub(super) fn blob(self, digest: &Digest) -> String {
        match self {
            Self::V1 => blob(digest),
            Self::V2 { .. } => TreeFile::Blob(digest.clone()).path(),
        }
    }

    /// Whether a member that fits into no file gets one of its own.
    pub(super) fn allows_large_members(self) -> bool {
        self == Self::V2 { is_strict: false }
    }
}

/// The set of a file, by the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamedSet {
    /// Of this tool and of the peer's v1.
    Sequence(u64),
    /// Of the peer's v2.
    V2,
}

impl NamedSet {
    /// The set and the number of a file, from 0; nothing where it is called otherwise.
    pub(super) fn parse(name: &str) -> Option<(Self, usize)> {
        let numbered = archive_name::parse(name);
        let numbered = numbered.map(|(sequence, number)| (Self::Sequence(sequence), number));
        numbered.or_else(|| Some((Self::V2, storage_tree::file_number(name)?)))
    }

    /// The sequence in the name; that of a single run without one.
    pub(super) fn sequence(self) -> u64 {
        match self {
            Self::Sequence(sequence) => sequence,
            Self::V2 => 1,
        }
    }

    /// The name of a file.
    pub(super) fn file_name(self, number: usize) -> String {
        match self {
            Self::Sequence(sequence) => file_name(sequence, number),
            Self::V2 => storage_tree::file_name(number),
        }
    }
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
    if let Some(TreeFile::Blob(digest)) = TreeFile::parse(path) {
        return Some(digest);
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
