//! From registries to a target.

use std::collections::BTreeMap;

use model::Error;

use super::{catalogs, graph};
use crate::archive::FilePlace;
use crate::blobs::Registries;
use crate::helm;
use crate::publish::{MirrorTarget, publish};
use crate::results::Copied;
use crate::run::outcome::RunOutcome;
use crate::run::plan::PreparedRun;
use crate::run::setup::{RunContext, Sources};

/// Copies the prepared content: the images, then the catalogs that name them, then the upgrade graph.
///
/// Errors: an image that cannot be copied, unless the run continues on errors; a catalog or the upgrade graph.
pub(in crate::run) async fn copy(
    sources: Sources<'_>,
    context: RunContext<'_>,
    prepared: &PreparedRun,
    target: &MirrorTarget,
) -> Result<RunOutcome, Error> {
    let content = &prepared.content;
    let blobs = Registries {
        client: sources.client,
        web: &sources.platform.web,
        blobs: &content.blobs,
    };
    let (limits, progress) = (context.limits, context.progress);
    let published = publish(content, &blobs, target, BTreeMap::new(), limits, progress).await;
    let mirror = &sources.set.mirror;
    let mut outcome = RunOutcome::of(content, published, target, mirror, limits)?;
    outcome
        .results
        .remember(&prepared.mirrored, target, mirror)?;
    let offers = prepared.releases.boot_images.offers();
    outcome.results.offer(&offers, target)?;
    let signatures = prepared.releases.signatures.iter();
    let files = signatures.map(|it| (it.file_name(), it.config_map()));
    outcome.results.signatures = files.collect();
    let scratch = prepared.scratch.path();
    let sent = catalogs(context, &prepared.catalogs, target, scratch).await?;
    outcome.add_catalogs(sent);
    if let Some(data) = &prepared.releases.graph {
        graph::put(context, data, target, scratch, &mut outcome).await?;
    }
    for chart in &prepared.charts {
        outcome.results.charts.push(Copied {
            path: format!("{}{}", helm::FOLDER, chart.name),
            from: FilePlace::of_file(&chart.path)?,
        });
    }
    Ok(outcome)
}
