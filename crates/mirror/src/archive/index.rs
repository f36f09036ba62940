//! The index of a set: every file and every member, so that missing, foreign or changed ones are detected.

use bytes::Bytes;
use model::Error;
use oci::Digest;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::member::{MemberKind, PlannedFile, PlannedMember};
use super::name::{INDEX, SIGNATURE};

/// The only form there is.
const FORMAT: u32 = 1;
/// Largest index: some 300 000 members. Units: bytes.
pub(super) const LIMIT_BYTES: u64 = 64 << 20;

/// The index of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetIndex {
    /// Version of the format.
    pub(super) format: u32,
    /// Of the metadata.
    pub(super) uid: Uuid,
    /// Of the metadata.
    pub(super) sequence: u64,
    /// In the order of their numbers.
    pub(super) files: Vec<IndexedFile>,
}

/// A file of the set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexedFile {
    pub(super) name: String,
    /// Units: bytes.
    pub(super) size: u64,
    /// In file order, without the index itself and its signature.
    pub(super) members: Vec<IndexedMember>,
}

/// A member of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IndexedMember {
    pub(super) path: String,
    /// Start of the content. Units: bytes.
    pub(super) offset: u64,
    /// Units: bytes.
    pub(super) size: u64,
    /// Digest of a regular file's content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<Digest>,
    /// Target of a symbolic link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
}

#[derive(Deserialize)]
struct IndexFormat {
    format: u32,
}

impl SetIndex {
    pub(super) fn of(uid: Uuid, sequence: u64, files: &[PlannedFile]) -> Self {
        let files = files.iter().map(|file| IndexedFile {
            name: file.name.clone(),
            size: file.size,
            members: file
                .members
                .iter()
                .filter(|member| !is_own(&member.path))
                .map(IndexedMember::of)
                .collect(),
        });
        Self {
            format: FORMAT,
            uid,
            sequence,
            files: files.collect(),
        }
    }

    /// Errors: Invalid – malformed, or of a later format.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let wrong = |e: serde_json::Error| Error::invalid(INDEX, e.to_string());
        let IndexFormat { format } = serde_json::from_slice(bytes).map_err(wrong)?;
        if format != FORMAT {
            let reason = format!(
                "its format is {format}, only {FORMAT} is known here: a later version wrote it"
            );
            return Err(Error::invalid(INDEX, reason));
        }
        serde_json::from_slice(bytes).map_err(wrong)
    }

    /// The index, padded with white space to the reserved size; its own size if it does not fit.
    pub(super) fn to_bytes(&self, kept: usize) -> Result<Bytes, usize> {
        let mut bytes = serde_json::to_vec(self).expect("texts and numbers are JSON");
        if bytes.len() >= kept {
            return Err(bytes.len());
        }
        bytes.resize(kept - 1, b' ');
        bytes.push(b'\n');
        Ok(bytes.into())
    }
}

impl IndexedMember {
    fn of(member: &PlannedMember) -> Self {
        let target = match &member.kind {
            MemberKind::Symlink(target) => Some(target.clone()),
            _ => None,
        };
        Self {
            path: member.path.clone(),
            offset: member.offset,
            size: member.size,
            digest: member.digest.clone(),
            target,
        }
    }
}

/// Whether it is the index or its signature.
pub(super) fn is_own(path: &str) -> bool {
    [INDEX, SIGNATURE].contains(&path)
}
