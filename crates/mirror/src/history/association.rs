//! Images as metadata has them.

use std::collections::BTreeSet;

use model::Error;
use model::mirror_metadata::Association;
use oci::{Digest, Kind, Manifest, Reference, Repository};

use crate::content::{ImageContent, ResolvedImage};
use crate::publish::{HeldBlobs, MirrorTarget};
use crate::section::Section;

/// Key of an association: source, place and tag.
pub(super) type AssociationKey = (String, String, String);

/// The associations of all images and of their parts. Catalogs and the upgrade graph have none: each run makes them anew.
///
/// Errors: NotFound – an image has no manifest; Invalid – a name does not fit into the target.
pub(super) fn associations(
    content: &ImageContent,
    target: Option<&MirrorTarget>,
) -> Result<Vec<Association>, Error> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for image in content.images.iter().filter(|image| is_remembered(image)) {
        let path = path(image, target)?;
        let manifests = content.manifests_of(&image.digest);
        if manifests.is_empty() {
            return Err(Error::not_found("manifest", image.pinned()));
        }
        for manifest in manifests.into_iter().rev() {
            let is_image = manifest.digest == image.digest;
            let (name, tag) = if is_image {
                (name(image), image.wanted.tag.to_string())
            } else {
                (manifest.digest.to_string(), String::new())
            };
            if !seen.insert((name.clone(), path.clone(), tag.clone())) {
                continue;
            }
            found.push(Association {
                name,
                path: path.clone(),
                id: manifest.digest.to_string(),
                tag_symlink: tag,
                kind: image.wanted.kind,
                manifest_digests: parts(manifest, content),
                layer_digests: layers(manifest),
            });
        }
    }
    Ok(found)
}

/// Name of an image in metadata: by digest, except where a catalog in the target names it by tag. Source: the peer.
pub(crate) fn name(image: &ResolvedImage) -> String {
    let wanted = &image.wanted;
    let is_of_catalog = Section::of(wanted.kind) == Some(Section::Operator);
    if is_of_catalog && wanted.is_known_by_tag() {
        wanted.source.to_string()
    } else {
        image.pinned().to_string()
    }
}

/// Whether metadata has associations of the image.
pub(super) fn is_remembered(image: &ResolvedImage) -> bool {
    Section::of(image.wanted.kind).is_some()
}

/// Key of an image.
pub(super) fn key(
    image: &ResolvedImage,
    target: Option<&MirrorTarget>,
) -> Result<AssociationKey, Error> {
    let place = place(&image.wanted.repository, target)?;
    let tag = image.wanted.tag.to_string();
    Ok((image.pinned().to_string(), place, tag))
}

/// The key of an association.
pub(super) fn key_of(association: &Association) -> AssociationKey {
    (
        pinned(association),
        place_of(association).to_owned(),
        association.tag_symlink.clone(),
    )
}

/// The source by digest, under any name.
fn pinned(association: &Association) -> String {
    let Association { name, id, .. } = association;
    if name.contains('@') || is_part(association) {
        return name.clone();
    }
    format!("{}@{id}", repository_of(name))
}

/// A reference without tag and digest.
pub(super) fn repository_of(reference: &str) -> &str {
    let named = reference
        .split_once('@')
        .map_or(reference, |(named, _)| named);
    let tag = named.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'));
    tag.map_or(named, |(repository, _)| repository)
}

/// Place of a repository's images: in an archive, or in a target.
pub(crate) fn place(
    repository: &Repository,
    target: Option<&MirrorTarget>,
) -> Result<String, Error> {
    match target {
        None => Ok(repository.to_string()),
        Some(target) => target.place(repository).map(|place| place.to_string()),
    }
}

/// Place of an association's image, without its digest.
pub(super) fn place_of(association: &Association) -> &str {
    let path = &association.path;
    path.split_once('@').map_or(path, |(place, _)| place)
}

/// Whether it is a part of an index, and no image with a name.
pub(super) fn is_part(association: &Association) -> bool {
    association.name.parse::<Digest>().is_ok()
}

/// The repository in the target. Associations of direct copies have the host in their path.
///
/// Errors: Invalid – the path is malformed, or does not fit into the target.
pub(crate) fn repository_in(
    association: &Association,
    target: &MirrorTarget,
) -> Result<Repository, Error> {
    let wrong = |e: Error| {
        let field = format!("path of {} in the metadata", association.name);
        Error::invalid(field, e.to_string())
    };
    let path = &association.path;
    match path.parse::<Repository>() {
        Ok(repository) => target.place(&repository).map(|place| place.repository),
        Err(_) => Reference::parse_local(path).map(|it| it.repository),
    }
    .map_err(wrong)
}

/// Repositories of the target with each blob, by its metadata: archives after the first have only new blobs.
///
/// Errors: Invalid – metadata with a malformed path.
pub fn held(there: &[Association], target: &MirrorTarget) -> Result<HeldBlobs, Error> {
    let mut held = HeldBlobs::new();
    for association in there {
        let repository = repository_in(association, target)?;
        // Malformed digests are never requested.
        let blobs = association.layer_digests.iter();
        for digest in blobs.filter_map(|it| it.parse().ok()) {
            held.entry(digest).or_default().insert(repository.clone());
        }
    }
    Ok(held)
}

fn path(image: &ResolvedImage, target: Option<&MirrorTarget>) -> Result<String, Error> {
    let place = place(&image.wanted.repository, target)?;
    Ok(match target {
        None => place,
        Some(_) => format!("{place}@{}", image.digest),
    })
}

/// The mirrored parts of an index.
pub(super) fn parts(manifest: &Manifest, content: &ImageContent) -> Vec<String> {
    let parts = manifest.required_manifests();
    let carried = parts.filter(|part| content.manifests.contains_key(*part));
    carried.map(Digest::to_string).collect()
}

/// The layers of an image, and its configuration at the end.
pub(crate) fn layers(manifest: &Manifest) -> Vec<String> {
    let (layers, config) = match &manifest.kind {
        Kind::Image { config, layers } => (layers.as_slice(), Some(config)),
        Kind::Schema1 { layers, .. } => (layers.as_slice(), None),
        Kind::Index { .. } => (&[][..], None),
    };
    let all = layers.iter().chain(config);
    all.map(|blob| blob.digest.to_string()).collect()
}
