//! What can happen to a store, as data: checked, journalled, written to the folder and to the index.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) use crate::content_name::Name;
use oci::{Repository, Tag};

/// One change. All of it becomes visible at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub(super) enum Change {
    /// Makes stored bytes a blob of a repository.
    AddBlob {
        repository: Repository,
        blob: Name,
        /// Units: bytes.
        size: u64,
        from: Source,
    },
    RemoveBlob {
        repository: Repository,
        blob: Name,
        /// Not when a manifest needs it.
        #[serde(default)]
        only_unused: bool,
    },
    /// Keeps the content, a manifest, and points tags at it.
    AddManifest {
        repository: Repository,
        manifest: Name,
        tags: Vec<Tag>,
        /// Though something that it needs may be missing.
        #[serde(default)]
        is_sparse: bool,
        /// The content has signatures that its digest is not over.
        #[serde(default)]
        is_signed: bool,
    },
    /// Takes away a manifest and the tags that point at it.
    RemoveManifest {
        repository: Repository,
        manifest: Name,
        tags: Vec<Tag>,
        /// Not when anything needs it, or when it was pushed later than this. Units: nanoseconds since 1970.
        #[serde(default)]
        unless_since: Option<u64>,
        /// What nothing but it names becomes garbage: the manifests of an index, and those that refer to it.
        #[serde(default)]
        frees: bool,
    },
    RemoveTag {
        repository: Repository,
        tag: Tag,
        /// Not when it was pushed later than this. Units: nanoseconds since 1970.
        #[serde(default)]
        unless_since: Option<u64>,
    },
}

/// Where the bytes of a new blob are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// Under their digest already.
    Stored,
    /// In an upload of the repository, which ends with this change.
    Upload(Uuid),
}

/// A change with the bytes that it brings along: a manifest, or a blob so small that it is journalled instead of
/// being synced by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) change: Change,
    pub(super) content: Option<Bytes>,
}

impl Change {
    /// Whether it needs room that stays taken.
    pub(super) fn adds(&self) -> bool {
        matches!(self, Self::AddBlob { .. } | Self::AddManifest { .. })
    }

    /// Where it happens.
    pub(super) fn repository(&self) -> &Repository {
        match self {
            Self::AddBlob { repository, .. }
            | Self::RemoveBlob { repository, .. }
            | Self::AddManifest { repository, .. }
            | Self::RemoveManifest { repository, .. }
            | Self::RemoveTag { repository, .. } => repository,
        }
    }
}
