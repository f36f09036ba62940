//! From registries to a registry.

use std::collections::BTreeMap;

use model::Error;

use super::catalogs::{self, Item};
use super::prepare::Prepared;
use super::{Outcome, Setup};
use crate::blobs::Registries;
use crate::publish::{Target, publish};

/// Copies what was prepared to the target: the images, and then the catalogs that name them.
///
/// Errors: an image or catalog that cannot be copied, unless the run goes on then.
pub async fn direct(
    setup: Setup<'_>,
    prepared: Prepared,
    target: &Target,
) -> Result<Outcome, Error> {
    let Prepared {
        content, catalogs, ..
    } = &prepared;
    let blobs = Registries {
        client: setup.client,
        blobs: &content.blobs,
    };
    let (limits, progress) = (setup.limits, setup.progress);
    let published = publish(content, &blobs, target, BTreeMap::new(), limits, progress).await;
    let mut outcome = Outcome::of(content, published, target, &setup.set.mirror, limits)?;
    for prepared_catalog in catalogs {
        let item = Item {
            name: &prepared_catalog.catalog.name,
            original: &prepared_catalog.original,
            index: &prepared_catalog.index,
            repository: &prepared_catalog.catalog.repository,
            tag: &prepared_catalog.catalog.tag,
        };
        let scratch = prepared.scratch.path();
        let (catalog, sent) = catalogs::put(item, target, scratch, limits, progress).await?;
        outcome.sent.add(sent);
        outcome.results.catalogs.push(catalog);
    }
    outcome.failed.extend(prepared.failed);
    Ok(outcome)
}
