//! Changes of a store as data: checked, journalled, applied to the folder and to the index.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) use crate::content_name::ContentName;
use oci::{Repository, Tag};

/// One atomic change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub(super) enum StoreChange {
    /// Makes stored bytes a blob of a repository.
    AddBlob {
        repository: Repository,
        blob: ContentName,
        /// Units: bytes.
        size: u64,
        from: BlobSource,
    },
    RemoveBlob {
        repository: Repository,
        blob: ContentName,
        /// Refuse the removal while a manifest needs the blob.
        #[serde(default)]
        only_unused: bool,
    },
    /// Stores the content, a manifest, and points tags at it.
    AddManifest {
        repository: Repository,
        manifest: ContentName,
        tags: Vec<Tag>,
        /// Accept the manifest even if content that it needs is missing.
        #[serde(default)]
        is_sparse: bool,
        /// The content has signatures, which the digest does not cover.
        #[serde(default)]
        is_signed: bool,
    },
    /// Removes a manifest and the tags that point at it.
    RemoveManifest {
        repository: Repository,
        manifest: ContentName,
        tags: Vec<Tag>,
        /// Refuse while anything needs it, or if it was pushed later than this. Units: nanoseconds since 1970.
        #[serde(default)]
        unless_since: Option<u64>,
        /// Record the manifests of an index, and its referrers, as orphans.
        #[serde(default)]
        frees: bool,
    },
    RemoveTag {
        repository: Repository,
        tag: Tag,
        /// Refuse if it was pushed later than this. Units: nanoseconds since 1970.
        #[serde(default)]
        unless_since: Option<u64>,
    },
}

/// Location of a new blob's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BlobSource {
    /// Stored under the digest already.
    Stored,
    /// In an upload of the repository, which this change ends.
    Upload(Uuid),
}

/// An entry of the journal: a change with its content, a manifest or a blob that is small enough to be journalled
/// instead of synced by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JournalEntry {
    pub(super) change: StoreChange,
    pub(super) content: Option<Bytes>,
}

impl StoreChange {
    /// Whether it takes up space.
    pub(super) fn adds(&self) -> bool {
        matches!(self, Self::AddBlob { .. } | Self::AddManifest { .. })
    }

    /// The changed repository.
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
