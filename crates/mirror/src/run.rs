//! Runs: an image set goes to its destination in seven stages, each of which takes the record of the stage before it.
//!
//! | stage | module | record |
//! |---|---|---|
//! | 1 select | `run::select` | `SetSelection`: catalogs, releases, charts, images with their reasons |
//! | 2 resolve | `run::resolve` | `ResolvedImages`: digests, manifests, blobs |
//! | 3 subtract | `run::subtract` | `RemainingImages`: without the images of previous runs |
//! | 4 attach | `run::attach` | `AttachedImages`: with signatures and other attached artifacts |
//! | 5 plan | `run::plan` | [`PreparedRun`], then [`ArchivesPlan`], [`CopyPlan`] or [`Publication`] |
//! | 6 transfer | `run::transfer` | `CompleteArchives`, or [`RunOutcome`] |
//! | 7 record | `run::record` | metadata in stores and target |
//!
//! Stages 1 to 5 change nothing outside of the workspace. A run from archives begins with stage 5.

mod attach;
mod explain;
mod plan;
mod push;
mod record;
mod resolve;
mod select;
mod subtract;
#[cfg(test)]
mod tests;
mod transfer;

use std::path::{Path, PathBuf};

use model::Error;
use model::image_set::{ImageSet, MirrorSelection};
use oci_client::Client;

use crate::archive::{Set, Signer};
use crate::content::{ImageContent, SelectedImage};
use crate::history::{MetadataStore, PreviousRuns};
use crate::platform::ReleaseSources;
use crate::progress::{Amount, RunProgress};
use crate::publish::{MirrorTarget, Published, TransferLimits};
use crate::results;

pub use explain::{mapping, publication_mapping, reasons};
pub use plan::{
    ArchivesPlan, CopyPlan, PlannedArchives, PlannedCopy, PlannedPublication, PreparedCatalog,
    PreparedRun, Publication, archives as plan_archives, copy as plan_copy,
    publication as plan_publication,
};
pub use push::push_catalogs;

/// Selects what the set names, and prepares the content that previous runs did not mirror: to `target`, or else to archives.
///
/// Errors: those of [`crate::select::select`]; Invalid – two catalogs have one name in the target, or an image cannot be
/// resolved, unless the run continues on errors.
pub async fn prepare(
    setup: Setup<'_>,
    previous: &PreviousRuns,
    target: Option<&MirrorTarget>,
) -> Result<PreparedRun, Error> {
    let past = subtract::PastImages { previous, target };
    let last = previous.metadata().map(|it| &it.past_mirror);
    let mut selection = select::image_set(setup, last).await?;
    let images = std::mem::take(&mut selection.selected.wanted);
    let resolved = resolve::images(setup, images, past).await?;
    let remaining = subtract::mirrored_images(resolved, past)?;
    let attached = attach::artifacts(setup, remaining).await?;
    plan::contents(setup, selection, attached).await
}

/// Writes archives into the folder `dest`, and records them in `store`. A run that failed is resumed by the same call.
///
/// Errors: Conflict – another run writes there, or the medium is full; those of the registries and the store.
pub async fn write_archives(
    setup: Setup<'_>,
    plan: ArchivesPlan,
    store: Option<&MetadataStore>,
    dest: &Path,
) -> Result<Vec<PathBuf>, Error> {
    match transfer::archives(setup, plan, dest).await? {
        transfer::Transferred::Complete(complete) => record::archives(complete, store).await,
        transfer::Transferred::Incomplete(failed) => {
            let failed = failed.into_iter().map(|(_, error)| error);
            failed.reduce(|first, _| first).map_or(Ok(Vec::new()), Err)
        }
    }
}

