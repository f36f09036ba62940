//! Live images in a registry: an artifact, or the container image of a release with live images in it.

use std::collections::BTreeSet;

use oci::live_image::is_image_layer;
use oci::{Descriptor, Kind, Manifest, Platform, Reference, media_type};
use oci_client::Client;

use super::error::DownloadError;
use super::image_file::ImageTarget;
use super::{artifact, machine_os};
use crate::catalog::CatalogImage;

/// Downloads the live image of `reference` into its target, after the bytes of an earlier attempt, and syncs it. `image` says
/// which of several it is.
pub(super) async fn fetch(
    registries: &Client,
    reference: Reference,
    image: &CatalogImage,
    target: ImageTarget<'_>,
) -> Result<(), DownloadError> {
    let manifest = manifest(registries, &reference, &image.architecture).await?;
    let is_container = is_container(&manifest);
    let layers = match manifest.kind {
        Kind::Image { layers, .. } => layers,
        Kind::Index { .. } | Kind::Schema1 { .. } => Vec::new(),
    };
    if is_container {
        machine_os::fetch(registries, &reference, &layers, image, target).await
    } else {
        artifact::fetch(registries, &reference, &layers, target).await
    }
}

/// The manifest; of an index, that of the architecture.
async fn manifest(
    client: &Client,
    reference: &Reference,
    architecture: &str,
) -> Result<Manifest, DownloadError> {
    let manifest = client.pull_manifest(reference).await?;
    let Kind::Index { manifests } = &manifest.kind else {
        return Ok(manifest);
    };
    let own = Platform::linux(architecture).architecture;
    let architecture_of = |entry: &Descriptor| Some(entry.platform.as_ref()?.architecture.clone());
    let is_own = |entry: &&Descriptor| architecture_of(entry).as_ref() == Some(&own);
    let entry = manifests.iter().find(is_own).ok_or_else(|| {
        let all: BTreeSet<_> = manifests.iter().filter_map(architecture_of).collect();
        let all = Vec::from_iter(all).join(", ");
        DownloadError::Artifact(format!(
            "{reference} has no image for {own}, but for {all}: mirror one for {own}, or correct cpu_architecture"
        ))
    })?;
    let entry = reference.with_digest(entry.digest.clone());
    Ok(client.pull_manifest(&entry).await?)
}

/// Whether the image is of a container. Artifacts may have the same configuration: then the title of a layer is that of a
/// live image.
fn is_container(manifest: &Manifest) -> bool {
    let Kind::Image { config, layers } = &manifest.kind else {
        return false;
    };
    media_type::is_image_config(&config.media_type)
        && layers
            .iter()
            .all(|layer| media_type::is_archive(&layer.media_type) && !is_image_layer(layer))
}

#[cfg(test)]
mod tests {
    use oci::Digest;
    use oci::live_image::TITLE;
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_have_a_configuration_and_archives() {
        let docker_layer = media_type::DOCKER_LAYER_GZIP;
        for (config, layer, title, expected) in [
            (media_type::OCI_CONFIG, media_type::OCI_LAYER_GZIP, "", true),
            (media_type::DOCKER_CONFIG, docker_layer, "", true),
            (
                media_type::OCI_CONFIG,
                media_type::OCI_LAYER,
                "a.iso",
                false,
            ),
            (
                media_type::OCI_CONFIG,
                "application/x-iso9660-image",
                "",
                false,
            ),
            (
                "application/vnd.oci.empty.v1+json",
                media_type::OCI_LAYER,
                "",
                false,
            ),
        ] {
            let descriptor =
                |kind| json!({"mediaType": kind, "digest": Digest::sha256(b""), "size": 0});
            let mut layers = json!([descriptor(layer)]);
            if !title.is_empty() {
                layers[0]["annotations"] = json!({ TITLE: title });
            }
            let manifest = json!({
                "schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST, "config": descriptor(config), "layers": layers,
            });
            let manifest = Manifest::parse(manifest.to_string().into(), None).unwrap();
            assert_eq!(
                is_container(&manifest),
                expected,
                "{config} {layer} {title}"
            );
        }
    }
}
