//! From an archive set to a target.

use std::path::Path;

use bytes::Bytes;
use model::Error;

use super::catalogs::{CatalogItem, SentCatalogs};
use super::graph;
use crate::archive::{SIGNATURES, Set};
use crate::helm;
use crate::operators::{folder_of, index_path};
use crate::platform::{
    BOOT_IMAGE_OFFERS, BootImageOffer, GRAPH_BASE, GRAPH_DATA, GraphData, usual_graph_base,
};
use crate::publish::{MirrorTarget, publish};
use crate::results::Copied;
use crate::run::outcome::RunOutcome;
use crate::run::plan::Publication;
use crate::run::setup::{RunContext, blocking};

/// Units: bytes. A reference is shorter.
const BASE_LIMIT_BYTES: u64 = 4096;
/// Units: bytes. The offer of one boot image takes 300.
const OFFERS_LIMIT_BYTES: u64 = 4 << 20;
/// Units: bytes. The signatures of one release take a few thousand.
const SIGNATURES_LIMIT_BYTES: u64 = 16 << 20;

/// Why images are in neither an archive nor a target.
const UNPUBLISHED: &str = "an archive before this one has it, and the target does not: publish the archives before it first, or pack one with --since that has all";
const ABSENT: &str =
    "the archive does not have it: it could not be mirrored when the archive was packed";

/// Publishes an archive set: the images, then the catalogs that name them, then the upgrade graph.
///
/// Errors: an image that cannot be sent, unless the run continues on errors; a catalog or the upgrade graph.
pub(in crate::run) async fn publication(
    context: RunContext<'_>,
    publication: &mut Publication,
    target: &MirrorTarget,
) -> Result<RunOutcome, Error> {
    let held = std::mem::take(&mut publication.held);
    let unpublished = std::mem::take(&mut publication.unpublished);
    if let (Some(first), false) = (unpublished.first(), context.limits.continue_on_error) {
        let others = unpublished.len() - 1;
        let reason = format!("{} and {others} other images: {UNPUBLISHED}", first.source);
        return Err(Error::conflict(reason));
    }
    let Publication {
        content,
        catalogs,
        set,
        ..
    } = publication;
    let (limits, progress) = (context.limits, context.progress);
    let published = publish(content, &*set, target, held, limits, progress).await;
    let mirror = &set.metadata().past_mirror.mirror;
    let sent = published.images.iter();
    let sent = sent.filter_map(|&it| content.images.get(it).cloned());
    let there: Vec<_> = sent.chain(set.previous_images()?).collect();
    let mut outcome = RunOutcome::of(content, published, target, mirror, limits)?;
    let previous = set.previous_images()?;
    outcome.results.remember(&previous, target, mirror)?;
    outcome.results.add_built(&there, target, mirror)?;
    let unpublished = unpublished.into_iter().map(|it| (it, UNPUBLISHED));
    let absent = set.absent().iter().cloned().map(|it| (it, ABSENT));
    let lacking = unpublished.chain(absent);
    let lacking = lacking.map(|(image, why)| (image, Error::conflict(why)));
    outcome.failed.extend(lacking);
    let archives = set.clone();
    let read = move || Ok((signatures(&archives)?, boot_image_offers(&archives)?));
    let (signatures, offers) = blocking(read).await?;
    outcome.results.signatures = signatures;
    outcome.results.offer(&offers, target)?;
    let scratch = tempfile::tempdir_in(context.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    for (number, catalog) in catalogs.iter().enumerate() {
        let index = scratch.path().join(format!("index-{number}.json"));
        let (from, to) = (index_path(&folder_of(&catalog.name)), index.clone());
        let archives = set.clone();
        blocking(move || archives.extract(&from, &to)).await?;
        let item = CatalogItem {
            name: &catalog.name,
            original: &catalog.original,
            index: &index,
            repository: &catalog.repository,
            tag: &catalog.tag,
            template: catalog.template.as_ref(),
            is_original: catalog.is_original,
            is_tagged_by_digest: catalog.is_tagged_by_digest,
        };
        let mut sent = SentCatalogs::default();
        sent.put(context, item, target, scratch.path()).await?;
        outcome.add_catalogs(sent);
    }
    let (archives, folder) = (set.clone(), scratch.path().to_owned());
    if let Some(data) = blocking(move || graph_data(&archives, &folder)).await? {
        graph::put(context, &data, target, scratch.path(), &mut outcome).await?;
    }
    let charts = set.below(helm::FOLDER).map(|(path, from)| Copied {
        path: path.to_owned(),
        from,
    });
    outcome.results.charts = charts.collect();
    Ok(outcome)
}

/// The signatures of releases, by file name.
fn signatures(set: &Set) -> Result<Vec<(String, Bytes)>, Error> {
    let files = set.below(SIGNATURES);
    let read = files.map(|(path, place)| {
        let name = path.trim_start_matches(SIGNATURES);
        Ok((name.to_owned(), place.read(SIGNATURES_LIMIT_BYTES)?))
    });
    let mut signatures: Vec<_> = read.collect::<Result<_, Error>>()?;
    let detached = set.detached_signatures()?;
    signatures.extend(detached.iter().map(|it| (it.file_name(), it.config_map())));
    Ok(signatures)
}

/// The offers of boot images.
///
/// Blocking. Errors: Invalid – they are malformed; those of the archive.
pub(in crate::run) fn boot_image_offers(set: &Set) -> Result<Vec<BootImageOffer>, Error> {
    let Some(place) = set.place(BOOT_IMAGE_OFFERS) else {
        return Ok(Vec::new());
    };
    let offers = serde_json::from_slice(&place.read(OFFERS_LIMIT_BYTES)?);
    offers.map_err(|e| Error::invalid(BOOT_IMAGE_OFFERS, e.to_string()))
}

/// Extracts the data of the upgrade graph into the folder, if the set has it.
fn graph_data(set: &Set, folder: &Path) -> Result<Option<GraphData>, Error> {
    if set.place(GRAPH_DATA).is_none() {
        return Ok(None);
    }
    let file = folder.join("graph-data.tar.gz");
    set.extract(GRAPH_DATA, &file)?;
    let base = match set.place(GRAPH_BASE) {
        Some(place) => {
            let named = place.read(BASE_LIMIT_BYTES)?;
            String::from_utf8_lossy(&named).parse()?
        }
        None => usual_graph_base(),
    };
    Ok(Some(GraphData { file, base }))
}
