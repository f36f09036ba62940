//! The upgrade graph's image into the target.

use std::path::Path;

use bytes::Bytes;
use model::Error;
use model::mirror_metadata::ImageType;
use oci::Reference;
use oci_client::image::ImageLocation;

use super::built_image;
use crate::content::{SelectedImage, Why};
use crate::operators::Original;
use crate::platform::{GraphData, graph_image_name};
use crate::publish::MirrorTarget;
use crate::run::outcome::RunOutcome;
use crate::run::setup::RunContext;

/// Builds the image on its base in the target, with the release signatures of `outcome`, sends it, and adds it to `outcome`.
///
/// Errors: NotFound – the base is not in the target; Invalid – it is no image; those of the target.
pub(super) async fn put(
    context: RunContext<'_>,
    data: &GraphData,
    target: &MirrorTarget,
    scratch: &Path,
    outcome: &mut RunOutcome,
) -> Result<(), Error> {
    let base = base(&data.base, target)?;
    let place = ImageLocation::Registry {
        client: target.client.clone(),
        reference: base.clone(),
    };
    let digest = place.digest().await.map_err(|error| match error {
        Error::NotFound { .. } => {
            let reason = format!(
                "{base}, the base image of the upgrade graph: mirror {} there",
                data.base
            );
            Error::not_found("image", reason)
        }
        other => other,
    })?;
    let original = Original::fetch(&place, &digest).await?;
    let signatures: &[(String, Bytes)] = &outcome.results.signatures;
    let image = data.image(original.base(), signatures, scratch).await?;
    let (repository, tag) = graph_image_name()?;
    let place = target.place(&repository)?;
    let wanted = SelectedImage {
        source: Reference {
            tag: Some(tag.clone()),
            ..place.clone()
        },
        repository,
        tag,
        kind: ImageType::CincinnatiGraph,
        why: vec![Why::Graph],
        platforms: Vec::new(),
        may_be_missing: false,
    };
    let blobs = original.remote().map(|(digest, _)| digest);
    let held = blobs.map(|digest| (digest, [base.repository.clone()].into()));
    let put = built_image::put(context, image, wanted, &original, held.collect(), target);
    let (digest, sent) = put.await?;
    outcome.sent.add(sent);
    outcome.results.graph = Some(place.with_digest(digest));
    Ok(())
}

/// The base image in the target, where it is an additional image.
fn base(base: &Reference, target: &MirrorTarget) -> Result<Reference, Error> {
    let place = target.place(&base.repository)?;
    Ok(match &base.digest {
        Some(digest) => place.with_digest(digest.clone()),
        None => Reference {
            tag: base.tag.clone(),
            ..place
        },
    })
}