/// Plans and writes archives of the prepared content. Images with unavailable blobs are left out where the run continues on
/// errors: the next plan takes over the fetched blobs. No files, where no content is left.
///
/// Errors: those of [`plan_archives`] and [`write_archives`].
pub async fn write_available_archives(
    setup: Setup<'_>,
    prepared: &mut PreparedRun,
    previous: &PreviousRuns,
    signer: Option<&Signer>,
    store: Option<&MetadataStore>,
    dest: &Path,
) -> Result<Vec<PathBuf>, Error> {
    while let PlannedArchives::Archives(plan) = plan_archives(setup, prepared, previous, signer)? {
        match transfer::archives(setup, *plan, dest).await? {
            transfer::Transferred::Complete(complete) => {
                return record::archives(complete, store).await;
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
    setup: Setup<'_>,
    prepared: PreparedRun,
    plan: CopyPlan,
    target: &MirrorTarget,
) -> Result<RunOutcome, Error> {
    let outcome = transfer::copy(setup, &prepared, target).await?;
    let pruned = record::pruned(setup, target, &plan.pruning, plan.metadata, outcome).await;
    let mut outcome = pruned?;
    outcome.failed.extend(prepared.failed);
    outcome.unread = prepared.unread;
    outcome.scratch = Some(prepared.scratch);
    Ok(outcome)
}

/// Publishes an archive set to the target, and prunes it. [`RunOutcome::record`] ends the run.
///
/// Errors: an image or catalog that cannot be sent or deleted, unless the run continues on errors.
pub async fn publish(
    setup: Setup<'_>,
    mut publication: Publication,
    target: &MirrorTarget,
) -> Result<RunOutcome, Error> {
    let outcome = transfer::publication(setup, &mut publication, target).await?;
    let Publication {
        pruning, metadata, ..
    } = publication;
    record::pruned(setup, target, &pruning, metadata, outcome).await
}

/// Results for the images that this archive set and previous ones brought to a target. The target is not contacted.
///
/// Errors: Invalid – a name in the metadata is malformed, or does not fit into the target.
pub fn archived_results(set: &Set, target: &MirrorTarget) -> Result<results::MirrorResults, Error> {
    let mirror = &set.metadata().past_mirror.mirror;
    results::MirrorResults::of(&set.all_images()?, target, mirror)
}

/// The input of a run.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// Client for the sources.
    pub client: &'a Client,
    pub set: &'a ImageSet,
    /// Update services for releases of the platform.
    pub platform: &'a ReleaseSources,
    pub limits: TransferLimits,
    /// Skip images that a catalog references but the registry does not have.
    pub skip_missing: bool,
    /// Mirror the attached artifacts of images: signatures, attestations, SBOMs.
    pub with_attached: bool,
    pub catalogs: CatalogForm,
    /// Folder for temporary files; it exists.
    pub workspace: &'a Path,
    /// Units: seconds since 1970.
    pub now: i64,
    pub progress: &'a RunProgress,
}

/// The form of operator catalogs in a target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CatalogForm {
    /// Pruned to the selection, all images by digest: mirror policies of any kind redirect clusters to them.
    #[default]
    Pinned,
    /// Pruned to the selection, images as the source names them; those by tag keep it in the target.
    Tagged,
    /// As the source has them, with their digests, and with packages whose images are not mirrored.
    Original,
}

/// The result of a run to a target.
#[derive(Debug, Default)]
pub struct RunOutcome {
    /// Content of the target now.
    pub results: results::MirrorResults,
    /// Images that were not mirrored, with the cause.
    pub failed: Vec<(SelectedImage, Error)>,
    /// Charts that could not be read.
    pub unread: Vec<Error>,
    /// Blobs that were sent.
    pub sent: Amount,
    /// Images that were pruned.
    pub pruned: usize,
    /// Manifests that could not be deleted.
    pub stayed: Vec<Error>,
    /// Temporary files that the results are copied from.
    pub(crate) scratch: Option<tempfile::TempDir>,
    metadata: Option<record::MetadataWrites>,
}

impl RunOutcome {
    /// The result of publishing `content`.
    ///
    /// Errors: the first failure, unless the run continues on errors; Invalid – a name does not fit into the target.
    pub(crate) fn of(
        content: &ImageContent,
        published: Published,
        target: &MirrorTarget,
        mirror: &MirrorSelection,
        limits: TransferLimits,
    ) -> Result<Self, Error> {
        let mut outcome = Self {
            results: results::MirrorResults::new(content, &published, target, mirror)?,
            sent: published.sent,
            ..Self::default()
        };
        for (index, error) in published.failed {
            if !limits.continue_on_error {
                return Err(error);
            }
            let wanted = content.images[index].wanted.clone();
            outcome.failed.push((wanted, error));
        }
        Ok(outcome)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("working with files", error)))
}
