//! Stage 3, subtract: images that previous runs mirrored are taken out of the content.

use model::Error;

use super::resolve::ResolvedImages;
use super::setup::PastImages;
use crate::content::{ImageContent, ResolvedImage, SelectedImage};

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
