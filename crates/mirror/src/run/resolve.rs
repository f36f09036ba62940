//! Stage 2, resolve: references become digests, with the manifests and blobs behind them.

use model::Error;

use super::boot_images::BootArtifacts;
use super::setup::{CatalogForm, Setup};
use crate::content::{ImageContent, ResolvedImage, SelectedImage};
use crate::history::PreviousRuns;
use crate::operators;
use crate::publish::MirrorTarget;
use crate::resolve::{Resolved, resolve};

/// The record of this stage.
#[derive(Debug, Default)]
pub(super) struct ResolvedImages {
    pub(super) content: ImageContent,
    /// Pinned images of previous runs: their digest is enough, their manifests are not fetched.
    pub(super) mirrored: Vec<ResolvedImage>,
    /// Images whose manifests could not be fetched, with the cause.
    pub(super) failed: Vec<(SelectedImage, Error)>,
}

/// Resolves the selected images and boot images at their sources.
///
/// Errors: Invalid – a name does not fit into the target.
pub(super) async fn images(
    setup: Setup<'_>,
    mut wanted: Vec<SelectedImage>,
    boot_images: BootArtifacts,
    past: PastImages<'_>,
) -> Result<ResolvedImages, Error> {
    wanted.extend(boot_images.wanted);
    let (mirrored, wanted) = past.previous.split_pinned(wanted, past.target)?;
    let resolved = resolve(setup.client, wanted, setup.limits.parallel, setup.progress).await;
    let Resolved {
        mut content,
        mut failed,
    } = resolved;
    failed.extend(boot_images.failed);
    for (digest, file) in boot_images.files {
        if let Some(blob) = content.blobs.get_mut(&digest) {
            blob.file = Some(file);
        }
    }
    if setup.catalogs == CatalogForm::Pinned {
        for ResolvedImage { wanted, digest } in &mut content.images {
            operators::name_by_digest(wanted, digest);
        }
    }
    Ok(ResolvedImages {
        content,
        mirrored,
        failed,
    })
}

/// The history that a run is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct PastImages<'a> {
    pub(super) previous: &'a PreviousRuns,
    /// The destination; none for archives.
    pub(super) target: Option<&'a MirrorTarget>,
}
