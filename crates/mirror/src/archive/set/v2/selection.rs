//! The images that a configuration selects, as the storage tree has them.

use model::mirror_metadata::ImageType;
use oci::{Digest, Reference, Repository, Tag};

use super::tree::StorageTree;
use crate::archive::set::Set;
use crate::content::{ResolvedImage, SelectedImage, Why};

/// The images that a configuration selects.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    pub(super) set: &'a Set,
    pub(super) tree: &'a StorageTree,
    pub(super) images: Vec<ResolvedImage>,
    /// Images that the tree does not have.
    pub(super) absent: Vec<SelectedImage>,
}

impl Selection<'_> {
    /// Adds the image that the tree has under a name.
    pub(super) fn add(
        &mut self,
        (repository, tag): (Repository, Tag),
        source: Reference,
        kind: ImageType,
    ) {
        let digest = self.tree.tagged(&repository, &tag).cloned();
        self.put((repository, tag), source, kind, digest);
    }

    /// Adds an image under a name, with its digest if the tree has it.
    pub(super) fn put(
        &mut self,
        (repository, tag): (Repository, Tag),
        source: Reference,
        kind: ImageType,
        digest: Option<Digest>,
    ) {
        let wanted = SelectedImage {
            source,
            repository,
            tag,
            kind,
            why: vec![Why::Archive],
            platforms: Vec::new(),
            may_be_missing: false,
        };
        match digest {
            Some(digest) => self.images.push(ResolvedImage { wanted, digest }),
            None => self.absent.push(wanted),
        }
    }
}
