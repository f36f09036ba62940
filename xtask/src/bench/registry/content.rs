//! The servers' content: an image, and many repositories. Written directly into their folders.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::bench::blob::{BenchBlob, MANIFEST_TYPE, write, write_distribution};

pub(super) const REPOSITORY: &str = "bench/image";
pub(super) const TAG: &str = "latest";
/// Units: bytes.
pub(super) const SMALL: usize = 4 << 10;
/// Units: bytes.
pub(super) const LARGE: usize = 100_000_000;
/// Manifest included.
const BLOBS_PER_REPOSITORY: u64 = 10;
/// Units: bytes. As in the peers' published numbers: the count of blobs matters, not their size.
const TINY: usize = 250;

/// Storage layout of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StorageLayout {
    /// distribution's.
    Distribution,
    /// An OCI image layout per repository.
    Oci,
    /// Files named by their URLs.
    Files,
}

/// The pulled image.
#[derive(Debug)]
pub(super) struct BenchImage {
    blobs: [BenchBlob; 3],
    manifest: BenchBlob,
}

impl BenchImage {
    pub(super) fn new() -> Self {
        let config = BenchBlob::new(br#"{"architecture":"amd64","os":"linux"}"#.to_vec());
        let blobs = [
            config,
            BenchBlob::noise(1, SMALL),
            BenchBlob::noise(2, LARGE),
        ];
        let manifest = BenchBlob::manifest(&blobs);
        Self { blobs, manifest }
    }

    pub(super) fn by_tag() -> String {
        format!("/v2/{REPOSITORY}/manifests/{TAG}")
    }

    pub(super) fn by_digest(&self) -> String {
        format!("/v2/{REPOSITORY}/manifests/{}", self.manifest.digest)
    }

    pub(super) fn small(&self) -> String {
        format!("/v2/{REPOSITORY}/blobs/{}", self.blobs[1].digest)
    }

    pub(super) fn large(&self) -> String {
        format!("/v2/{REPOSITORY}/blobs/{}", self.blobs[2].digest)
    }

    /// Writes it in a storage layout.
    pub(super) fn write(&self, folder: &Path, layout: StorageLayout) -> Result<()> {
        layout.write(folder, REPOSITORY, &self.blobs, &self.manifest)
    }
}

/// Writes `count` repositories in a storage layout.
pub(super) fn fill(folder: &Path, layout: StorageLayout, count: u32) -> Result<()> {
    for number in 0..count {
        let first = u64::from(number) * BLOBS_PER_REPOSITORY;
        let blobs: Vec<_> = (first + 1..first + BLOBS_PER_REPOSITORY)
            .map(|seed| BenchBlob::noise(seed, TINY))
            .collect();
        let manifest = BenchBlob::manifest(&blobs);
        layout.write(folder, &many(number), &blobs, &manifest)?;
    }
    Ok(())
}

/// Removes the manifests of each fifth of `count` repositories, as if they were deleted: their blobs become garbage.
/// Returns the number of these blobs.
pub(super) fn litter(folder: &Path, count: u32) -> Result<u32> {
    let repositories = folder.join("docker/registry/v2/repositories");
    let mut blobs = 0;
    for number in (0..count).step_by(5) {
        fs::remove_dir_all(repositories.join(many(number)).join("_manifests/tags"))?;
        fs::remove_dir_all(repositories.join(many(number)).join("_manifests/revisions"))?;
        blobs += u32::try_from(BLOBS_PER_REPOSITORY)?;
    }
    Ok(blobs)
}

/// Name of repository `number`.
pub(super) fn many(number: u32) -> String {
    format!("many/repository-{number:05}")
}

impl StorageLayout {
    fn write(
        self,
        folder: &Path,
        repository: &str,
        blobs: &[BenchBlob],
        manifest: &BenchBlob,
    ) -> Result<()> {
        match self {
            Self::Distribution => write_distribution(folder, repository, TAG, blobs, manifest),
            Self::Oci => write_oci(folder, repository, blobs, manifest),
            Self::Files => write_files(folder, repository, blobs, manifest),
        }
    }
}

fn write_oci(
    folder: &Path,
    repository: &str,
    blobs: &[BenchBlob],
    manifest: &BenchBlob,
) -> Result<()> {
    let root = folder.join(repository);
    for blob in blobs.iter().chain([manifest]) {
        write(&root.join("blobs/sha256").join(blob.hex()), &blob.bytes)?;
    }
    let (digest, size) = (&manifest.digest, manifest.bytes.len());
    let index = format!(
        r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"{MANIFEST_TYPE}","digest":"{digest}","size":{size},"annotations":{{"org.opencontainers.image.ref.name":"{TAG}"}}}}]}}"#
    );
    write(&root.join("index.json"), index.as_bytes())?;
    write(
        &root.join("oci-layout"),
        br#"{"imageLayoutVersion":"1.0.0"}"#,
    )
}

fn write_files(
    folder: &Path,
    repository: &str,
    blobs: &[BenchBlob],
    manifest: &BenchBlob,
) -> Result<()> {
    let root = folder.join("v2").join(repository);
    for name in [TAG, &manifest.digest] {
        write(&root.join("manifests").join(name), &manifest.bytes)?;
    }
    for blob in blobs {
        write(&root.join("blobs").join(&blob.digest), &blob.bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_have_ten_blobs_and_a_tag() {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path(), StorageLayout::Distribution, 2).unwrap();
        let root = dir.path().join("docker/registry/v2");
        let names: Vec<_> = fs::read_dir(root.join("repositories/many"))
            .unwrap()
            .collect();
        assert_eq!(names.len(), 2);
        let tag = format!("repositories/{}/_manifests/tags/{TAG}", many(1));
        let digest = fs::read_to_string(root.join(tag).join("current/link")).unwrap();
        let hex = digest.strip_prefix("sha256:").unwrap();
        let data = root.join(format!("blobs/sha256/{}/{hex}/data", &hex[..2]));
        let bytes = fs::read(data).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(BenchBlob::new(bytes).digest, digest);
        assert_eq!(manifest["layers"].as_array().unwrap().len(), 8);
    }

    #[test]
    fn an_oci_layout_names_its_manifest() {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path(), StorageLayout::Oci, 1).unwrap();
        let root = dir.path().join(many(0));
        let index = fs::read(root.join("index.json")).unwrap();
        let index: serde_json::Value = serde_json::from_slice(&index).unwrap();
        let digest = index["manifests"][0]["digest"].as_str().unwrap();
        let hex = digest.strip_prefix("sha256:").unwrap();
        let bytes = fs::read(root.join("blobs/sha256").join(hex)).unwrap();
        assert_eq!(BenchBlob::new(bytes).digest, digest);
        assert!(root.join("oci-layout").is_file());
    }
}
