//! Packages that vanish from a catalog of the target when another set replaces it.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::Path;

use model::Error;
use oci::Reference;
use oci_client::image::ImageLocation;

use super::plan::{PreparedRun, Publication};
use super::setup::{CatalogForm, RunContext, blocking};
use crate::operators::{OpenedCatalog, folder_of, index_path};
use crate::publish::MirrorTarget;

/// Warnings of a dry run about the packages that a copy would take from the target.
///
/// Errors: Internal – a pruned catalog cannot be read; Invalid – a name does not fit into the target.
pub async fn vanishing_by_copy(
    context: RunContext<'_>,
    prepared: &PreparedRun,
    target: &MirrorTarget,
) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    if context.catalogs == CatalogForm::Original {
        return Ok(notes);
    }
    let scratch = prepared.scratch.path();
    for it in &prepared.catalogs {
        let served = Reference {
            tag: Some(it.catalog.tag.clone()),
            ..target.place(&it.catalog.repository)?
        };
        notes.extend(vanishing(&it.index, &served, target, scratch).await?);
    }
    Ok(notes)
}

/// Warnings of a dry run about the packages that a publication would take from the target.
///
/// Errors: as [`vanishing_by_copy`]; those of the archives.
pub async fn vanishing_by_publication(
    context: RunContext<'_>,
    publication: &Publication,
    target: &MirrorTarget,
) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    if context.catalogs == CatalogForm::Original {
        return Ok(notes);
    }
    let scratch = tempfile::tempdir_in(context.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    for (number, catalog) in publication.catalogs.iter().enumerate() {
        let index = scratch.path().join(format!("index-{number}.json"));
        let (from, to) = (index_path(&folder_of(&catalog.name)), index.clone());
        let archives = publication.set.clone();
        blocking(move || archives.extract(&from, &to)).await?;
        let served = Reference {
            tag: Some(catalog.tag.clone()),
            ..target.place(&catalog.repository)?
        };
        notes.extend(vanishing(&index, &served, target, scratch.path()).await?);
    }
    Ok(notes)
}

/// A warning with the packages of the target's catalog that its successor lacks. None where it cannot be read: it is not
/// needed.
///
/// Errors: Internal – the pruned catalog, in the file `index`, cannot be read.
pub(super) async fn vanishing(
    index: &Path,
    reference: &Reference,
    target: &MirrorTarget,
    scratch: &Path,
) -> Result<Option<String>, Error> {
    let place = ImageLocation::Registry {
        client: target.client.clone(),
        reference: reference.clone(),
    };
    let Ok(served) = OpenedCatalog::open(place, scratch).await else {
        return Ok(None);
    };
    let index = index.to_owned();
    let kept = blocking(move || packages(&index)).await?;
    let served = served.cache.package_names().into_iter();
    let gone: Vec<_> = served.filter(|name| !kept.contains(name)).collect();
    if gone.is_empty() {
        return Ok(None);
    }
    let gone = gone.join(", ");
    Ok(Some(format!(
        "{reference}: packages that clusters got from it so far are no longer in it, since this set does not select them: {gone}"
    )))
}

/// Names of the packages of a pruned catalog.
fn packages(index: &Path) -> Result<BTreeSet<String>, Error> {
    let failed = |e| Error::internal(format!("reading {}", index.display()), e);
    let content = std::fs::read(index).map_err(failed)?;
    let mut names = BTreeSet::new();
    let files = [(index.to_owned(), content)].into_iter();
    let read = catalog::read_files(files, NonZeroUsize::MIN, |document| {
        if document.schema == catalog::PACKAGE {
            names.insert(document.name);
        }
        Ok::<_, Infallible>(())
    });
    match read {
        Ok(_) => Ok(names),
        Err(never) => match never {},
    }
}
