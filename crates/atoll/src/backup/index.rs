//! What a backup's file says about itself.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

/// Version of the file's layout.
pub(super) const FORMAT: u32 = 1;
/// First member: what the file is.
pub(super) const HEADING: &str = "heading.json";
/// Last but one: every member with its checksum.
pub(super) const INDEX: &str = "index.json";
/// Last: the checksum of the index, as `sha256sum` prints it.
pub(super) const INDEX_SUM: &str = "index.sha256";
/// The database, as `pg_dump -Fc` writes it.
pub(super) const DATABASE: &str = "database.dump";

/// How the installation runs that was backed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum InstallationKind {
    /// Under `atoll up`.
    Up,
    /// As containers.
    Pod,
}

/// First member of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Heading {
    /// Version of the file's layout.
    pub(super) format: u32,
    /// Version of the program that wrote it.
    pub(super) program: String,
    /// What was backed up.
    pub(super) kind: InstallationKind,
    /// When the backup began, RFC 3339.
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

/// A file of the backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BackupMember {
    /// Its path, with slashes, relative.
    pub(super) path: String,
    /// Units: bytes.
    pub(super) size: u64,
    /// In hexadecimal.
    pub(super) sha256: String,
    /// Permission bits.
    pub(super) mode: u32,
    /// Number of its owner.
    pub(super) uid: u32,
    /// Number of its group.
    pub(super) gid: u32,
    /// It names content that was deleted while the backup ran, and is not restored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_dangling: bool,
}

/// Every member between heading and index, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BackupIndex {
    /// The heading once more, so that its checksum is the index's.
    pub(super) heading: Heading,
    /// The members.
    pub(super) members: Vec<BackupMember>,
}

/// Whether a member of this name stays below the folder into which it is extracted.
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
    fn members_stay_below_their_folder() {
        assert!(is_safe("registry/docker/a"));
        for wrong in ["", "/etc/passwd", "a/../../b", "..", "./a", "a\\b"] {
            assert!(!is_safe(wrong), "{wrong}");
        }
    }
}
