//! Blobs for registries.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

pub(super) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// Bytes, and their digest.
#[derive(Debug, Clone)]
pub(super) struct BenchBlob {
    pub(super) digest: String,
    pub(super) bytes: Vec<u8>,
}

impl BenchBlob {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(&bytes)));
        Self { digest, bytes }
    }

    /// Incompressible bytes, different for each seed.
    pub(super) fn noise(seed: u64, size: usize) -> Self {
        // SplitMix64: fast, and seeds do not collide.
        let mut state = seed.wrapping_mul(0xd134_2543_de82_ef95);
        let mut bytes = Vec::with_capacity(size + 8);
        while bytes.len() < size {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bytes.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
        }
        bytes.truncate(size);
        Self::new(bytes)
    }

    /// The manifest of an image whose first blob is the config.
    pub(super) fn manifest(blobs: &[Self]) -> Self {
        let mut described = blobs.iter().enumerate().map(|(index, blob)| {
            let kind = if index == 0 { "config" } else { "layer" };
            let suffix = if index == 0 { "+json" } else { ".tar" };
            let (digest, size) = (&blob.digest, blob.bytes.len());
            format!(
                r#"{{"mediaType":"application/vnd.oci.image.{kind}.v1{suffix}","digest":"{digest}","size":{size}}}"#
            )
        });
        let config = described.next().unwrap_or_default();
        let layers: Vec<_> = described.collect();
        let layers = layers.join(",");
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"{MANIFEST_TYPE}","config":{config},"layers":[{layers}]}}"#
        );
        Self::new(text.into_bytes())
    }

    pub(super) fn hex(&self) -> &str {
        self.digest.trim_start_matches("sha256:")
    }
}

/// Writes an image in distribution's layout.
pub(super) fn write_distribution(
    folder: &Path,
    repository: &str,
    tag: &str,
    blobs: &[BenchBlob],
    manifest: &BenchBlob,
) -> Result<()> {
    let root = folder.join("docker/registry/v2");
    for blob in blobs.iter().chain([manifest]) {
        let hex = blob.hex();
        let path = root.join(format!("blobs/sha256/{}/{hex}/data", &hex[..2]));
        // Images share layers.
        if !path.exists() {
            write(&path, &blob.bytes)?;
        }
    }
    let links = root.join("repositories").join(repository);
    let link = |path: &str, blob: &BenchBlob| {
        write(&links.join(path).join("link"), blob.digest.as_bytes())
    };
    for blob in blobs {
        link(&format!("_layers/sha256/{}", blob.hex()), blob)?;
    }
    let hex = manifest.hex();
    link(&format!("_manifests/revisions/sha256/{hex}"), manifest)?;
    link(&format!("_manifests/tags/{tag}/current"), manifest)?;
    link(
        &format!("_manifests/tags/{tag}/index/sha256/{hex}"),
        manifest,
    )
}

/// Writes a file and its parent folders.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().context("a file has a folder")?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_deterministic_and_differs_by_seed() {
        let noise = BenchBlob::noise(1, 1001);
        assert_eq!(noise.bytes.len(), 1001);
        assert_eq!(noise.digest, BenchBlob::noise(1, 1001).digest);
        assert_ne!(noise.digest, BenchBlob::noise(2, 1001).digest);
    }
}
