use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::image::{FileSelection, FileTree};
use crate::layer_tests::TestLayer as Tar;
use oci::Digest;

/// A layout under construction.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("blobs/sha256")).unwrap();
        Self(folder)
    }

    fn blob(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::sha256(bytes);
        fs::write(self.path(&digest), bytes).unwrap();
        digest
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.0.path().join("blobs/sha256").join(digest.hex())
    }

    fn json(&self, value: &Value) -> (Digest, usize) {
        let text = value.to_string();
        (self.blob(text.as_bytes()), text.len())
    }

    fn image(&self, layers: &[Vec<u8>]) -> (Digest, usize) {
        let (config, size) = self.json(&json!({ "config": { "Labels": { "a": "b" } } }));
        let layers: Vec<_> = layers
            .iter()
            .map(|layer| {
                json!({ "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": self.blob(layer),
                    "size": layer.len() })
            })
            .collect();
        let config = json!({ "mediaType": "application/vnd.oci.image.config.v1+json", "digest": config, "size": size });
        self.json(
            &json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config, "layers": layers }),
        )
    }

    fn index(&self, entries: &[(&(Digest, usize), Option<&str>)]) {
        let entries: Vec<_> = entries
            .iter()
            .map(|((digest, size), name)| {
                let mut entry = json!({ "digest": digest, "size": size });
                if let Some(name) = name {
                    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": name });
                }
                entry
            })
            .collect();
        let index = json!({ "schemaVersion": 2, "manifests": entries });
        fs::write(self.0.path().join("index.json"), index.to_string()).unwrap();
    }

    fn location(&self, tag: Option<&str>) -> ImageLocation {
        ImageLocation::Layout(Layout {
            folder: self.0.path().to_owned(),
            name: tag.map(str::to_owned),
        })
    }
}

fn everything() -> FileSelection {
    FileSelection {
        is_wanted: Arc::new(|_| true),
        limit_files: 10,
        limit_bytes: 1000,
    }
}

async fn tree(location: &ImageLocation, dest: &Path) -> Result<FileTree, Error> {
    let image = location.image(&location.digest().await?).await?;
    image.fetch_tree(&everything(), dest).await
}

#[tokio::test]
async fn an_image_is_read_from_a_folder() {
    let folder = Folder::new();
    let lower = Tar::new().file("configs/a", "old").file("configs/b", "b");
    let upper = Tar::new()
        .file("configs/a", "new")
        .file("configs/.wh.b", "");
    let upper = upper
        .link("configs/c", "a")
        .link("configs/out", "/etc/passwd");
    let image = folder.image(&[lower.tar(), upper.tar()]);
    folder.index(&[(&image, None)]);
    let (location, dest) = (folder.location(None), tempfile::tempdir().unwrap());
    let digest = location.digest().await.unwrap();
    let labels = location
        .image(&digest)
        .await
        .unwrap()
        .labels()
        .await
        .unwrap();
    assert_eq!(labels["a"], "b");
    let tree = tree(&location, dest.path()).await.unwrap();
    let found: Vec<_> = tree
        .below("/configs/")
        .map(|(path, file)| (path, file.map(|file| fs::read_to_string(file).unwrap())))
        .collect();
    let new = Some("new".to_owned());
    assert_eq!(found, [("a", new.clone()), ("c", new), ("out", None)]);
}

#[tokio::test]
async fn a_tag_selects_one_of_several_images() {
    let folder = Folder::new();
    let (one, two) = (
        folder.image(&[]),
        folder.image(&[Tar::new().file("x", "").tar()]),
    );
    folder.index(&[
        (&one, Some("v1")),
        (&two, Some("registry.example.org:5000/a/b:v2")),
    ]);
    assert_eq!(folder.location(Some("v1")).digest().await.unwrap(), one.0);
    assert_eq!(folder.location(Some("v2")).digest().await.unwrap(), two.0);
    let refused = folder.location(Some("v3")).digest().await.unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
    let refused = folder
        .location(None)
        .digest()
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("several images"), "{refused}");
}

#[tokio::test]
async fn an_index_resolves_to_this_platform_or_to_the_first_image() {
    let folder = Folder::new();
    let (own, other) = (
        folder.image(&[]),
        folder.image(&[Tar::new().file("x", "").tar()]),
    );
    let entry = |image: &(Digest, usize), architecture: &str, os: &str| {
        json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": image.0, "size": image.1,
            "platform": { "architecture": architecture, "os": os } })
    };
    let index = |entries: &[Value]| {
        folder.json(
            &json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": entries }),
        )
    };
    let architecture = Platform::linux(std::env::consts::ARCH).architecture;
    let found = async |entries: &[Value]| {
        folder.index(&[(&index(entries), None)]);
        let location = folder.location(None);
        location
            .image(&location.digest().await.unwrap())
            .await
            .map(|image| image.layers())
    };
    let (one, layers) = (entry(&own, &architecture, "linux"), 0);
    let elsewhere = entry(&other, "vax", "linux");
    let note = entry(&other, "unknown", "unknown");
    assert_eq!(
        found(&[elsewhere.clone(), one.clone()]).await.unwrap(),
        layers
    );
    assert_eq!(found(&[note.clone(), elsewhere]).await.unwrap(), 1);
    assert!(found(&[note]).await.is_err());
}

#[tokio::test]
async fn damage_is_detected_in_every_part() {
    let folder = Folder::new();
    let layer = Tar::new().file("x", "content").tar();
    let image = folder.image(std::slice::from_ref(&layer));
    folder.index(&[(&image, None)]);
    let location = folder.location(None);
    let refused = async || {
        let dest = tempfile::tempdir().unwrap();
        tree(&location, dest.path()).await.unwrap_err().to_string()
    };
    let (layer_path, manifest_path) = (folder.path(&Digest::sha256(&layer)), folder.path(&image.0));
    let mut damaged = layer.clone();
    // In the content of the file, so that the archive stays readable.
    let at = layer
        .windows(7)
        .position(|bytes| bytes == b"content")
        .unwrap();
    damaged[at] = b'C';
    for bytes in [&damaged[..], &layer[..layer.len() / 2], b"no archive"] {
        fs::write(&layer_path, bytes).unwrap();
        let message = refused().await;
        assert!(message.contains("is damaged"), "{message}");
    }
    fs::remove_file(&layer_path).unwrap();
    assert!(refused().await.contains("was not found"));
    fs::write(&manifest_path, "{}").unwrap();
    assert!(refused().await.contains("is damaged"));
    fs::write(folder.0.path().join("index.json"), "[").unwrap();
    assert!(refused().await.contains("index.json"));
}
