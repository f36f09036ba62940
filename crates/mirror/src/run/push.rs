//! A smaller catalog alone.

use std::collections::BTreeMap;

use model::Error;

use super::Setup;
use super::catalogs::{self, Item};
use super::prepare::write_index;
use crate::operators::Original;
use crate::publish::Target;
use crate::results;
use crate::select::{SelectOptions, select};

/// Puts the catalogs of the set into the target, without the images that they name.
///
/// Errors: a catalog that cannot be read, or does not have what is wanted; those of source and target.
pub async fn push_catalogs(
    setup: Setup<'_>,
    target: &Target,
) -> Result<Vec<results::Catalog>, Error> {
    let scratch = tempfile::tempdir_in(setup.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    let options = SelectOptions {
        scratch: scratch.path(),
        platform: setup.platform,
        goes_on: setup.limits.goes_on,
        skip_missing: setup.skip_missing,
    };
    let mirror = &setup.set.mirror;
    let selected = select(setup.client, mirror, None, options, setup.progress).await?;
    let mut pushed = Vec::new();
    for (number, catalog) in selected.catalogs.iter().enumerate() {
        let opened = &catalog.opened;
        let original = Original::fetch(&opened.place, &opened.digest).await?;
        let index = scratch.path().join(format!("index-{number}.json"));
        let no_pins = BTreeMap::new();
        write_index(&opened.cache, &catalog.choice, &no_pins, &index).await?;
        let item = Item {
            name: &catalog.name,
            original: &original,
            index: &index,
            repository: &catalog.repository,
            tag: &catalog.tag,
            template: catalog.template.as_ref(),
        };
        let (catalog, _) = catalogs::put(setup, item, target, scratch.path()).await?;
        pushed.push(catalog);
    }
    Ok(pushed)
}
