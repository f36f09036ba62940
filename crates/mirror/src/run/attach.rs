//! Stage 4, attach: signatures, attestations and SBOMs join the images that they refer to.

use model::Error;

use super::setup::{RunContext, Sources};
use super::subtract::RemainingImages;
use crate::attached::attach;
use crate::content::{ImageContent, ResolvedImage, SelectedImage};

/// Images that one error lists; the others are counted.
const LISTED_FAILURES: usize = 20;

/// The record of this stage: every image of the run is in one of its lists.
#[derive(Debug, Default)]
pub(super) struct AttachedImages {
    pub(super) content: ImageContent,
    pub(super) mirrored: Vec<ResolvedImage>,
    pub(super) failed: Vec<(SelectedImage, Error)>,
    /// Images that their sources do not have and the run may skip.
    pub(super) missing: Vec<SelectedImage>,
    /// Warnings for the user.
    pub(super) notes: Vec<String>,
}

/// Adds attached artifacts to the content, if the run mirrors them, and separates skipped images from failures.
///
/// Errors: Invalid – an image failed, unless the run continues on errors.
pub(super) async fn artifacts(
    sources: Sources<'_>,
    context: RunContext<'_>,
    remaining: RemainingImages,
) -> Result<AttachedImages, Error> {
    let RemainingImages {
        mut content,
        mirrored,
        mut failed,
    } = remaining;
    let mut notes = Vec::new();
    if sources.with_attached {
        let (client, progress) = (sources.client, context.progress);
        let attached = attach(client, &mut content, context.limits.parallel, progress).await;
        failed.extend(attached.failed);
        let refused = attached.refused.iter();
        notes.extend(refused.map(|(wanted, error)| failure(wanted, error)));
    }
    let (missing, failed) = skipped(failed);
    notes.extend(missing.iter().map(|(wanted, error)| failure(wanted, error)));
    if !context.limits.continue_on_error && !failed.is_empty() {
        return Err(all_of(&failed));
    }
    Ok(AttachedImages {
        content,
        mirrored,
        failed,
        missing: missing.into_iter().map(|(wanted, _)| wanted).collect(),
        notes,
    })
}

type FailedImages = Vec<(SelectedImage, Error)>;

/// Images that the run may skip, and failures.
pub(super) fn skipped(failed: FailedImages) -> (FailedImages, FailedImages) {
    failed.into_iter().partition(|(wanted, error)| {
        wanted.may_be_missing && matches!(error, Error::NotFound { .. })
    })
}

/// The message for an image that failed: its source, its first reason, the cause.
fn failure(wanted: &SelectedImage, error: &Error) -> String {
    let why = wanted
        .why
        .first()
        .map_or_else(String::new, |why| format!(" ({why})"));
    format!("{}{why}: {}", wanted.source, model::error::chain(error))
}

/// One error for all failures.
fn all_of(failed: &[(SelectedImage, Error)]) -> Error {
    let listed = failed.iter().take(LISTED_FAILURES);
    let mut lines: Vec<_> = listed
        .map(|(wanted, error)| failure(wanted, error))
        .collect();
    let others = failed.len() - lines.len();
    if others > 0 {
        lines.push(format!("and {others} others"));
    }
    Error::invalid("images that cannot be mirrored", lines.join("\n"))
}
