//! Reading of release images, from their mirrors or registry.

use model::release_payload::IMAGE_REFERENCES;
use secrecy::SecretString;

use crate::context::InstallContext;
use crate::failure::{PreparationFailure, blocking};
use crate::registry::{ExtractedFile, Images, ScratchFolder};
use crate::release::{self, ReleaseInfo};

/// Reads the metadata of the release image `image` from its mirrors or registry.
///
/// Errors: no candidate is reachable, or the metadata is malformed; with registry and image.
pub(crate) async fn read(
    ctx: &InstallContext,
    image: &str,
    pull_secret: &SecretString,
) -> Result<ReleaseInfo, PreparationFailure> {
    if let Some(known) = ctx.releases().get(image) {
        return Ok(known);
    }
    let images = Images::new(&ctx.options().registry, pull_secret)?;
    let scratch = ScratchFolder::make(&ctx.work_folders()).await?;
    let path = scratch.0.join("image-references");
    let unreadable =
        |why: String| PreparationFailure::new(format!("the release image cannot be read: {why}"));
    let candidates = images.candidates(image);
    let candidates = candidates.map_err(|error| unreadable(error.chain()))?;
    let timeout = Some(ctx.options().release_timeout);
    let extracted = images
        .extract(&candidates, &[IMAGE_REFERENCES], &path, timeout)
        .await
        .map_err(|failure| PreparationFailure {
            is_temporary: failure.is_temporary,
            ..unreadable(failure.reason)
        })?;
    let json = blocking(move || std::fs::read(path).map_err(|error| unreadable(error.to_string())));
    let info = release::parse(&json.await?, pinned(image, &extracted))?;
    if image.contains('@') {
        ctx.releases().put(image, &info);
    }
    Ok(info)
}

/// `image`, pinned to its digest.
fn pinned(image: &str, extracted: &ExtractedFile) -> String {
    match (image.split_once('@'), &extracted.image.digest) {
        (None, Some(digest)) => {
            // A colon after the last slash starts a tag, one before it a port.
            let name = image.rfind('/').map_or(0, |slash| slash + 1);
            let end = image[name..]
                .find(':')
                .map_or(image.len(), |colon| name + colon);
            format!("{}@{digest}", &image[..end])
        }
        _ => image.to_owned(),
    }
}
