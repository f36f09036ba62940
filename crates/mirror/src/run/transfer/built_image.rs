//! Built images into the target.

use std::collections::BTreeSet;

use model::Error;
use oci::Digest;

use crate::blobs::{BlobProvider, Made};
use crate::build_image::BuiltImage;
use crate::content::{ImageContent, ResolvedImage, SelectedImage, SourceBlob};
use crate::progress::Amount;
use crate::publish::{HeldBlobs, MirrorTarget, publish};
use crate::run::setup::RunContext;

/// Sends a built image; its digest, and the amount that was sent. `original` provides the blobs of its base, `held` lists
/// repositories of the target that have some of them.
///
/// Errors: those of source and target.
pub(super) async fn put(
    context: RunContext<'_>,
    built: BuiltImage,
    wanted: SelectedImage,
    original: &dyn BlobProvider,
    held: HeldBlobs,
    target: &MirrorTarget,
) -> Result<(Digest, Amount), Error> {
    let mut content = ImageContent::default();
    for manifest in &built.manifests {
        for blob in manifest.blobs() {
            let size = blob.size;
            let (sources, file) = (BTreeSet::new(), None);
            content.blobs.insert(
                blob.digest.clone(),
                SourceBlob {
                    size,
                    sources,
                    file,
                },
            );
        }
    }
    let first = built.manifests.first();
    let digest = first.map(|list| list.digest.clone());
    let digest = digest.ok_or_else(|| Error::not_found("manifest", &wanted.source))?;
    content.images.push(ResolvedImage {
        wanted,
        digest: digest.clone(),
    });
    let manifests = built.manifests.into_iter();
    content.manifests = manifests.map(|it| (it.digest.clone(), it)).collect();
    let made = built.blobs.into_iter();
    let blobs = Made {
        made: made.map(|(blob, source)| (blob.digest, source)).collect(),
        elsewhere: original,
    };
    let (limits, progress) = (context.limits, context.progress);
    let published = publish(&content, &blobs, target, held, limits, progress).await;
    match published.failed.into_iter().next() {
        Some((_, error)) => Err(error),
        None => Ok((digest, published.sent)),
    }
}
