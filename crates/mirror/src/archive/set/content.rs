//! The images of a set.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use model::mirror_metadata::{Association, MirrorMetadata};
use oci::{Digest, Manifest, Reference, Repository, media_type};

use super::Set;
use crate::archive::name;
use crate::content::{
    ImageContent, ResolvedImage, SelectedImage, SourceBlob, SourceRepository, Why,
};

/// The image of an association; none for a part of an index.
fn image(association: &Association) -> Result<Option<ResolvedImage>, Error> {
    let wrong = |e: Error| wrong(association, &e);
    if association.name.parse::<Digest>().is_ok() {
        return Ok(None);
    }
    let wanted = SelectedImage {
        source: Reference::parse_local(&association.name).map_err(wrong)?,
        repository: association.path.parse().map_err(wrong)?,
        tag: association.tag_symlink.parse().map_err(wrong)?,
        kind: association.kind,
        why: vec![Why::Archive],
        platforms: Vec::new(),
        may_be_missing: false,
    };
    let digest = association.id.parse().map_err(wrong)?;
    Ok(Some(ResolvedImage { wanted, digest }))
}

fn wrong(association: &Association, error: &Error) -> Error {
    let image = format!("image {} in the metadata", association.name);
    Error::invalid(image, error.to_string())
}

impl Set {
    /// The images of the run in the order of reading. Blobs that [`Self::blob`] does not find are in previous archives.
    ///
    /// Blocking: manifests are read and compared with their digests. Errors: Invalid – a manifest, tag or blob is missing
    /// or damaged; Internal – a file cannot be read.
    pub fn content(&self) -> Result<ImageContent, Error> {
        let mut faults = Vec::new();
        let content = self.gather(&mut faults);
        let others = faults.len().saturating_sub(1);
        match faults.into_iter().next() {
            None => Ok(content),
            Some(fault) if others == 0 => Err(fault),
            Some(fault) => {
                let reason = format!(
                    "{fault}, and {others} other faults: `atoll mirror verify` reports them all"
                );
                Err(Error::invalid("archive", reason))
            }
        }
    }

    /// As [`Self::content`], of a set with faults.
    pub(in crate::archive) fn gather(&self, faults: &mut Vec<Error>) -> ImageContent {
        let mut content = ImageContent::default();
        for association in &self.metadata.past_mirror.associations {
            if let Err(fault) = self.add(association, &mut content) {
                faults.push(fault);
            }
        }
        let past = past(&self.metadata);
        let mut blobs = BTreeMap::new();
        for image in &content.images {
            let origin = SourceRepository {
                registry: image.wanted.source.registry.clone(),
                repository: image.wanted.source.repository.clone(),
            };
            for manifest in content.manifests_of(&image.digest) {
                if let Err(fault) = self.add_blobs(manifest, &origin, &past, &mut blobs) {
                    faults.push(Error::invalid(image.pinned().to_string(), fault));
                }
            }
        }
        content.blobs = blobs;
        let mut images = std::mem::take(&mut content.images);
        images.sort_by_cached_key(|image| self.end(image, &content));
        content.images = images;
        content
    }

    /// End of the last blob of an image.
    fn end(&self, image: &ResolvedImage, content: &ImageContent) -> Option<(usize, u64)> {
        let manifests = content.manifests_of(&image.digest);
        let blobs = manifests.iter().flat_map(|manifest| manifest.blobs());
        let spots = blobs.filter_map(|blob| self.members.get(&name::blob(&blob.digest)));
        spots.map(|spot| (spot.file, spot.offset)).max()
    }

    /// Images of previous runs that are still selected.
    ///
    /// Errors: Invalid – a malformed name in the metadata.
    pub fn previous_images(&self) -> Result<Vec<ResolvedImage>, Error> {
        let own = self.metadata.past_mirror.associations.iter();
        let own: BTreeSet<_> = own.map(|it| (&it.name, &it.path)).collect();
        let past = self.metadata.past_associations.iter();
        let past = past.filter(|it| !own.contains(&(&it.name, &it.path)));
        past.filter_map(|it| image(it).transpose()).collect()
    }

    /// The images of this run and of previous ones.
    ///
    /// Errors: as [`Self::previous_images`].
    pub fn all_images(&self) -> Result<Vec<ResolvedImage>, Error> {
        let past = self.metadata.past_associations.iter();
        past.filter_map(|it| image(it).transpose()).collect()
    }

    fn add(&self, association: &Association, content: &mut ImageContent) -> Result<(), Error> {
        let wrong = |e: Error| wrong(association, &e);
        let digest: Digest = association.id.parse().map_err(wrong)?;
        let repository: Repository = association.path.parse().map_err(wrong)?;
        if let Entry::Vacant(free) = content.manifests.entry(digest) {
            let manifest = self.manifest(&repository, free.key()).map_err(wrong)?;
            free.insert(manifest);
        }
        let Some(image) = image(association)? else {
            return Ok(());
        };
        let tag = &image.wanted.tag;
        if !self.has_link(&name::manifest(&repository, tag)) {
            return Err(wrong(Error::not_found("tag", tag)));
        }
        content.images.push(image);
        Ok(())
    }

    fn manifest(&self, repository: &Repository, digest: &Digest) -> Result<Manifest, Error> {
        let place = self
            .place(&name::manifest(repository, digest))
            .or_else(|| self.blob(digest))
            .ok_or_else(|| Error::not_found("manifest", digest))?;
        place.manifest(digest)
    }

    fn add_blobs(
        &self,
        manifest: &Manifest,
        origin: &SourceRepository,
        past: &BTreeSet<&str>,
        blobs: &mut BTreeMap<Digest, SourceBlob>,
    ) -> Result<(), String> {
        let mut missing = Vec::new();
        for descriptor in manifest.blobs() {
            let digest = &descriptor.digest;
            let place = self.blob(digest);
            if place.is_none() {
                if media_type::is_nondistributable(&descriptor.media_type) {
                    continue;
                }
                let is_past = past.contains(digest.to_string().as_str())
                    || self.previous_blobs.contains_key(digest);
                if !is_past {
                    missing.push(digest.to_string());
                    continue;
                }
            }
            let size = place.map_or(descriptor.size, |place| place.size);
            let blob = blobs.entry(digest.clone()).or_insert_with(|| SourceBlob {
                size,
                sources: BTreeSet::new(),
                file: None,
            });
            blob.sources.insert(origin.clone());
        }
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!(
            "its blobs {} are missing: a file of the set is",
            missing.join(", ")
        ))
    }
}

/// Content of previous runs, which this one left out.
fn past(metadata: &MirrorMetadata) -> BTreeSet<&str> {
    let key = |it: &Association| (it.name.clone(), it.path.clone());
    let own: BTreeSet<_> = metadata.past_mirror.associations.iter().map(key).collect();
    let mut past = BTreeSet::new();
    for association in metadata
        .past_associations
        .iter()
        .filter(|it| !own.contains(&key(it)))
    {
        past.insert(association.id.as_str());
        past.extend(association.layer_digests.iter().map(String::as_str));
        past.extend(association.manifest_digests.iter().map(String::as_str));
    }
    past
}
