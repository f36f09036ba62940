//! The image of the smaller catalog: the original's layers, one that hides its catalog, and one with ours. The same catalog
//! always makes the same image.
//!
//! Source: the peer's v1, whose catalog images run in clusters as they are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use catalog::image::{DEFAULT_FOLDER, FOLDER_LABEL, folder};
use flate2::Compression;
use flate2::write::GzEncoder;
use model::Error;
use oci::client::BlobSource;
use oci::{Algorithm, Descriptor, Digest, Hasher, Kind, Manifest, Platform, media_type};
use serde_json::{Map, Value, json};

use crate::blobs::Blobs;

/// Units: bytes. Largest image configuration.
const CONFIG_LIMIT_BYTES: u64 = 4 << 20;
/// What an image runs on that does not say it.
const DEFAULT_ARCHITECTURE: &str = "amd64";

/// An image that was made.
#[derive(Debug)]
pub struct Rebuilt {
    /// The index, and after it its images.
    pub manifests: Vec<Manifest>,
    /// What has to be there besides the original's layers, with where it is.
    pub blobs: Vec<(Descriptor, BlobSource)>,
}

/// A layer that was made.
struct Layer {
    path: PathBuf,
    digest: Digest,
    /// Of what it is before it is compressed.
    diff_id: Digest,
    size: u64,
}

/// Makes the image of the catalog in the file `index` out of the original `root`, whose manifests and blobs are given.
/// Layers are written below `scratch`.
///
/// Errors: Invalid – the original is no image of a catalog; Internal – a layer cannot be written; those of `blobs`.
pub async fn rebuild(
    manifests: &BTreeMap<Digest, Manifest>,
    root: &Digest,
    blobs: &dyn Blobs,
    index: &Path,
    scratch: &Path,
) -> Result<Rebuilt, Error> {
    let mut build = Build {
        blobs,
        catalog: layer(scratch, "configs.tar.gz", Content::Catalog(index)).await?,
        hidden: BTreeMap::new(),
        scratch,
        made: Vec::new(),
    };
    let mut images = Vec::new();
    let mut entries = Vec::new();
    for (original, platform) in originals(manifests, root)? {
        let (manifest, platform) = build.image(original, platform).await?;
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
    build.made.push(build.catalog.blob());
    build.made.extend(build.hidden.values().map(Layer::blob));
    Ok(Rebuilt {
        manifests: images,
        blobs: build.made,
    })
}

/// The images of the original with their platforms, where an index says them.
fn originals<'a>(
    manifests: &'a BTreeMap<Digest, Manifest>,
    root: &Digest,
) -> Result<Vec<(&'a Manifest, Option<Platform>)>, Error> {
    let find = |digest: &Digest| {
        let found = manifests.get(digest);
        found.ok_or_else(|| Error::not_found("manifest", digest))
    };
    let original = find(root)?;
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

struct Build<'a> {
    blobs: &'a dyn Blobs,
    catalog: Layer,
    /// Layers that hide a folder, by folder.
    hidden: BTreeMap<String, Layer>,
    scratch: &'a Path,
    made: Vec<(Descriptor, BlobSource)>,
}

impl Build<'_> {
    async fn image(
        &mut self,
        original: &Manifest,
        platform: Option<Platform>,
    ) -> Result<(Manifest, Platform), Error> {
        let wrong =
            |reason: &str| Error::invalid("catalog", format!("{}: {reason}", original.digest));
        let Kind::Image { config, layers } = &original.kind else {
            return Err(wrong(
                "its manifest is of a kind that images of catalogs do not have",
            ));
        };
        let source = self.blobs.source(&config.digest);
        let source = source.ok_or_else(|| Error::not_found("blob", &config.digest))?;
        let bytes = source.bytes(&config.digest, CONFIG_LIMIT_BYTES).await?;
        let Ok(Value::Object(mut image)) = serde_json::from_slice(&bytes) else {
            return Err(wrong("its configuration is no JSON object"));
        };
        let hidden = self.hide(&image).await?;
        let added = hidden.iter().chain([&self.catalog.digest]);
        let added: Vec<&Layer> = added.filter_map(|digest| self.layer(digest)).collect();
        amend(&mut image, &added).ok_or_else(|| wrong("its configuration is no image's"))?;
        let platform = platform.unwrap_or_else(|| platform_of(&image));
        let new_config = Bytes::from(Value::Object(image).to_string());
        let new_config_descriptor = Descriptor {
            digest: Digest::sha256(&new_config),
            size: new_config.len() as u64,
            ..config.clone()
        };
        let is_docker = original.media_type == media_type::DOCKER_MANIFEST;
        let layer_type = if is_docker {
            media_type::DOCKER_LAYER_GZIP
        } else {
            media_type::OCI_LAYER_GZIP
        };
        let added = added.into_iter().map(|layer| layer.descriptor(layer_type));
        let layers: Vec<Descriptor> = layers.iter().cloned().chain(added).collect();
        let manifest = parsed(&json!({
            "schemaVersion": 2,
            "mediaType": original.media_type,
            "config": new_config_descriptor,
            "layers": layers,
        }))?;
        self.made
            .push((new_config_descriptor, BlobSource::Bytes(new_config)));
        Ok((manifest, platform))
    }

    /// The layer that hides the original's catalog.
    async fn hide(&mut self, image: &Map<String, Value>) -> Result<Option<Digest>, Error> {
        let labels = image.get("config").and_then(|config| config.get("Labels"));
        let labels: BTreeMap<String, String> = labels
            .and_then(|labels| serde_json::from_value(labels.clone()).ok())
            .unwrap_or_default();
        let Some(folder) = folder(&labels).map(|folder| folder.trim_matches('/').to_owned()) else {
            return Ok(None);
        };
        if folder.is_empty() {
            return Ok(None);
        }
        if !self.hidden.contains_key(&folder) {
            let name = format!("hidden-{}.tar.gz", self.hidden.len());
            let layer = layer(self.scratch, &name, Content::Hide(&folder)).await?;
            self.hidden.insert(folder.clone(), layer);
        }
        Ok(self.hidden.get(&folder).map(|layer| layer.digest.clone()))
    }

    fn layer(&self, digest: &Digest) -> Option<&Layer> {
        let layers = self.hidden.values().chain([&self.catalog]);
        layers.into_iter().find(|layer| layer.digest == *digest)
    }
}

