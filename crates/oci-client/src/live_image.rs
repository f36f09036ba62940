//! Live images as artifacts: pushed in the form that mirroring runs give them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use model::Error;
use oci::{Descriptor, Digest, Manifest, Reference, live_image};

use crate::Client;
use crate::client::BlobSource;

/// Pushes a live image, unless its tag names it already; returns its manifest. `sent` counts the bytes of the upload.
///
/// Errors: TooLarge – its title is; those of the registry.
pub async fn push(
    client: &Client,
    reference: &Reference,
    layer: &Descriptor,
    source: &BlobSource,
    sent: &Arc<AtomicU64>,
) -> Result<Manifest, Error> {
    let manifest = live_image::manifest(layer)?;
    if client.manifest_digest(reference).await? != Some(manifest.digest.clone()) {
        let digest = Digest::sha256(live_image::CONFIG);
        let config = BlobSource::Bytes(Bytes::from_static(live_image::CONFIG));
        client.push_blob(reference, &digest, &config).await?;
        client
            .provide_blob(reference, &layer.digest, source, None, sent)
            .await?;
        client.push_manifest(reference, &manifest).await?;
    }
    Ok(manifest)
}
