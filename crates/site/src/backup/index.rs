//! Heading and index of a backup file.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

/// Version of the file's layout.
pub(super) const FORMAT: u32 = 1;
/// First member: the heading.
pub(super) const HEADING: &str = "heading.json";
/// Second to last member: all members with their checksums.
pub(super) const INDEX: &str = "index.json";
/// Last member: the checksum of the index, in the format of `sha256sum`.
pub(super) const INDEX_SUM: &str = "index.sha256";
/// The database, in the format of `pg_dump -Fc`.
pub(super) const DATABASE: &str = "database.dump";

/// Kind of the backed-up installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum InstallationKind {
    /// Processes of `atoll up`.
    Up,
    /// Containers of the pod.
    Pod,
}

/// First member of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Heading {
    /// Version of the file's layout.
    pub(super) format: u32,
    /// Version of the program that wrote the file.
    pub(super) program: String,
    /// Kind of the installation.
    pub(super) kind: InstallationKind,
    /// Start of the backup, RFC 3339.
    pub(super) created_at: String,
}

impl Heading {
    pub(super) fn new(kind: InstallationKind) -> Self {
        Self {
            format: FORMAT,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            kind,
            created_at: service::clock::now().to_rfc3339(),
        }
    }
}

/// A member of the backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BackupMember {
    /// Relative path with slashes.
    pub(super) path: String,
    /// Units: bytes.
    pub(super) size: u64,
    /// Hexadecimal.
    pub(super) sha256: String,
    /// Permission bits.
    pub(super) mode: u32,
    /// Owner.
    pub(super) uid: u32,
    /// Group.
    pub(super) gid: u32,
    /// Refers to content that was deleted during the backup; not restored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_dangling: bool,
}

/// All members between heading and index, in file order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BackupIndex {
    /// Copy of the heading, which the checksum of the index covers.
    pub(super) heading: Heading,
    /// The members.
    pub(super) members: Vec<BackupMember>,
}

/// Whether the path of a member stays below the target folder.
pub(super) fn is_safe(path: &str) -> bool {
    !path.is_empty()
        && !path.contains(['\\', '\0'])
        && Path::new(path)
            .components()
            .all(|component| matches!(component, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_member_paths_are_refused() {
        assert!(is_safe("registry/docker/a"));
        for wrong in ["", "/etc/passwd", "a/../../b", "..", "./a", "a\\b"] {
            assert!(!is_safe(wrong), "{wrong}");
        }
    }
}
