//! Stage 2, resolve: references become digests, with the manifests and blobs behind them.

use model::Error;

use super::boot_images::BootArtifacts;
use super::setup::{CatalogForm, PastImages, RunContext, Sources};
use crate::content::{ImageContent, ResolvedImage, SelectedImage};
use crate::operators;
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

impl ResolvedImages {
    /// The warning about indexes of which only some images are mirrored.
    pub(super) fn sparse_note(&self) -> Option<String> {
        let ImageContent {
            images, manifests, ..
        } = &self.content;
        let is_sparse = |image: &&ResolvedImage| {
            let manifest = manifests.get(&image.digest);
            manifest.is_some_and(|it| {
                it.required_manifests()
                    .any(|part| !manifests.contains_key(part))
            })
        };
        let first = images.iter().find(is_sparse)?;
        let count = images.iter().filter(is_sparse).count();
        Some(format!(
            "{count} images are mirrored for some of their platforms, as {}: Atoll's registry takes them, others may need a setting \
             (distribution 3: validation.manifests.indexes.platforms none) or refuse them (docker-registry 2)",
            first.wanted.source
        ))
    }
}

/// Resolves the selected images and boot images at their sources.
///
/// Errors: Invalid – a name does not fit into the target.
pub(super) async fn images(
    sources: Sources<'_>,
    context: RunContext<'_>,
    mut wanted: Vec<SelectedImage>,
    boot_images: BootArtifacts,
    past: PastImages<'_>,
) -> Result<ResolvedImages, Error> {
    wanted.extend(boot_images.wanted);
    let (mirrored, wanted) = past.previous.split_pinned(wanted, past.target)?;
    let resolved = resolve(
        sources.client,
        wanted,
        context.limits.parallel,
        context.progress,
    )
    .await;
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
    if context.catalogs == CatalogForm::Pinned {
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
