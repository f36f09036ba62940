//! The source's content: a catalog of three packages with their images, and an image larger than an archive file.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use oci::{Digest, Manifest, Reference, media_type};
use oci_client::{Client, ClientOptions};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Units: bytes. Together, they are more than a gibibyte; the larger one comes last.
const LARGE_LAYERS: [u64; 2] = [540 << 20, 541 << 20];
const PACKAGES: [&str; 3] = ["one", "two", "three"];

/// Writes content into a registry.
pub(super) struct Content {
    client: Client,
    registry: String,
    folder: PathBuf,
}

impl Content {
    /// `folder` is the storage of a docker-registry, for [`Self::push_large`].
    pub(super) fn new(registry: &str, folder: &Path) -> Result<Self> {
        let options = ClientOptions {
            plain_http: true,
            ..ClientOptions::default()
        };
        Ok(Self {
            client: Client::new(options)?,
            registry: registry.to_owned(),
            folder: folder.to_owned(),
        })
    }

    /// Writes an image of two layers of zeros directly into the registry's folder, as sparse files.
    pub(super) fn push_large(&self) -> Result<()> {
        let config = json!({"architecture": "amd64", "os": "linux"}).to_string();
        let root = self.folder.join("docker/registry/v2");
        let repository = root.join("repositories/acme/large");
        let mut blobs = Vec::new();
        let (mut hasher, mut hashed) = (Sha256::new(), 0);
        for size in LARGE_LAYERS {
            // Each continues at the end of the one before.
            io::copy(&mut io::repeat(0).take(size - hashed), &mut hasher)?;
            hashed = size;
            let digest = format!("sha256:{}", hex::encode(hasher.clone().finalize()));
            let data = blob(&root, &digest)?;
            File::create(data)?.set_len(size)?;
            blobs.push(json!({"mediaType": media_type::OCI_LAYER, "digest": digest, "size": size}));
            link(&repository.join("_layers/sha256"), &digest)?;
        }
        let digest = Digest::sha256(config.as_bytes()).to_string();
        fs::write(blob(&root, &digest)?, &config)?;
        link(&repository.join("_layers/sha256"), &digest)?;
        let config =
            json!({"mediaType": media_type::OCI_CONFIG, "digest": digest, "size": config.len()});
        let manifest = json!({
            "schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST, "config": config, "layers": blobs,
        })
        .to_string();
        let digest = Digest::sha256(manifest.as_bytes()).to_string();
        fs::write(blob(&root, &digest)?, manifest)?;
        let manifests = repository.join("_manifests");
        link(&manifests.join("revisions/sha256"), &digest)?;
        link(&manifests.join("tags/v1/index/sha256"), &digest)?;
        fs::create_dir_all(manifests.join("tags/v1/current"))?;
        fs::write(manifests.join("tags/v1/current/link"), digest)?;
        Ok(())
    }

    /// Pushes the catalog with `versions` versions of each package, and their images.
    pub(super) async fn push_catalog(&self, versions: usize) -> Result<()> {
        let mut documents = Vec::new();
        for package in PACKAGES {
            documents.push(
                json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}),
            );
            let mut entries = Vec::new();
            for version in 0..versions {
                let (name, tag) = (
                    format!("{package}.v1.{version}.0"),
                    format!("v1.{version}.0"),
                );
                let operator = format!("acme/{package}:{tag}");
                let bundle = format!("acme/{package}-bundle:{tag}");
                for image in [&operator, &bundle] {
                    self.push(image, &[("name", image)], json!({})).await?;
                }
                let (operator, bundle) =
                    (self.pinned(&operator).await?, self.pinned(&bundle).await?);
                documents.push(json!({
                    "schema": "olm.bundle", "package": package, "name": name, "image": bundle,
                    "properties": [{"type": "olm.package", "value": {
                        "packageName": package, "version": format!("1.{version}.0"),
                    }}],
                    "relatedImages": [{"name": "operator", "image": operator}],
                }));
                let replaced = version.checked_sub(1);
                entries.push(match replaced {
                    None => json!({"name": name}),
                    Some(below) => {
                        json!({"name": name, "replaces": format!("{package}.v1.{below}.0")})
                    }
                });
            }
            documents.push(json!({
                "schema": "olm.channel", "package": package, "name": "stable", "entries": entries,
            }));
        }
        let lines: Vec<_> = documents.iter().map(Value::to_string).collect();
        let labels = json!({"operators.operatorframework.io.index.configs.v1": "/configs"});
        let config = json!({"Labels": labels, "Entrypoint": ["/bin/opm"]});
        let files = [("configs/catalog.json", &*lines.join("\n"))];
        self.push("acme/index:v1", &files, config).await
    }

    /// Pushes an image of one layer with files.
    async fn push(&self, name: &str, files: &[(&str, &str)], config: Value) -> Result<()> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, path, content.as_bytes())?;
        }
        let layer = tar.into_inner()?;
        let diff_id = Digest::sha256(&layer);
        let image = self.image(name)?;
        let pushed = self
            .client
            .push_blob_bytes(&image, media_type::OCI_LAYER, layer.into());
        let layer = pushed.await?;
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": config,
            "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        });
        let bytes = config.to_string().into();
        let pushed = self
            .client
            .push_blob_bytes(&image, media_type::OCI_CONFIG, bytes);
        let config = pushed.await?;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": media_type::OCI_MANIFEST, "config": config, "layers": [layer],
        });
        let manifest = Manifest::parse(manifest.to_string().into(), None)?;
        Ok(self.client.push_manifest(&image, &manifest).await?)
    }

    /// The image's reference by digest.
    pub(super) async fn pinned(&self, name: &str) -> Result<String> {
        let image = self.image(name)?;
        let digest = self.client.manifest_digest(&image).await?;
        let digest = digest.with_context(|| format!("{image} is missing"))?;
        Ok(image.with_digest(digest).to_string())
    }

    fn image(&self, name: &str) -> Result<Reference> {
        Ok(format!("{}/{name}", self.registry).parse()?)
    }
}

/// Path of a blob.
fn blob(root: &Path, digest: &str) -> Result<PathBuf> {
    let hex = digest.trim_start_matches("sha256:");
    let folder = root.join("blobs/sha256").join(&hex[..2]).join(hex);
    fs::create_dir_all(&folder)?;
    Ok(folder.join("data"))
}

fn link(folder: &Path, digest: &str) -> Result<()> {
    let folder = folder.join(digest.trim_start_matches("sha256:"));
    fs::create_dir_all(&folder)?;
    Ok(fs::write(folder.join("link"), digest)?)
}
