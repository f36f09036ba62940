//! Dry runs: the names in the target, and the reasons.

use std::collections::BTreeSet;

use model::Error;
use oci::{Reference, Repository, Tag};

use super::plan::{PreparedRun, Publication};
use crate::content::ImageContent;
use crate::publish::MirrorTarget;
use crate::results::{self, MirrorResults, MirroredCatalog, MirroredImage};

/// The reasons of bundles and images with `name` in their names, one a line.
pub fn reasons(prepared: &PreparedRun, name: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    for it in &prepared.catalogs {
        let catalog = &it.catalog.operator.catalog;
        for (package, part) in &it.catalog.choice {
            for (bundle, reason) in part
                .reasons
                .iter()
                .filter(|(bundle, _)| bundle.contains(name))
            {
                reasons.push(format!(
                    "{bundle} of package {package} in {catalog}: {reason}"
                ));
            }
        }
    }
    let images = prepared.content.images.iter().chain(&prepared.mirrored);
    for image in images {
        let source = image.pinned().to_string();
        if source.contains(name) {
            let why = image.wanted.why.iter();
            reasons.extend(why.map(|why| format!("{source}: {why}")));
        }
    }
    reasons
}

/// The names in the target by source, one a line.
///
/// Errors: Invalid – a name does not fit into the target.
pub fn mapping(prepared: &PreparedRun, target: &MirrorTarget) -> Result<String, Error> {
    let catalogs = prepared.catalogs.iter().map(|it| &it.catalog);
    let catalogs = catalogs.map(|it| (&it.name, &it.repository, &it.tag));
    of(&prepared.content, catalogs, target)
}

/// The manifests of indexes by source, one a line: those of [`mapping`] have the indexes alone. Without a target, the names are
/// those in an archive.
///
/// Errors: as [`mapping`].
pub fn manifest_mapping(
    content: &ImageContent,
    target: Option<&MirrorTarget>,
) -> Result<String, Error> {
    let mut lines = BTreeSet::new();
    for image in &content.images {
        let wanted = &image.wanted;
        let place = match target {
            Some(target) => target.place(&wanted.repository)?.to_string(),
            None => format!("file://{}", wanted.repository),
        };
        let source = wanted.source.without_version();
        let manifests = content.manifests_of(&image.digest).into_iter();
        let parts = manifests.filter(|manifest| manifest.digest != image.digest);
        lines.extend(parts.map(|part| format!("{source}@{0}={place}@{0}\n", part.digest)));
    }
    Ok(lines.into_iter().collect())
}

/// As [`mapping`], of archives.
///
/// Errors: as [`mapping`].
pub fn publication_mapping(
    publication: &Publication,
    target: &MirrorTarget,
) -> Result<String, Error> {
    let catalogs = publication.catalogs.iter();
    let catalogs = catalogs.map(|it| (&it.name, &it.repository, &it.tag));
    of(&publication.content, catalogs, target)
}

fn of<'a>(
    content: &ImageContent,
    catalogs: impl Iterator<Item = (&'a String, &'a Repository, &'a Tag)>,
    target: &MirrorTarget,
) -> Result<String, Error> {
    let place = |repository: &Repository, tag: &Tag| {
        Ok::<_, Error>(Reference {
            tag: Some(tag.clone()),
            ..target.place(repository)?
        })
    };
    let mut outcome = MirrorResults::default();
    for image in &content.images {
        let wanted = &image.wanted;
        outcome.images.push(MirroredImage {
            source: image.pinned(),
            destination: place(&wanted.repository, &wanted.tag)?,
            kind: wanted.kind,
            is_tagged: wanted.is_known_by_tag(),
        });
    }
    for (name, repository, tag) in catalogs {
        outcome.catalogs.push(MirroredCatalog {
            name: name.clone(),
            repository: repository.clone(),
            destination: place(repository, tag)?,
            template: None,
        });
    }
    Ok(results::mapping(&outcome))
}