impl Layer {
    fn descriptor(&self, media_type: &str) -> Descriptor {
        Descriptor {
            media_type: media_type.to_owned(),
            digest: self.digest.clone(),
            size: self.size,
            platform: None,
            annotations: None,
        }
    }

    fn blob(&self) -> (Descriptor, BlobSource) {
        let source = BlobSource::File(self.path.clone());
        (self.descriptor(media_type::OCI_LAYER_GZIP), source)
    }
}

/// Takes the layers into a configuration, and has the image serve them. Nothing where it is no configuration.
fn amend(image: &mut Map<String, Value>, added: &[&Layer]) -> Option<()> {
    let roots = image
        .get_mut("rootfs")?
        .get_mut("diff_ids")?
        .as_array_mut()?;
    roots.extend(added.iter().map(|layer| json!(layer.diff_id)));
    if let Some(history) = image.get_mut("history").and_then(Value::as_array_mut) {
        let step = json!({"created_by": "atoll mirror", "comment": "the catalog's wanted part"});
        history.extend(added.iter().map(|_| step.clone()));
    }
    let config = image
        .entry("config")
        .or_insert_with(|| json!({}))
        .as_object_mut()?;
    config.insert("Labels".into(), json!({FOLDER_LABEL: DEFAULT_FOLDER}));
    config.insert("Cmd".into(), json!(["serve", DEFAULT_FOLDER]));
    Some(())
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

/// What a layer has.
#[derive(Clone, Copy)]
enum Content<'a> {
    /// The catalog in this file.
    Catalog(&'a Path),
    /// Nothing at this path.
    Hide(&'a str),
}

async fn layer(scratch: &Path, name: &str, content: Content<'_>) -> Result<Layer, Error> {
    let path = scratch.join(name);
    let work = match content {
        Content::Catalog(index) => (Some(index.to_owned()), String::new()),
        Content::Hide(folder) => (None, folder.to_owned()),
    };
    let write = move || {
        let (digest, diff_id, size) = match &work {
            (Some(index), _) => write_layer(&path, |tar| add_catalog(tar, index)),
            (None, folder) => write_layer(&path, |tar| add_whiteout(tar, folder)),
        }?;
        Ok(Layer {
            path,
            digest,
            diff_id,
            size,
        })
    };
    let written: io::Result<Layer> = tokio::task::spawn_blocking(write)
        .await
        .map_err(|e| Error::internal("writing a layer", e))?;
    written.map_err(|e| Error::internal("writing a layer", e))
}

type Tar = tar::Builder<Hashed<GzEncoder<Hashed<BufWriter<File>>>>>;

/// Writes a compressed layer; its digest, that of what is in it, and its size.
fn write_layer(
    path: &Path,
    add: impl FnOnce(&mut Tar) -> io::Result<()>,
) -> io::Result<(Digest, Digest, u64)> {
    let file = Hashed::new(BufWriter::new(File::create(path)?));
    let plain = Hashed::new(GzEncoder::new(file, Compression::default()));
    let mut tar = tar::Builder::new(plain);
    add(&mut tar)?;
    let plain = tar.into_inner()?;
    let mut file = plain.inner.finish()?;
    file.flush()?;
    Ok((file.hasher.finish(), plain.hasher.finish(), file.count))
}

fn add_catalog(tar: &mut Tar, index: &Path) -> io::Result<()> {
    let folder = DEFAULT_FOLDER.trim_matches('/');
    let mut header = header(tar::EntryType::Directory, 0o755, 0);
    tar.append_data(&mut header, format!("{folder}/"), io::empty())?;
    let file = File::open(index)?;
    let size = file.metadata()?.len();
    let mut header = self::header(tar::EntryType::Regular, 0o644, size);
    tar.append_data(&mut header, format!("{folder}/index.json"), file)
}

fn add_whiteout(tar: &mut Tar, folder: &str) -> io::Result<()> {
    let path = match folder.rsplit_once('/') {
        Some((parent, name)) => format!("{parent}/.wh.{name}"),
        None => format!(".wh.{folder}"),
    };
    let mut header = header(tar::EntryType::Regular, 0o644, 0);
    tar.append_data(&mut header, path, io::empty())
}

/// Of root, and of no time.
fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

/// Hashes and counts what passes.
struct Hashed<W> {
    inner: W,
    hasher: Hasher,
    count: u64,
}

impl<W> Hashed<W> {
    fn new(inner: W) -> Self {
        Self {
            inner,
            hasher: Hasher::new(Algorithm::Sha256),
            count: 0,
        }
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.count += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
