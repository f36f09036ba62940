//! Images that are made of others: their layers and some more, for each of their platforms. The same layers always make the
//! same image.

mod layer;

use std::collections::BTreeMap;

use bytes::Bytes;
use model::Error;
use oci::{Descriptor, Digest, Kind, Manifest, Platform, media_type};
use oci_client::client::BlobSource;
use serde_json::{Map, Value, json};

use crate::blobs::BlobProvider;

pub(crate) use layer::{BuiltLayer, Tar, add_file, add_folder};

/// Units: bytes. Largest image configuration.
const CONFIG_LIMIT_BYTES: u64 = 4 << 20;
/// Architecture of an image whose configuration lacks it.
const DEFAULT_ARCHITECTURE: &str = "amd64";

/// An image that others are made of.
#[derive(Clone, Copy)]
pub struct BaseImage<'a> {
    pub manifests: &'a BTreeMap<Digest, Manifest>,
    /// The digest of its index, or of its only manifest.
    pub root: &'a Digest,
    /// Provides its configurations.
    pub blobs: &'a dyn BlobProvider,
}

/// An image that was made.
#[derive(Debug)]
pub struct BuiltImage {
    /// The index or only manifest, and after it those of its parts.
    pub manifests: Vec<Manifest>,
    /// Blobs besides the original's layers, with their sources.
    pub blobs: Vec<(Descriptor, BlobSource)>,
}

/// Builds an image. `change` changes the configuration of each platform's image, and returns the layers to add; `comment`
/// describes them in its history.
///
/// Errors: Invalid – the original is no image; those of `change` and of the blobs.
pub(crate) async fn build_image(
    base: BaseImage<'_>,
    comment: &str,
    mut change: impl AsyncFnMut(&mut Map<String, Value>) -> Result<Vec<BuiltLayer>, Error>,
) -> Result<BuiltImage, Error> {
    let (mut images, mut entries) = (Vec::new(), Vec::new());
    let mut made = BTreeMap::new();
    for (original, platform) in originals(base)? {
        let mut image = config(base, original).await?;
        let added = change(&mut image).await?;
        let amended = amend(&mut image, &added, comment);
        amended.ok_or_else(|| wrong(original, "its configuration is no image's"))?;
        let platform = platform.unwrap_or_else(|| platform_of(&image));
        let new = Bytes::from(Value::Object(image).to_string());
        let manifest = manifest(original, &new, &added)?;
        if let Kind::Image { config, .. } = &manifest.kind {
            let source = BlobSource::Bytes(new);
            made.insert(config.digest.clone(), (config.clone(), source));
        }
        for layer in added {
            let blob = layer.descriptor(media_type::OCI_LAYER_GZIP);
            made.insert(blob.digest.clone(), (blob, layer.source()));
        }
        entries.push(Descriptor {
            platform: Some(platform),
            ..manifest.descriptor()
        });
        images.push(manifest);
    }
    let is_docker = images
        .iter()
        .all(|image| image.media_type == media_type::DOCKER_MANIFEST);
    let kind = if is_docker {
        media_type::DOCKER_LIST
    } else {
        media_type::OCI_INDEX
    };
    let list = json!({"schemaVersion": 2, "mediaType": kind, "manifests": entries});
    images.insert(0, parsed(&list)?);
    Ok(BuiltImage {
        manifests: images,
        blobs: made.into_values().collect(),
    })
}

/// The images of the original with their platforms, where an index says them.
fn originals(base: BaseImage<'_>) -> Result<Vec<(&Manifest, Option<Platform>)>, Error> {
    let find = |digest: &Digest| {
        let found = base.manifests.get(digest);
        found.ok_or_else(|| Error::not_found("manifest", digest))
    };
    let original = find(base.root)?;
    let Kind::Index { manifests: parts } = &original.kind else {
        return Ok(vec![(original, None)]);
    };
    // Entries of an unknown system are notes about others, not images.
    let is_image = |part: &&Descriptor| {
        let platform = part.platform.as_ref();
        platform.is_none_or(|platform| platform.os != "unknown")
    };
    let parts = parts.iter().filter(is_image);
    parts
        .map(|part| Ok((find(&part.digest)?, part.platform.clone())))
        .collect()
}

async fn config(base: BaseImage<'_>, original: &Manifest) -> Result<Map<String, Value>, Error> {
    let Kind::Image { config, .. } = &original.kind else {
        return Err(wrong(
            original,
            "images cannot be built on a manifest of its kind",
        ));
    };
    let source = base.blobs.source(&config.digest);
    let source = source.ok_or_else(|| Error::not_found("blob", &config.digest))?;
    let bytes = source.bytes(&config.digest, CONFIG_LIMIT_BYTES).await?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(image)) => Ok(image),
        _ => Err(wrong(original, "its configuration is no JSON object")),
    }
}

/// The original's manifest with another configuration and more layers.
fn manifest(original: &Manifest, new: &Bytes, added: &[BuiltLayer]) -> Result<Manifest, Error> {
    let Kind::Image { config, layers } = &original.kind else {
        return Err(wrong(
            original,
            "images cannot be built on a manifest of its kind",
        ));
    };
    let config = Descriptor {
        digest: Digest::sha256(new),
        size: new.len() as u64,
        ..config.clone()
    };
    let is_docker = original.media_type == media_type::DOCKER_MANIFEST;
    let layer_type = if is_docker {
        media_type::DOCKER_LAYER_GZIP
    } else {
        media_type::OCI_LAYER_GZIP
    };
    let added = added.iter().map(|layer| layer.descriptor(layer_type));
    let layers: Vec<Descriptor> = layers.iter().cloned().chain(added).collect();
    parsed(&json!({
        "schemaVersion": 2,
        "mediaType": original.media_type,
        "config": config,
        "layers": layers,
    }))
}

/// Adds the layers to a configuration. None where it is malformed.
fn amend(image: &mut Map<String, Value>, added: &[BuiltLayer], comment: &str) -> Option<()> {
    let roots = image
        .get_mut("rootfs")?
        .get_mut("diff_ids")?
        .as_array_mut()?;
    roots.extend(added.iter().map(|layer| json!(layer.diff_id)));
    if let Some(history) = image.get_mut("history").and_then(Value::as_array_mut) {
        let step = json!({"created_by": "atoll mirror", "comment": comment});
        history.extend(added.iter().map(|_| step.clone()));
    }
    Some(())
}

/// The run configuration in an image configuration; none where it is malformed.
pub(crate) fn run_config(image: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    let config = image.entry("config").or_insert_with(|| json!({}));
    config.as_object_mut()
}

fn platform_of(image: &Map<String, Value>) -> Platform {
    let text = |name: &str| image.get(name).and_then(Value::as_str).unwrap_or_default();
    Platform {
        architecture: match text("architecture") {
            "" => DEFAULT_ARCHITECTURE.to_owned(),
            known => known.to_owned(),
        },
        os: "linux".to_owned(),
    }
}

fn parsed(manifest: &Value) -> Result<Manifest, Error> {
    Manifest::parse(manifest.to_string().into(), None)
}

fn wrong(original: &Manifest, reason: &str) -> Error {
    Error::invalid("image", format!("{}: {reason}", original.digest))
}
