//! The mirrored content: a catalog, the images of its bundles, and others. Written directly into a registry's folder.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};

use super::MirrorBenchArgs;
use crate::bench::blob::{BenchBlob, write_distribution};
use crate::command::output;

/// Layers that the images of a package share.
const SHARED: u32 = 3;
/// Images that no bundle references, for each ten bundles.
const OTHERS: u32 = 4;
/// Units: bytes. Size of a bundle's layer, and of the layers of the others.
const SMALL: usize = 2 << 10;
const TAG: &str = "v1";
const CATALOG: &str = "bench/catalog";

/// The content of the source.
#[derive(Debug, Default)]
pub(super) struct MirrorContent {
    pub(super) host: String,
    /// Repositories and tags of all images except the catalog.
    pub(super) images: Vec<(String, String)>,
    /// Number of them, from the first, that the catalog references.
    of_catalog: usize,
    bytes: u64,
    seed: u64,
}

impl MirrorContent {
    /// Writes it into the folder of the registry at `host`.
    pub(super) fn write(plan: &MirrorBenchArgs, folder: &Path, host: &str) -> Result<Self> {
        let mut content = Self {
            host: host.to_owned(),
            ..Self::default()
        };
        let mut documents = Vec::new();
        let layer = plan.layer as usize * 1024;
        for number in 0..plan.packages {
            let package = format!("package-{number}");
            let shared = (0..SHARED).map(|_| content.noise(layer * 4 / 3));
            let shared: Vec<_> = shared.collect();
            let name = |bundle: u32| format!("{package}.v1.{bundle}.0");
            for bundle in 0..plan.bundles {
                let tag = format!("v1.{bundle}.0");
                let own = content.noise(SMALL);
                let image =
                    content.image(folder, &format!("bench/{package}-bundle"), &tag, vec![own])?;
                let mut layers = shared.clone();
                layers.push(content.noise(layer));
                let operator = content.image(folder, &format!("bench/{package}"), &tag, layers)?;
                documents.push(document(&package, &name(bundle), bundle, &image, &operator));
            }
            let entries = (0..plan.bundles).map(|bundle| match bundle {
                0 => json!({ "name": name(bundle) }),
                _ => json!({ "name": name(bundle), "replaces": name(bundle - 1) }),
            });
            documents.push(
                json!({ "schema": "olm.package", "name": package, "defaultChannel": "stable" }),
            );
            documents.push(json!({
                "schema": "olm.channel", "package": package, "name": "stable",
                "entries": entries.collect::<Vec<_>>(),
            }));
        }
        content.of_catalog = content.images.len();
        for number in 0..plan.packages * plan.bundles * OTHERS / 10 {
            let layers = (0..2).map(|_| content.noise(layer / 8)).collect();
            content.image(folder, &format!("bench/other-{number}"), TAG, layers)?;
        }
        catalog(folder, &documents)?;
        Ok(content)
    }

    /// Writes an image; returns its reference by digest.
    fn image(
        &mut self,
        folder: &Path,
        repository: &str,
        tag: &str,
        layers: Vec<BenchBlob>,
    ) -> Result<String> {
        self.seed += 1;
        let layers_of = layers.iter().map(|layer| layer.digest.as_str());
        let config = json!({
            "architecture": "amd64", "os": "linux", "created_by": self.seed,
            "rootfs": { "type": "layers", "diff_ids": layers_of.collect::<Vec<_>>() },
        });
        let mut blobs = vec![BenchBlob::new(config.to_string().into())];
        blobs.extend(layers);
        let digest = put(folder, repository, tag, &blobs)?;
        self.images.push((repository.to_owned(), tag.to_owned()));
        Ok(format!("{}/{repository}@{digest}", self.host))
    }

    fn noise(&mut self, size: usize) -> BenchBlob {
        self.seed += 1;
        self.bytes += size as u64;
        BenchBlob::noise(self.seed, size)
    }

    /// The image-set configuration of ours and its peers: JSON, which every YAML reader accepts.
    pub(super) fn image_set(&self, version: &str) -> Value {
        let host = &self.host;
        let others = self.images[self.of_catalog..].iter();
        let others =
            others.map(|(repository, tag)| json!({ "name": format!("{host}/{repository}:{tag}") }));
        let catalog = format!("{host}/{CATALOG}:{TAG}");
        json!({
            "apiVersion": format!("mirror.openshift.io/{version}"),
            "kind": "ImageSetConfiguration",
            "mirror": {
                "operators": [{ "catalog": catalog, "full": true }],
                "additionalImages": others.collect::<Vec<_>>(),
            },
        })
    }

