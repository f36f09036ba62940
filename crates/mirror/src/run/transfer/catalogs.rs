//! Operator catalogs into the target.

use std::collections::BTreeMap;
use std::path::Path;

use model::Error;
use model::mirror_metadata::ImageType;
use oci::{Reference, Repository, Tag};
use serde_json::Value;

use super::built_image;
use crate::content::{SelectedImage, Why};
use crate::names::{self, Naming};
use crate::operators::{self, Original};
use crate::progress::Amount;
use crate::publish::MirrorTarget;
use crate::results;
use crate::run::outcome::RunOutcome;
use crate::run::plan::PreparedCatalog;
use crate::run::setup::{CatalogForm, RunContext};
use crate::run::vanishing::vanishing;

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
    /// Whether it is served as its source has it, in any form of the run's catalogs. Source: the peer's v2, of whole catalogs.
    pub(super) is_original: bool,
    /// Whether its digest in the target is its tag there, in place of `tag`. Source: the peer's v2, of catalogs by digest.
    pub(super) is_tagged_by_digest: bool,
}

/// Catalogs in the target.
#[derive(Debug, Default)]
pub(in crate::run) struct SentCatalogs {
    pub(in crate::run) catalogs: Vec<results::MirroredCatalog>,
    /// The amount that was sent.
    pub(in crate::run) sent: Amount,
    /// Warnings for the user: packages that the target served so far.
    pub(in crate::run) notes: Vec<String>,
}

/// Sends prepared catalogs.
///
/// Errors: as [`put`].
pub(in crate::run) async fn catalogs(
    context: RunContext<'_>,
    catalogs: &[PreparedCatalog],
    target: &MirrorTarget,
    scratch: &Path,
) -> Result<SentCatalogs, Error> {
    let mut all = SentCatalogs::default();
    for prepared in catalogs {
        let catalog = &prepared.catalog;
        let item = CatalogItem {
            name: &catalog.name,
            original: &prepared.original,
            index: &prepared.index,
            repository: &catalog.repository,
            tag: &catalog.tag,
            template: catalog.template.as_ref(),
            is_original: context.naming == Naming::V2 && operators::is_whole(&catalog.operator),
            is_tagged_by_digest: context.naming == Naming::V2
                && names::v2::is_by_digest(&catalog.operator),
        };
        all.put(context, item, target, scratch).await?;
    }
    Ok(all)
}

impl SentCatalogs {
    /// Sends one more, and names the packages that vanish from the target by it.
    ///
    /// Errors: as [`put`].
    pub(super) async fn put(
        &mut self,
        context: RunContext<'_>,
        item: CatalogItem<'_>,
        target: &MirrorTarget,
        scratch: &Path,
    ) -> Result<(), Error> {
        if context.catalogs != CatalogForm::Original {
            let note = vanishing(item.index, &item.destination(target)?, target, scratch).await?;
            self.notes.extend(note);
        }
        let (catalog, sent) = put(context, item, target, scratch).await?;
        self.sent.add(sent);
        self.catalogs.push(catalog);
        Ok(())
    }
}

impl RunOutcome {
    /// Adds catalogs that were sent.
    pub(in crate::run) fn add_catalogs(&mut self, catalogs: SentCatalogs) {
        self.results.catalogs.extend(catalogs.catalogs);
        self.sent.add(catalogs.sent);
        self.notes.extend(catalogs.notes);
    }
}

impl CatalogItem<'_> {
    /// Its name in the target.
    fn destination(&self, target: &MirrorTarget) -> Result<Reference, Error> {
        Ok(Reference {
            tag: Some(self.tag.clone()),
            ..target.place(self.repository)?
        })
    }
}

/// Sends one catalog in the form of the run: the original image, or a rebuilt one; with the amount that was sent.
///
/// Errors: Invalid – the original is no catalog image; those of source and target.
async fn put(
    context: RunContext<'_>,
    item: CatalogItem<'_>,
    target: &MirrorTarget,
    scratch: &Path,
) -> Result<(results::MirroredCatalog, Amount), Error> {
    let folder = tempfile::tempdir_in(scratch)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let CatalogItem { original, .. } = item;
    let image = if item.is_original || context.catalogs == CatalogForm::Original {
        original.image()
    } else {
        operators::rebuild(original.base(), item.index, folder.path()).await?
    };
    let root = image.manifests.first().filter(|_| item.is_tagged_by_digest);
    let tag = root.map_or_else(
        || item.tag.clone(),
        |root| names::v2::tag_of_digest(&root.digest),
    );
    let place = Reference {
        tag: Some(tag.clone()),
        ..item.destination(target)?
    };
    let catalog = item.name.to_owned();
    let wanted = SelectedImage {
        source: place.clone(),
        repository: item.repository.clone(),
        tag,
        kind: ImageType::OperatorCatalog,
        why: vec![Why::Catalog { catalog }],
        platforms: Vec::new(),
        may_be_missing: false,
    };
    let put = built_image::put(context, image, wanted, original, BTreeMap::new(), target);
    let (_, sent) = put.await?;
    let catalog = results::MirroredCatalog {
        name: item.name.to_owned(),
        repository: item.repository.clone(),
        destination: place,
        template: item.template.cloned(),
    };
    Ok((catalog, sent))
}
