//! The images of a set.

use std::collections::{BTreeMap, BTreeSet};

use model::Error;
use model::mirror_metadata::{Association, Metadata};
use oci::{Digest, MANIFEST_LIMIT_BYTES, Manifest, Reference, Repository, Tag, media_type};

use super::Set;
use crate::archive::name;
use crate::content::{Blob, Content, Image, Origin, Wanted, Why};

impl Set {
    /// The images of the run in the order in which they are read from front to back. Blobs that [`Self::blob`] does not
    /// find were carried by former runs.
    ///
    /// Blocking: manifests are read and compared with their digests. Errors: Invalid – a manifest, tag or blob is missing
    /// or damaged; Internal – a file cannot be read.
    pub fn content(&self) -> Result<Content, Error> {
        let mut faults = Vec::new();
        let content = self.gather(&mut faults);
        let others = faults.len().saturating_sub(1);
        match faults.into_iter().next() {
            None => Ok(content),
            Some(fault) if others == 0 => Err(fault),
            Some(fault) => {
                let reason = format!(
                    "{fault}, and {others} other faults: `atoll mirror verify` tells them all"
                );
                Err(Error::invalid("archive", reason))
            }
        }
    }

    /// As [`Self::content`], of a set with faults.
    pub(in crate::archive) fn gather(&self, faults: &mut Vec<Error>) -> Content {
        let mut content = Content::default();
        for association in &self.metadata.past_mirror.associations {
            if let Err(fault) = self.add(association, &mut content) {
                faults.push(fault);
            }
        }
        let past = past(&self.metadata);
        let mut blobs = BTreeMap::new();
        for image in &content.images {
            let origin = Origin {
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

    /// Where the last of an image's blobs lies.
    fn end(&self, image: &Image, content: &Content) -> Option<(usize, u64)> {
        let manifests = content.manifests_of(&image.digest);
        let blobs = manifests.iter().flat_map(|manifest| manifest.blobs());
        let spots = blobs.filter_map(|blob| self.members.get(&name::blob(&blob.digest)));
        spots.map(|spot| (spot.file, spot.offset)).max()
    }

    fn add(&self, association: &Association, content: &mut Content) -> Result<(), Error> {
        let Association {
            name,
            path,
            id,
            tag_symlink,
            kind,
            ..
        } = association;
        let wrong =
            |e: Error| Error::invalid(format!("image {name} in the metadata"), e.to_string());
        let digest: Digest = id.parse().map_err(wrong)?;
        let repository: Repository = path.parse().map_err(wrong)?;
        if !content.manifests.contains_key(&digest) {
            let manifest = self.manifest(&repository, &digest).map_err(wrong)?;
            content.manifests.insert(digest.clone(), manifest);
        }
        // A part of an index.
        if name.parse::<Digest>().is_ok() {
            return Ok(());
        }
        let source: Reference = name.parse().map_err(wrong)?;
        let tag: Tag = tag_symlink.parse().map_err(wrong)?;
        if !self.has_link(&name::manifest(&repository, &tag)) {
            return Err(wrong(Error::not_found("tag", &tag)));
        }
        let wanted = Wanted {
            source,
            repository,
            tag,
            kind: *kind,
            why: vec![Why::Archive],
            platforms: Vec::new(),
            may_be_missing: false,
        };
        content.images.push(Image { wanted, digest });
        Ok(())
    }

    fn manifest(&self, repository: &Repository, digest: &Digest) -> Result<Manifest, Error> {
        let place = self
            .place(&name::manifest(repository, digest))
            .or_else(|| self.blob(digest))
            .ok_or_else(|| Error::not_found("manifest", digest))?;
        let manifest = Manifest::parse(place.read(MANIFEST_LIMIT_BYTES as u64)?, None)?;
        if manifest.digest != *digest {
            return Err(Error::invalid("manifest", format!("{digest} is damaged")));
        }
        Ok(manifest)
    }

    fn add_blobs(
        &self,
        manifest: &Manifest,
        origin: &Origin,
        past: &BTreeSet<&str>,
        blobs: &mut BTreeMap<Digest, Blob>,
    ) -> Result<(), String> {
        let mut missing = Vec::new();
        for descriptor in manifest.blobs() {
            let digest = &descriptor.digest;
            let place = self.blob(digest);
            if place.is_none() {
                if media_type::is_nondistributable(&descriptor.media_type) {
                    continue;
                }
                if !past.contains(digest.to_string().as_str()) {
                    missing.push(digest.to_string());
                    continue;
                }
            }
            let size = place.map_or(descriptor.size, |place| place.size);
            let blob = blobs.entry(digest.clone()).or_insert_with(|| Blob {
                size,
                sources: BTreeSet::new(),
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

/// What former runs have carried, so that this one did not.
fn past(metadata: &Metadata) -> BTreeSet<&str> {
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
