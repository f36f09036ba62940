//! The tags in the storage tree of an archive.

use std::collections::BTreeMap;

use model::Error;
use oci::{Digest, Repository, Tag};

use crate::archive::set::Set;
use crate::archive::storage_tree::{ROOT, TreeFile};

/// A link is a digest. Units: bytes.
const LINK_LIMIT_BYTES: u64 = 256;

/// The tags of a storage tree.
#[derive(Debug, Default)]
pub(super) struct StorageTree {
    tags: BTreeMap<(Repository, Tag), Digest>,
}

impl StorageTree {
    /// Blocking. Errors: Invalid – a link is no digest; Internal – the archive cannot be read.
    pub(super) fn read(set: &Set) -> Result<Self, Error> {
        let mut tree = Self::default();
        for (path, place) in set.below(ROOT) {
            if let Some(TreeFile::Tag(repository, tag)) = TreeFile::parse(path) {
                let link = place.read(LINK_LIMIT_BYTES)?;
                let digest = String::from_utf8_lossy(&link).trim().parse();
                let digest = digest.map_err(|e: Error| Error::invalid(path, e.to_string()))?;
                tree.tags.insert((repository, tag), digest);
            }
        }
        Ok(tree)
    }

    /// All tags with their digests.
    pub(super) fn tags(&self) -> impl Iterator<Item = (&(Repository, Tag), &Digest)> {
        self.tags.iter()
    }

    /// The digest of a tag.
    pub(super) fn tagged(&self, repository: &Repository, tag: &Tag) -> Option<&Digest> {
        self.tags.get(&(repository.clone(), tag.clone()))
    }

    /// The tag and digest of an artifact that is attached to a manifest by its tag.
    pub(super) fn attached(
        &self,
        repository: &Repository,
        subject: &Digest,
        suffix: &str,
    ) -> Option<(Tag, Digest)> {
        let tag = format!("{}.{suffix}", crate::names::v2::tag_of_digest(subject));
        let tag: Tag = tag.parse().ok()?;
        let digest = self.tagged(repository, &tag)?.clone();
        Some((tag, digest))
    }
}
