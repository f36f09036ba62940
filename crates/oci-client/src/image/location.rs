//! Images in a registry or in an image layout.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use bytes::Bytes;
use model::Error;
use serde::Deserialize;

use super::{CONFIG_LIMIT_BYTES, parts, with_layer};
use crate::Client;
use crate::layout::Layout;
use oci::{Descriptor, Digest, Kind, Manifest, Platform, Reference};

/// Limit of nested indexes.
const INDEX_DEPTH: usize = 3;
/// Platform of an index entry that is an attestation, not an image. Source: BuildKit.
const UNKNOWN: &str = "unknown";

/// Location of an image.
#[derive(Debug, Clone)]
pub enum ImageLocation {
    /// In a registry, under a tag or digest.
    Registry {
        /// Client of the registry.
        client: Client,
        /// The image.
        reference: Reference,
    },
    /// In an image layout.
    Layout(Layout),
}

/// One image by digest, which a moved tag does not change.
#[derive(Debug, Clone)]
pub struct ResolvedImage {
    pub(super) location: ImageLocation,
    pub(super) manifest: Manifest,
}

#[derive(Deserialize)]
struct ImageConfig {
    #[serde(default)]
    config: Option<ConfigLabels>,
}

#[derive(Deserialize)]
struct ConfigLabels {
    #[serde(rename = "Labels", default)]
    labels: Option<BTreeMap<String, String>>,
}

impl ImageLocation {
    /// The current digest.
    ///
    /// Errors: NotFound – no such image; others as the client's.
    pub async fn digest(&self) -> Result<Digest, Error> {
        match self {
            Self::Registry { client, reference } => {
                let digest = client.manifest_digest(reference).await?;
                digest.ok_or_else(|| Error::not_found("image", reference))
            }
            Self::Layout(layout) => {
                let layout = layout.clone();
                blocking(move || layout.digest()).await
            }
        }
    }

    /// The image under `digest`; of an index, the entry for this machine's architecture, or else the first: for content
    /// that does not depend on the platform.
    ///
    /// Errors: NotFound; Invalid – not an image; others as the client's.
    pub async fn image(&self, digest: &Digest) -> Result<ResolvedImage, Error> {
        let mut manifest = self.manifest(digest).await?;
        for _ in 0..INDEX_DEPTH {
            let entry = match &manifest.kind {
                Kind::Index { manifests } => {
                    chosen(manifests).ok_or_else(|| Error::not_found("image", self))?
                }
                Kind::Image { .. } | Kind::Schema1 { .. } => break,
            };
            manifest = self.manifest(&entry.digest).await?;
        }
        parts(&manifest)?;
        Ok(ResolvedImage {
            location: self.clone(),
            manifest,
        })
    }

    /// The manifest or index under `digest`.
    ///
    /// Errors: as [`Self::image`].
    pub async fn manifest(&self, digest: &Digest) -> Result<Manifest, Error> {
        match self {
            Self::Registry { client, reference } => {
                let reference = reference.with_digest(digest.clone());
                client.pull_manifest(&reference).await
            }
            Self::Layout(layout) => {
                let (layout, digest) = (layout.clone(), digest.clone());
                blocking(move || layout.manifest(&digest)).await
            }
        }
    }

    async fn blob(&self, blob: &Descriptor, limit: u64) -> Result<Bytes, Error> {
        match self {
            Self::Registry { client, reference } => {
                client.pull_blob_bytes(reference, blob, limit).await
            }
            Self::Layout(layout) => {
                let (layout, digest) = (layout.clone(), blob.digest.clone());
                blocking(move || layout.blob(&digest, limit)).await
            }
        }
    }

    /// Runs `work` with the bytes of a layer, on the blocking pool.
    pub(super) async fn with_layer<T: Send + 'static>(
        &self,
        layer: &Descriptor,
        work: impl FnOnce(&mut dyn Read) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::Registry { client, reference } => {
                with_layer(client, reference, layer, work).await
            }
            Self::Layout(layout) => {
                let (layout, digest) = (layout.clone(), layer.digest.clone());
                blocking(move || layout.with_layer(&digest, work)).await
            }
        }
    }
}

impl ResolvedImage {
    /// The labels of the image's configuration.
    ///
    /// Errors: as [`ImageLocation::image`]; Invalid – the configuration is no JSON.
    pub async fn labels(&self) -> Result<BTreeMap<String, String>, Error> {
        let (config, _) = parts(&self.manifest)?;
        let bytes = self.location.blob(config, CONFIG_LIMIT_BYTES).await?;
        let config: ImageConfig = serde_json::from_slice(&bytes)
            .map_err(|e| Error::invalid("image config", format!("{}: {e}", self.location)))?;
        Ok(config
            .config
            .and_then(|config| config.labels)
            .unwrap_or_default())
    }

    #[cfg(test)]
    pub(super) fn layers(&self) -> usize {
        parts(&self.manifest).map_or(0, |(_, layers)| layers.len())
    }
}

impl fmt::Display for ImageLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry { reference, .. } => reference.fmt(f),
            Self::Layout(layout) => layout.fmt(f),
        }
    }
}

fn chosen(manifests: &[Descriptor]) -> Option<&Descriptor> {
    let own = Platform::linux(std::env::consts::ARCH);
    let is_image = |entry: &&Descriptor| {
        let platform = entry.platform.as_ref();
        platform.is_none_or(|platform| platform.os != UNKNOWN)
    };
    let is_own = |entry: &&Descriptor| entry.platform.as_ref() == Some(&own);
    let own = manifests.iter().find(is_own);
    own.or_else(|| manifests.iter().find(is_image))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("reading an image layout", error)))
}
