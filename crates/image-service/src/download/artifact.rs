//! Live images in a registry: artifacts whose layer is the image, as `oras push` and `podman artifact add` write them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use futures_util::TryStreamExt as _;
use oci::live_image::image_layer;
use oci::{Descriptor, Hasher, Reference};
use oci_client::Client;

use super::error::DownloadError;
use super::image_file::ImageTarget;

/// Bytes that are read at once from a partial file.
const HASHED: usize = 1 << 20;

/// Downloads the live image of an artifact into its target, after the bytes of an earlier attempt, and syncs it. The digest
/// covers both.
pub(super) async fn fetch(
    registries: &Client,
    reference: &Reference,
    layers: &[Descriptor],
    target: ImageTarget<'_>,
) -> Result<(), DownloadError> {
    let blob = image_layer(layers).ok_or_else(|| {
        DownloadError::Artifact(format!(
            "{reference} is no artifact with one live image: expected one layer, or one whose title ends with .iso, or \
             the container image machine-os-images of a release"
        ))
    })?;
    let (hasher, held) = held(target.path.to_owned(), blob.clone())
        .await
        .map_err(|error| target.disk(error))?;
    let mut file = target.open(held, Some(blob.size)).await?;
    let chunks = registries.blob_stream_after(reference, blob, hasher, held);
    let chunks = chunks.await?.map_err(DownloadError::Registry);
    file.receive(chunks).await?;
    file.sync().await
}

/// The bytes of the partial file, and their number; none if the file cannot be a part of `blob`.
async fn held(path: PathBuf, blob: Descriptor) -> io::Result<(Hasher, u64)> {
    let hashed = tokio::task::spawn_blocking(move || {
        let mut hasher = Hasher::new(blob.digest.algorithm());
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((hasher, 0)),
            file => file?,
        };
        let length = file.metadata()?.len();
        if length > blob.size {
            return Ok((hasher, 0));
        }
        let mut buffer = vec![0; HASHED];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok((hasher, length)),
                read => hasher.update(&buffer[..read]),
            }
        }
    });
    hashed.await.map_err(io::Error::other)?
}
