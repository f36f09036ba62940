//! Pruned catalogs alone, without their images.

use std::collections::BTreeMap;

use model::Error;

use super::setup::{RunContext, Sources};
use super::{plan, select, transfer};
use crate::publish::MirrorTarget;
use crate::results;

/// Puts the catalogs of the set into the target, without the images that they name.
///
/// Errors: a catalog that cannot be read or lacks a selected package; those of source and target.
pub async fn push_catalogs(
    sources: Sources<'_>,
    context: RunContext<'_>,
    target: &MirrorTarget,
) -> Result<Vec<results::MirroredCatalog>, Error> {
    let selection = select::image_set(sources, context, None).await?;
    let scratch = selection.scratch.path();
    let no_pins = BTreeMap::new();
    let catalogs = plan::pruned_catalogs(selection.selected.catalogs, &no_pins, scratch).await?;
    let sent = transfer::catalogs(context, &catalogs, target, scratch).await?;
    Ok(sent.catalogs)
}
