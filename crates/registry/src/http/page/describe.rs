//! One-line summary of a manifest.

use std::collections::HashMap;

use blob_store::{ContentStore as _, StoreError};
use model::time::Timestamp;
use oci::{Descriptor, Digest, Kind, Manifest, Repository, media_type};
use serde::Deserialize;
use serde_json::Value;
use service::page::ROWS_LIMIT;

use super::config;
use crate::storage::Store;

/// Manifests of an index that are looked into for its size: images are made for some ten platforms.
const CHILDREN_LIMIT: usize = 32;
/// Source: image-spec, annotations.
const CREATED: &str = "org.opencontainers.image.created";

/// A manifest in one line.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) kind: String,
    pub(super) platforms: Vec<String>,
    /// Units: bytes. Of all that the manifest needs, as far as it is here.
    pub(super) bytes: u64,
    pub(super) created: Option<Timestamp>,
}

/// An index with the fields that a store ignores.
#[derive(Debug, Deserialize)]
pub(super) struct Index {
    pub(super) manifests: Vec<Entry>,
}

/// A manifest of an index.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
    platform: Option<Platform>,
}

#[derive(Debug, Deserialize)]
struct Platform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    /// A text; unlike the others, unchecked.
    #[serde(default)]
    variant: Value,
}

impl Index {
    /// Content that was accepted as an index parses as one.
    pub(super) fn parse(manifest: &Manifest) -> Self {
        let read = serde_json::from_slice(&manifest.bytes);
        read.unwrap_or_else(|_| Self {
            manifests: Vec::new(),
        })
    }
}

impl Entry {
    /// `os/architecture[/variant]`.
    pub(super) fn platform(&self) -> Option<String> {
        let Platform {
            os,
            architecture,
            variant,
        } = self.platform.as_ref()?;
        config::platform([os, architecture, variant.as_str().unwrap_or_default()])
    }
}

/// Kind of a manifest.
pub(super) fn kind(manifest: &Manifest) -> String {
    match (&manifest.kind, manifest.media_type) {
        (Kind::Index { .. }, media_type::DOCKER_LIST) => "Docker list".to_owned(),
        (Kind::Index { .. }, _) => "index".to_owned(),
        (Kind::Image { config, .. }, _) if media_type::is_image_config(&config.media_type) => {
            if manifest.media_type == media_type::DOCKER_MANIFEST {
                "Docker image".to_owned()
            } else {
                "image".to_owned()
            }
        }
        (Kind::Schema1 { .. }, _) => "Docker image of schema 1".to_owned(),
        (Kind::Image { .. }, _) => {
            let kind = manifest.artifact_type.as_deref().unwrap_or("artifact");
            kind.to_owned()
        }
    }
}

/// Errors: the store's.
pub(super) async fn summary(
    store: &Store,
    name: &Repository,
    manifest: &Manifest,
) -> Result<Summary, StoreError> {
    let mut summary = Summary {
        kind: kind(manifest),
        platforms: Vec::new(),
        bytes: 0,
        created: manifest
            .annotations
            .as_ref()
            .and_then(|notes| notes.get(CREATED)?.parse().ok()),
    };
    let mut sizes = HashMap::new();
    measure(&mut sizes, manifest);
    if let Kind::Index { .. } = manifest.kind {
        let entries = Index::parse(manifest).manifests;
        summary.platforms = entries.iter().filter_map(Entry::platform).collect();
        summary.platforms.truncate(CHILDREN_LIMIT);
        for entry in entries.iter().take(CHILDREN_LIMIT) {
            let child = match store.manifest(name, &entry.digest).await {
                Ok(child) => child,
                Err(StoreError::UnknownManifest(_)) => continue,
                Err(error) => return Err(error),
            };
            measure(&mut sizes, &child);
            if summary.created.is_none() {
                let config = config::read(store, name, &child).await?;
                summary.created = config.and_then(|config| config.ok()?.created());
            }
        }
    } else if let Some(Ok(config)) = config::read(store, name, manifest).await? {
        summary.platforms.extend(config.platform());
        summary.created = config.created().or(summary.created);
    }
    if let Kind::Schema1 { layers, .. } = &manifest.kind {
        let layers = sized(store, name, layers).await?;
        sizes.extend(layers.into_iter().map(|layer| (layer.digest, layer.size)));
    }
    summary.bytes = sizes.into_values().fold(0, u64::saturating_add);
    Ok(summary)
}

/// Layers of a manifest without sizes; as many as are shown.
///
/// Errors: the store's.
pub(super) async fn sized(
    store: &Store,
    name: &Repository,
    layers: &[Descriptor],
) -> Result<Vec<Descriptor>, StoreError> {
    let mut sized = layers.to_vec();
    for layer in sized.iter_mut().take(ROWS_LIMIT) {
        layer.size = match store.blob_size(name, &layer.digest).await {
            Ok(size) => size,
            Err(StoreError::UnknownBlob(_)) => continue,
            Err(error) => return Err(error),
        };
    }
    Ok(sized)
}

/// A manifest and its blobs, each counted once.
fn measure(sizes: &mut HashMap<Digest, u64>, manifest: &Manifest) {
    sizes.insert(manifest.digest.clone(), manifest.bytes.len() as u64);
    sizes.extend(
        manifest
            .blobs()
            .map(|blob| (blob.digest.clone(), blob.size)),
    );
}
