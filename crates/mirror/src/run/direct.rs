//! From registries to a registry.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Error;

use super::catalogs::{self, Item};
use super::graph;
use super::prepare::Prepared;
use super::remember::next;
use super::settle::{Memory, settle};
use super::{Outcome, Setup};
use crate::archive::Place;
use crate::blobs::Registries;
use crate::helm;
use crate::history::{Former, Pruning, Store, step, stored};
use crate::publish::{Target, publish};
use crate::results::Copied;

/// What a run to a registry will do.
#[derive(Debug)]
pub enum PlannedCopy {
    /// Copy what was prepared, and this.
    Copy(Box<Direct>),
    /// There is nothing that former runs did not copy.
    Nothing(&'static str),
}

/// What a run to a registry does besides copying.
#[derive(Debug, Default)]
pub struct Direct {
    /// What leaves the target; nothing of it, after `std::mem::take`.
    pub pruning: Pruning,
    metadata: Bytes,
    /// Where it is remembered, in this order; nowhere for a set without history.
    stores: Vec<Store>,
}

/// Plans what leaves the target and what is remembered, there and in `store`, where the set has one. `is_checked` says whether
/// the run has to be the one that follows what the target has.
///
/// Errors: Conflict – the target knows other runs of the set; Invalid – its metadata is none; those of the target.
pub async fn plan_direct(
    setup: Setup<'_>,
    prepared: &Prepared,
    former: &Former,
    target: &Target,
    store: Option<&Store>,
    is_checked: bool,
) -> Result<PlannedCopy, Error> {
    let Some(store) = store else {
        return Ok(PlannedCopy::Copy(Box::default()));
    };
    let next = next(setup, prepared, former, Some(target))?;
    let in_target = Store::in_target(target, next.metadata.uid)?;
    let there = in_target.read().await?;
    if is_checked {
        // The same sequence is that of a run which could not store its metadata here afterwards.
        step(there.as_ref(), &next.metadata)?;
    }
    let past = there.as_ref().map_or(&[][..], |it| &it.past_associations);
    let (uid, coming) = (next.metadata.uid, &next.metadata.past_associations);
    let pruning = Pruning::plan(uid, past, coming, target).await?;
    if pruning.is_empty()
        && let Some(reason) = next.reason_to_stop()
    {
        return Ok(PlannedCopy::Nothing(reason));
    }
    Ok(PlannedCopy::Copy(Box::new(Direct {
        pruning,
        metadata: stored(&next.metadata)?,
        stores: vec![in_target, store.clone()],
    })))
}

/// Copies what was prepared to the target: the images, and then the catalogs that name them. Then what the plan says leaves
/// it. The run is remembered by [`Outcome::remember`].
///
/// Errors: an image or catalog that cannot be copied or deleted, unless the run goes on then.
pub async fn direct(
    setup: Setup<'_>,
    prepared: Prepared,
    plan: Direct,
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
    let mirror = &setup.set.mirror;
    let mut outcome = Outcome::of(content, published, target, mirror, limits)?;
    outcome.results.remember(&prepared.known, target, mirror)?;
    let signatures = prepared.releases.signatures.iter();
    let files = signatures.map(|it| (it.file_name(), it.config_map()));
    outcome.results.signatures = files.collect();
    for prepared_catalog in catalogs {
        let item = Item {
            name: &prepared_catalog.catalog.name,
            original: &prepared_catalog.original,
            index: &prepared_catalog.index,
            repository: &prepared_catalog.catalog.repository,
            tag: &prepared_catalog.catalog.tag,
            template: prepared_catalog.catalog.template.as_ref(),
        };
        let scratch = prepared.scratch.path();
        let (catalog, sent) = catalogs::put(setup, item, target, scratch).await?;
        outcome.sent.add(sent);
        outcome.results.catalogs.push(catalog);
    }
    if let Some(data) = &prepared.releases.graph {
        graph::put(setup, data, target, prepared.scratch.path(), &mut outcome).await?;
    }
    let memory = Memory {
        metadata: plan.metadata,
        stores: plan.stores,
    };
    settle(setup, target, &plan.pruning, memory, &mut outcome).await?;
    for chart in prepared.charts {
        outcome.results.charts.push(Copied {
            path: format!("{}{}", helm::FOLDER, chart.name),
            from: Place::of_file(&chart.path)?,
        });
    }
    outcome.failed.extend(prepared.failed);
    outcome.unread = prepared.unread;
    outcome.scratch = Some(prepared.scratch);
    Ok(outcome)
}
