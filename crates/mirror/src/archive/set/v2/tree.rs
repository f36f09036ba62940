//! The storage tree of an archive.

use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use oci::{Digest, Repository, Tag};

use crate::archive::set::Set;
use crate::archive::storage_tree::{ROOT, TreeFile};

/// A link is a digest. Units: bytes.
const LINK_LIMIT_BYTES: u64 = 256;

/// Repositories, tags and blobs of a storage tree.
#[derive(Debug, Default)]
pub(super) struct StorageTree {
    /// Paths of the blobs that the archive has.
    pub(super) blobs: BTreeMap<Digest, String>,
    /// The manifests of repositories, also those whose bytes a previous archive has.
    pub(super) manifests: BTreeSet<(Repository, Digest)>,
    /// Repositories with each blob, here or in a previous archive.
    pub(super) layers: BTreeMap<Digest, BTreeSet<Repository>>,
    tags: BTreeMap<(Repository, Tag), Digest>,
}

impl StorageTree {
    /// Blocking. Errors: Invalid – a link is no digest; Internal – the archive cannot be read.
    pub(super) fn read(set: &Set) -> Result<Self, Error> {
        let mut tree = Self::default();
        for (path, place) in set.below(ROOT) {
            match TreeFile::parse(path) {
                Some(TreeFile::Blob(digest)) => {
                    tree.blobs.insert(digest, path.to_owned());
                }
                Some(TreeFile::Manifest(repository, digest)) => {
                    tree.manifests.insert((repository, digest));
                }
                Some(TreeFile::Layer(repository, digest)) => {
                    tree.layers.entry(digest).or_default().insert(repository);
                }
                Some(TreeFile::Tag(repository, tag)) => {
                    let link = place.read(LINK_LIMIT_BYTES)?;
                    let digest = String::from_utf8_lossy(&link).trim().parse();
                    let digest = digest.map_err(|e: Error| Error::invalid(path, e.to_string()))?;
                    tree.tags.insert((repository, tag), digest);
                }
                None => {}
            }
        }
        Ok(tree)
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
