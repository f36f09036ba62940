//! Tags in the target that images of several sources have: each keeps the source that has it first.

use std::collections::BTreeMap;

use model::Error;
use oci::Digest;

use super::resolve::ResolvedImages;
use super::setup::PastImages;
use crate::content::{ResolvedImage, SelectedImage};
use crate::publish::MirrorTarget;
use crate::{history, names};

/// The source of each tag in the target: the one whose image previous runs put there, or else the first of this run.
#[derive(Debug)]
pub(super) struct TagOwners<'a> {
    /// Repositories of sources, by place and tag.
    sources: BTreeMap<(String, String), String>,
    target: Option<&'a MirrorTarget>,
}

impl<'a> TagOwners<'a> {
    /// Errors: Invalid – a name does not fit into the target.
    pub(super) fn of(past: PastImages<'a>, wanted: &[SelectedImage]) -> Result<Self, Error> {
        let previous = past.previous.tag_owners();
        let mut owners = Self {
            sources: previous
                .map(|(place, tag, source)| ((place, tag), source))
                .collect(),
            target: past.target,
        };
        for image in wanted {
            let key = owners.key(image)?;
            owners
                .sources
                .entry(key)
                .or_insert_with(|| source_of(image));
        }
        Ok(owners)
    }

    /// Gives images that their sources name by digest the tag of that digest, where another source has theirs.
    ///
    /// Errors: as [`Self::of`].
    pub(super) fn rename_pinned(&self, wanted: &mut [SelectedImage]) -> Result<Vec<String>, Error> {
        let mut notes = Vec::new();
        for image in wanted {
            if let Some(digest) = image.source.digest.clone() {
                notes.extend(self.rename(image, &digest)?);
            }
        }
        Ok(notes)
    }

    /// As [`Self::rename_pinned`], for images that their sources name by tag.
    ///
    /// Errors: as [`Self::of`].
    pub(super) fn rename_resolved(
        &self,
        resolved: &mut ResolvedImages,
    ) -> Result<Vec<String>, Error> {
        let mut notes = Vec::new();
        for ResolvedImage { wanted, digest } in &mut resolved.content.images {
            notes.extend(self.rename(wanted, digest)?);
        }
        Ok(notes)
    }

    /// Renames an image whose tag another source has; the warning about it.
    fn rename(&self, image: &mut SelectedImage, digest: &Digest) -> Result<Option<String>, Error> {
        let Some(owner) = self.sources.get(&self.key(image)?) else {
            return Ok(None);
        };
        if *owner == source_of(image) {
            return Ok(None);
        }
        let own = names::v2::tag_of_digest(digest);
        let note = format!(
            "{owner} and {} have the same name in the target, {}:{}: the first one keeps it, the other one is {own} there",
            image.source, image.repository, image.tag
        );
        image.tag = own;
        Ok(Some(note))
    }

    fn key(&self, image: &SelectedImage) -> Result<(String, String), Error> {
        let place = history::place(&image.repository, self.target)?;
        Ok((place, image.tag.to_string()))
    }
}

/// The repository of an image at its source.
fn source_of(image: &SelectedImage) -> String {
    image.source.without_version().to_string()
}
