//! Boot images as artifacts in a layout of the workspace, without their large layers: these go from their web servers
//! straight to the destination of the run.

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Error;
use oci::{Digest, Reference, Registry, live_image};
use oci_client::client::BlobSource;
use url::Url;

use super::setup::{PastImages, RunContext, Sources};
use crate::content::SelectedImage;
use crate::platform::{BootImage, BootImages};

/// The layout, in the workspace.
const FOLDER: &str = "boot-images";

/// Boot images of a run.
#[derive(Debug, Default)]
pub(super) struct BootArtifacts {
    pub(super) wanted: Vec<SelectedImage>,
    /// Files of layers that are not in the layout.
    pub(super) files: BTreeMap<Digest, Url>,
    /// Images whose servers do not have them or cannot be reached.
    pub(super) failed: Vec<(SelectedImage, Error)>,
}

/// Writes the manifests of boot images that previous runs did not mirror. Their servers are asked for sizes only.
///
/// Errors: Invalid – a name does not fit into the target; Internal and Conflict – the disk refuses a manifest.
pub(super) async fn artifacts(
    sources: Sources<'_>,
    context: RunContext<'_>,
    images: &BootImages,
    past: PastImages<'_>,
) -> Result<BootArtifacts, Error> {
    let layout = Registry::Layout(context.workspace.join(FOLDER));
    let mut artifacts = BootArtifacts::default();
    for image in images.images() {
        let mut wanted = image.selected(layout.clone())?;
        let known = past
            .previous
            .with_layer(&wanted, &image.digest, past.target)?;
        if let Some(source) = known {
            wanted.source = source;
        } else {
            match sources.platform.web.size(&image.url).await {
                Ok(size) => {
                    wanted.source = artifact(sources, &wanted.source, image, size).await?;
                    artifacts
                        .files
                        .insert(image.digest.clone(), image.url.clone());
                }
                Err(error) => {
                    artifacts.failed.push((wanted, error));
                    continue;
                }
            }
        }
        artifacts.wanted.push(wanted);
    }
    Ok(artifacts)
}

/// Writes the artifact of an image of `size` bytes; its reference by digest.
async fn artifact(
    sources: Sources<'_>,
    place: &Reference,
    image: &BootImage,
    size: u64,
) -> Result<Reference, Error> {
    let layer = live_image::layer(image.digest.clone(), size, image.title());
    let manifest = live_image::manifest(&layer)?;
    let digest = Digest::sha256(live_image::CONFIG);
    let config = BlobSource::Bytes(Bytes::from_static(live_image::CONFIG));
    sources.client.push_blob(place, &digest, &config).await?;
    let place = place.with_digest(manifest.digest.clone());
    sources.client.push_manifest(&place, &manifest).await?;
    Ok(place)
}
