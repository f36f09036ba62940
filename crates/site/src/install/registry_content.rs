//! Content of the bundle for the local registry: its images.

use std::sync::Arc;

use ::bundle::assemble::{ARCHIVES, BOOT_IMAGES};
use ::bundle::{BundleFile, BundledImage, ImageUse, path_in_registry};
use bytes::Bytes;
use oci::{MANIFEST_LIMIT_BYTES, Manifest, Reference};
use oci_client::Client;
use service::{Error, ResultExt as _};

use super::local_registry::LocalRegistry;
use crate::event::{SiteEvent, SiteObserver, SiteWork};

/// Images of the bundle for the registry.
pub(super) fn registry_images(bundle: &BundleFile) -> impl Iterator<Item = &BundledImage> {
    let images = bundle.manifest().images.iter();
    images.filter(|it| it.used == ImageUse::Registry)
}

/// Whether the bundle has something for the registry.
pub(super) fn has_any(bundle: &BundleFile) -> bool {
    let has_images = registry_images(bundle).next().is_some();
    let mut folders = [ARCHIVES, BOOT_IMAGES].into_iter();
    has_images || folders.any(|folder| bundle.below(folder).next().is_some())
}

/// Pushes images into the running registry.
///
/// Errors: the registry's.
pub(super) fn push_images(
    bundle: &BundleFile,
    registry: &LocalRegistry,
    observe: SiteObserver<'_>,
) -> Result<(), Error> {
    for image in registry_images(bundle) {
        observe(SiteEvent::Working(SiteWork::Pushing(&image.name)));
        let path = path_in_registry(&image.name);
        let target = format!("{}/{path}", registry.address);
        let pushed = registry.run(push_image(bundle, image, &registry.client, &target));
        pushed
            .map_err(|e| e.chain())
            .doing(|| format!("pushing {}", image.name))?;
    }
    observe(SiteEvent::Rested);
    Ok(())
}

/// Pushes blobs, then manifests, the entries of an index before it.
async fn push_image(
    bundle: &BundleFile,
    image: &BundledImage,
    client: &Client,
    target: &str,
) -> Result<(), model::Error> {
    let target: Reference = target.parse()?;
    if client.manifest_digest(&target).await? == Some(image.digest.clone()) {
        return Ok(());
    }
    let read = |digest: &oci::Digest| -> Result<Manifest, model::Error> {
        let bytes = bundle.bytes(&::bundle::blob_path(digest), MANIFEST_LIMIT_BYTES as u64)?;
        Manifest::parse(Bytes::from(bytes), None)
    };
    let mut manifests = Vec::new();
    let mut pending = vec![image.digest.clone()];
    while let Some(digest) = pending.pop() {
        let manifest = read(&digest)?;
        pending.extend(manifest.required_manifests().cloned());
        manifests.push(manifest);
    }
    for blob in manifests.iter().flat_map(Manifest::required_blobs) {
        let source = bundle.blob(blob);
        let source = source.ok_or_else(|| model::Error::not_found("blob of the bundle", blob))?;
        let sent = Arc::default();
        client
            .provide_blob(&target, blob, &source, None, &sent)
            .await?;
    }
    let (top, entries) = manifests
        .split_first()
        .ok_or_else(|| model::Error::not_found("image", &target))?;
    for manifest in entries.iter().rev() {
        let by_digest = target.with_digest(manifest.digest.clone());
        client.push_manifest(&by_digest, manifest).await?;
    }
    client.push_manifest(&target, top).await
}
