//! Operator catalogs into the target.

use std::collections::BTreeMap;
use std::path::Path;

use model::Error;
use model::mirror_metadata::ImageType;
use oci::{Reference, Repository, Tag};
use serde_json::Value;

use super::built_image;
use crate::content::{SelectedImage, Why};
use crate::operators::{self, Original};
use crate::progress::Amount;
use crate::publish::MirrorTarget;
use crate::results;
use crate::run::plan::PreparedCatalog;
use crate::run::setup::{CatalogForm, Setup};

/// A catalog to be sent.
pub(super) struct CatalogItem<'a> {
    /// Its unique name in metadata.
    pub(super) name: &'a str,
    pub(super) original: &'a Original,
    /// File of the pruned catalog.
    pub(super) index: &'a Path,
    /// Its name below the target's namespace.
    pub(super) repository: &'a Repository,
    pub(super) tag: &'a Tag,
    /// CatalogSource whose other fields are kept.
    pub(super) template: Option<&'a Value>,
}

/// Sends prepared catalogs; the catalogs in the target, and the amount that was sent.
///
/// Errors: as [`put`].
pub(in crate::run) async fn catalogs(
    setup: Setup<'_>,
    catalogs: &[PreparedCatalog],
    target: &MirrorTarget,
    scratch: &Path,
) -> Result<(Vec<results::MirroredCatalog>, Amount), Error> {
    let (mut placed, mut amount) = (Vec::new(), Amount::default());
    for prepared in catalogs {
        let catalog = &prepared.catalog;
        let item = CatalogItem {
            name: &catalog.name,
            original: &prepared.original,
            index: &prepared.index,
            repository: &catalog.repository,
            tag: &catalog.tag,
            template: catalog.template.as_ref(),
        };
        let (catalog, sent) = put(setup, item, target, scratch).await?;
        amount.add(sent);
        placed.push(catalog);
    }
    Ok((placed, amount))
}

/// Sends one catalog in the form of the run: the original image, or a rebuilt one; with the amount that was sent.
///
/// Errors: Invalid – the original is no catalog image; those of source and target.
pub(super) async fn put(
    setup: Setup<'_>,
    item: CatalogItem<'_>,
    target: &MirrorTarget,
    scratch: &Path,
) -> Result<(results::MirroredCatalog, Amount), Error> {
    let folder = tempfile::tempdir_in(scratch)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let CatalogItem { original, .. } = item;
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
    let wanted = SelectedImage {
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
    let catalog = results::MirroredCatalog {
        name: item.name.to_owned(),
        repository: item.repository.clone(),
        destination: place,
        template: item.template.cloned(),
    };
    Ok((catalog, sent))
}
