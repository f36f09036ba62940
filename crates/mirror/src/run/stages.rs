//! The stages of a run, one after the other, for each kind of source and destination.

use std::path::{Path, PathBuf};

use model::Error;

use super::outcome::RunOutcome;
use super::plan::{self, ArchivesPlan, CopyPlan, PlannedArchives, PreparedRun, Publication};
use super::setup::{PastImages, RunContext, Sources};
use super::tags::TagOwners;
use super::{attach, boot_images, record, resolve, select, subtract, transfer};
use crate::archive::{Set, Signer};
use crate::history::{MetadataStore, PreviousRuns};
use crate::publish::MirrorTarget;
use crate::results;

/// Selects what the set names, and prepares the content that previous runs did not mirror: to `target`, or else to archives.
///
/// Errors: those of [`crate::select::select`]; Invalid – two catalogs have one name in the target, or an image cannot be
/// resolved, unless the run continues on errors.
pub async fn prepare(
    sources: Sources<'_>,
    context: RunContext<'_>,
    previous: &PreviousRuns,
    target: Option<&MirrorTarget>,
) -> Result<PreparedRun, Error> {
    let past = PastImages { previous, target };
    let last = previous.metadata().map(|it| &it.past_mirror);
    let mut selection = select::image_set(sources, context, last).await?;
    let mut images = std::mem::take(&mut selection.selected.wanted);
    let owners = TagOwners::of(past, &images)?;
    let mut notes = owners.rename_pinned(&mut images)?;
    let boot_images = &selection.selected.releases.boot_images;
    let boot_images = boot_images::artifacts(sources, context, boot_images, past).await?;
    let mut resolved = resolve::images(sources, context, images, boot_images, past).await?;
    notes.extend(owners.rename_resolved(&mut resolved)?);
    notes.extend(resolved.sparse_note());
    let remaining = subtract::mirrored_images(resolved, past)?;
    let mut attached = attach::artifacts(sources, context, remaining).await?;
    attached.notes.extend(notes);
    let mut prepared = plan::contents(sources, context, selection, attached).await?;
    if let (Some(form), None) = (context.v2_archives, target) {
        prepared.v2 = Some(plan::v2_content(sources, context, form, &prepared).await?);
    }
    Ok(prepared)
}

/// Writes archives into the folder `dest`, and records them in `store`. A run that failed is resumed by the same call.
///
/// Errors: Conflict – another run writes there, or the medium is full; those of the registries and the store.
pub async fn write_archives(
    sources: Sources<'_>,
    context: RunContext<'_>,
    plan: ArchivesPlan,
    store: Option<&MetadataStore>,
    dest: &Path,
) -> Result<Vec<PathBuf>, Error> {
    match transfer::archives(sources, context, plan, dest).await? {
        transfer::Transferred::Complete(complete) => record::archives(complete, store).await,
        transfer::Transferred::Incomplete(failed) => {
            let failed = failed.into_iter().map(|(_, error)| error);
            failed.reduce(|first, _| first).map_or(Ok(Vec::new()), Err)
        }
    }
}

/// The output of a run to archives.
#[derive(Debug, Clone, Copy)]
pub struct ArchiveOutput<'a> {
    pub folder: &'a Path,
    pub signer: Option<&'a Signer>,
    /// Keeps the metadata of the run.
    pub store: Option<&'a MetadataStore>,
}

/// Plans and writes archives of the prepared content. Images with unavailable blobs are left out where the run continues on
/// errors: the next plan takes over the fetched blobs. No files, where no content is left.
///
/// Errors: those of [`super::plan_archives`] and [`write_archives`].
pub async fn write_available_archives(
    sources: Sources<'_>,
    context: RunContext<'_>,
    prepared: &mut PreparedRun,
    previous: &PreviousRuns,
    output: ArchiveOutput<'_>,
) -> Result<Vec<PathBuf>, Error> {
    while let PlannedArchives::Archives(plan) =
        plan::archives(context, prepared, previous, output.signer)?
    {
        match transfer::archives(sources, context, *plan, output.folder).await? {
            transfer::Transferred::Complete(complete) => {
                return record::archives(complete, output.store).await;
            }
            transfer::Transferred::Incomplete(failed) => prepared.leave_out(failed)?,
        }
    }
    Ok(Vec::new())
}

/// Copies the prepared content to the target, and prunes it. [`RunOutcome::record`] ends the run.
///
/// Errors: an image or catalog that cannot be copied or deleted, unless the run continues on errors.
pub async fn copy(
    sources: Sources<'_>,
    context: RunContext<'_>,
    prepared: PreparedRun,
    plan: CopyPlan,
    target: &MirrorTarget,
) -> Result<RunOutcome, Error> {
    let outcome = transfer::copy(sources, context, &prepared, target).await?;
    let pruned = record::pruned(context, target, &plan.pruning, plan.metadata, outcome).await;
    let mut outcome = pruned?;
    outcome.failed.extend(prepared.failed);
    outcome.unread = prepared.unread;
    outcome.left_out = prepared.left_out;
    outcome.scratch = Some(prepared.scratch);
    Ok(outcome)
}

/// Publishes an archive set to the target, and prunes it. [`RunOutcome::record`] ends the run.
///
/// Errors: an image or catalog that cannot be sent or deleted, unless the run continues on errors.
pub async fn publish(
    context: RunContext<'_>,
    mut publication: Publication,
    target: &MirrorTarget,
) -> Result<RunOutcome, Error> {
    let outcome = transfer::publication(context, &mut publication, target).await?;
    let Publication {
        pruning, metadata, ..
    } = publication;
    record::pruned(context, target, &pruning, metadata, outcome).await
}

/// Results for the images that this archive set and previous ones brought to a target. The target is not contacted.
///
/// Errors: Invalid – a name in the metadata is malformed, or does not fit into the target.
pub fn archived_results(set: &Set, target: &MirrorTarget) -> Result<results::MirrorResults, Error> {
    let mirror = &set.metadata().past_mirror.mirror;
    let images = set.all_images()?;
    let mut results = results::MirrorResults::of(&images, target, mirror)?;
    results.add_built(&images, target, mirror)?;
    results.offer(&transfer::boot_image_offers(set)?, target)?;
    Ok(results)
}
