//! Catalogs into the target.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use model::Error;
use model::mirror_metadata::ImageType;
use oci::{Reference, Repository, Tag};
use serde_json::Value;

use super::{CatalogForm, Setup, built_image};
use crate::content::{Wanted, Why};
use crate::operators::{self, Original};
use crate::progress::Amount;
use crate::publish::Target;
use crate::results;

/// A catalog that is put into the target.
pub(super) struct Item<'a> {
    /// The name under which it is remembered.
    pub(super) name: &'a str,
    pub(super) original: &'a Original,
    /// The file with the smaller catalog.
    pub(super) index: &'a Path,
    /// Where it goes, below the target's namespace.
    pub(super) repository: &'a Repository,
    pub(super) tag: &'a Tag,
    /// A CatalogSource to take the rest from.
    pub(super) template: Option<&'a Value>,
}

/// Sends the catalog in the form that the run has: as it is, or an image that is made of the smaller one. What was sent.
///
/// Errors: Invalid – the original is no image of a catalog; those of source and target.
pub(super) async fn put(
    setup: Setup<'_>,
    item: Item<'_>,
    target: &Target,
    scratch: &Path,
) -> Result<(results::Catalog, Amount), Error> {
    let folder = tempfile::tempdir_in(scratch)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let Item { original, .. } = item;
    let image = match setup.catalogs {
        CatalogForm::Original => original.image(),
        CatalogForm::Pinned | CatalogForm::Tagged => {
            operators::rebuild(original.base(), item.index, folder.path()).await?
        }
    };
    let place = Reference {
        tag: Some(item.tag.clone()),
        ..target.place(item.repository)?
    };
    let catalog = item.name.to_owned();
    let wanted = Wanted {
        source: place.clone(),
        repository: item.repository.clone(),
        tag: item.tag.clone(),
        kind: ImageType::OperatorCatalog,
        why: vec![Why::Catalog { catalog }],
        platforms: Vec::new(),
        may_be_missing: false,
    };
    let put = built_image::put(setup, image, wanted, original, BTreeMap::new(), target);
    let (_, sent) = put.await?;
    let catalog = results::Catalog {
        name: item.name.to_owned(),
        repository: item.repository.clone(),
        destination: place,
        template: item.template.cloned(),
    };
    Ok((catalog, sent))
}

/// Compares where catalogs (each with its name) go, below the target's namespace.
///
/// Errors: Invalid – two have one place, where the clusters of one would get the other.
pub(super) fn apart<'a>(
    places: impl Iterator<Item = (&'a str, &'a Repository, &'a Tag)>,
) -> Result<(), Error> {
    let mut placed = HashMap::new();
    for (name, repository, tag) in places {
        if let Some(other) = placed.insert((repository, tag), name) {
            let reason = format!(
                "{other} and {name} have the same name in the target, {repository}:{tag}: give one of them another targetCatalog or targetTag"
            );
            return Err(Error::invalid("catalogs", reason));
        }
    }
    Ok(())
}
