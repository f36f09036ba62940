//! Stage 1, select: an image set becomes the catalogs, releases, charts and images that it names.

mod v2_names;

use std::collections::HashMap;

use model::Error;
use model::mirror_metadata::PastMirror;
use oci::{Repository, Tag};
use tempfile::TempDir;

use super::setup::{RunContext, Sources};
use crate::names::Naming;
use crate::select::{SelectOptions, Selected, select};

/// The record of this stage.
#[derive(Debug)]
pub(super) struct SetSelection {
    pub(super) selected: Selected,
    /// Temporary files of the run, removed with this.
    pub(super) scratch: TempDir,
}

/// Selects what the set of the run names. `last` is the past mirror of the previous run, which gives the minimum versions.
///
/// Errors: as [`select`]; Invalid – two catalogs have one name in the target.
pub(super) async fn image_set(
    sources: Sources<'_>,
    context: RunContext<'_>,
    last: Option<&PastMirror>,
) -> Result<SetSelection, Error> {
    let scratch = tempfile::Builder::new()
        .prefix("run-")
        .tempdir_in(context.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let options = SelectOptions {
        scratch: scratch.path(),
        platform: sources.platform,
        continue_on_error: context.limits.continue_on_error,
        skip_missing: sources.skip_missing,
    };
    let mirror = &sources.set.mirror;
    let mut selected = select(sources.client, mirror, last, options, context.progress).await?;
    if context.naming == Naming::V2 {
        v2_names::rename(&mut selected, &mirror.additional_images)?;
    }
    let names = selected.catalogs.iter();
    refuse_equal_names(names.map(|it| (it.name.as_str(), &it.repository, &it.tag)))?;
    Ok(SetSelection { selected, scratch })
}

/// Compares the names of catalogs below the target's namespace.
///
/// Errors: Invalid – two are equal: clusters of one catalog would get the other.
pub(super) fn refuse_equal_names<'a>(
    catalogs: impl Iterator<Item = (&'a str, &'a Repository, &'a Tag)>,
) -> Result<(), Error> {
    let mut named = HashMap::new();
    for (name, repository, tag) in catalogs {
        if let Some(other) = named.insert((repository, tag), name) {
            let reason = format!(
                "{other} and {name} have the same name in the target, {repository}:{tag}: give one of them another targetCatalog or targetTag"
            );
            return Err(Error::invalid("catalogs", reason));
        }
    }
    Ok(())
}
