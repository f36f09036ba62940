//! Members of the files of a set, at their places.

use std::path::PathBuf;

use bytes::Bytes;
use oci::Digest;

/// A file of a set.
#[derive(Debug, Clone)]
pub struct PlannedFile {
    pub name: String,
    /// One after the other, without gaps.
    pub members: Vec<PlannedMember>,
    /// With headers, padding and end marker. Units: bytes.
    pub size: u64,
}

/// A member of a file.
#[derive(Debug, Clone)]
pub struct PlannedMember {
    pub path: String,
    pub kind: MemberKind,
    /// Size of the content. Units: bytes.
    pub size: u64,
    /// Digest of the content, if it has any.
    pub digest: Option<Digest>,
    /// Start of its headers. Units: bytes.
    pub start: u64,
    /// Start of its content. Units: bytes.
    pub offset: u64,
}

/// Source of a member's content.
#[derive(Debug, Clone)]
pub enum MemberKind {
    /// In memory.
    Inline(Bytes),
    /// From a file of this machine.
    Local(PathBuf),
    /// Fetched from a registry.
    Blob(Digest),
    /// A symbolic link to that.
    Symlink(String),
    /// None: it is a folder.
    Directory,
}
