//! Stage 3, subtract: images that previous runs mirrored are taken out of the content.

use model::Error;

use super::resolve::ResolvedImages;
use crate::content::{ImageContent, ResolvedImage, SelectedImage};
use crate::history::PreviousRuns;
use crate::publish::MirrorTarget;

/// The history that a run is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct PastImages<'a> {
    pub(super) previous: &'a PreviousRuns,
    /// The destination; none for archives.
    pub(super) target: Option<&'a MirrorTarget>,
}

/// The record of this stage.
#[derive(Debug, Default)]
pub(super) struct RemainingImages {
    /// Content that no previous run mirrored.
    pub(super) content: ImageContent,
    /// Images of previous runs that are still selected.
    pub(super) mirrored: Vec<ResolvedImage>,
    pub(super) failed: Vec<(SelectedImage, Error)>,
}

/// Subtracts the images of previous runs.
///
/// Errors: Invalid – a name does not fit into the target.
pub(super) fn mirrored_images(
    resolved: ResolvedImages,
    past: PastImages<'_>,
) -> Result<RemainingImages, Error> {
    let ResolvedImages {
        mut content,
        mut mirrored,
        failed,
    } = resolved;
    mirrored.extend(past.previous.take_mirrored(&mut content, past.target)?);
    Ok(RemainingImages {
        content,
        mirrored,
        failed,
    })
}