    /// All images, as the configuration of `skopeo sync`.
    pub(super) fn for_skopeo(&self) -> Value {
        let mut images: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (repository, tag) in self.all() {
            images.entry(repository).or_default().push(tag);
        }
        json!({ (&*self.host): { "tls-verify": false, "images": images } })
    }

    /// All images, as the configuration of `regsync` that copies them to `target`.
    pub(super) fn for_regsync(&self, target: &str) -> Value {
        let host = &self.host;
        let hosts = [host, target].map(|host| json!({ "registry": host, "tls": "disabled" }));
        let copies = self.all().map(|(repository, tag)| {
            let at = |host: &str| format!("{host}/{repository}:{tag}");
            json!({ "source": at(host), "target": at(target), "type": "image" })
        });
        json!({
            "version": 1,
            "creds": hosts,
            "defaults": { "parallel": 6 },
            "sync": copies.collect::<Vec<_>>(),
        })
    }

    fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let images = self.images.iter();
        let images = images.map(|(repository, tag)| (&**repository, &**tag));
        images.chain([(CATALOG, TAG)])
    }
}

impl fmt::Display for MirrorContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = self.bytes / 1_000_000;
        write!(
            f,
            "{} images and a catalog, {megabytes} MB in distinct layers",
            self.images.len()
        )
    }
}

/// Writes the image of a catalog.
fn catalog(folder: &Path, documents: &[Value]) -> Result<()> {
    let files = folder.join("catalog");
    fs::create_dir_all(files.join("configs"))?;
    let lines: Vec<_> = documents.iter().map(Value::to_string).collect();
    fs::write(files.join("configs/catalog.json"), lines.join("\n"))?;
    let mut tar = Command::new("tar");
    tar.args(["--create", "--owner=0", "--group=0", "--directory"]);
    let layer = BenchBlob::new(output(tar.arg(&files).arg("configs"))?);
    fs::remove_dir_all(files)?;
    let labels = json!({ "operators.operatorframework.io.index.configs.v1": "/configs" });
    let config = json!({
        "architecture": "amd64", "os": "linux",
        "config": { "Labels": labels, "Entrypoint": ["/bin/opm"], "Cmd": ["serve", "/configs"] },
        "rootfs": { "type": "layers", "diff_ids": [layer.digest] },
    });
    let config = BenchBlob::new(config.to_string().into());
    put(folder, CATALOG, TAG, &[config, layer]).map(drop)
}

/// Writes an image; returns its digest.
fn put(folder: &Path, repository: &str, tag: &str, blobs: &[BenchBlob]) -> Result<String> {
    let manifest = BenchBlob::manifest(blobs);
    write_distribution(folder, repository, tag, blobs, &manifest)?;
    Ok(manifest.digest)
}

fn document(package: &str, name: &str, bundle: u32, image: &str, operator: &str) -> Value {
    json!({
        "schema": "olm.bundle", "package": package, "name": name, "image": image,
        "properties": [
            { "type": "olm.package", "value": { "packageName": package, "version": format!("1.{bundle}.0") } },
        ],
        "relatedImages": [{ "name": "operator", "image": operator }, { "name": "", "image": image }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_gets_every_image() {
        let folder = tempfile::tempdir().unwrap();
        let plan = MirrorBenchArgs {
            packages: 2,
            bundles: 5,
            layer: 1,
        };
        let content = MirrorContent::write(&plan, folder.path(), "127.0.0.1:1").unwrap();
        // Two for each bundle, and the others.
        assert_eq!(content.images.len(), 20 + 4);
        let set = content.image_set("v1alpha2");
        let others = set["mirror"]["additionalImages"].as_array().unwrap();
        assert_eq!(others.len(), 4);
        let skopeo = content.for_skopeo();
        let images = skopeo["127.0.0.1:1"]["images"].as_object().unwrap();
        let tags = images.values().map(|tags| tags.as_array().unwrap().len());
        assert_eq!(tags.sum::<usize>(), 25);
        let regsync = content.for_regsync("127.0.0.1:2");
        assert_eq!(regsync["sync"].as_array().unwrap().len(), 25);
        let root = folder.path().join("docker/registry/v2");
        let blobs = Command::new("find")
            .arg(root.join("blobs"))
            .args(["-type", "f"])
            .output()
            .unwrap();
        let count = String::from_utf8(blobs.stdout).unwrap().lines().count();
        // Manifests and configs, the layers of bundles, operators and others, shared layers of packages, the catalog.
        assert_eq!(count, 24 * 2 + (10 + 10 + 8 + 6) + 3);
    }
}
