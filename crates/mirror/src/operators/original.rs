//! A catalog's image as its maker published it, wherever it is.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use model::Error;
use oci::{Descriptor, Digest, Kind, MANIFEST_LIMIT_BYTES, Manifest, Platform};
use oci_client::client::{BlobSource, RemoteBlob};
use oci_client::image::ImageLocation;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::archive::{Extra, Set};
use crate::blobs::BlobProvider;
use crate::build_image::{BaseImage, BuiltImage};
use crate::content::{SourceBlob, SourceRepository};

/// Levels of nested indexes.
const INDEX_DEPTH: usize = 4;
/// Architecture of a single manifest whose configuration lacks it.
const DEFAULT_ARCHITECTURE: &str = "amd64";
/// Folder of the layout below the catalog's folder in an archive, and the pruned catalog. Source: the peer.
const LAYOUT: &str = "layout";
const INDEX: &str = "index/index.json";

/// Such an image.
#[derive(Debug)]
pub struct Original {
    /// The digest of its index, or of its only manifest.
    pub root: Digest,
    pub manifests: BTreeMap<Digest, Manifest>,
    blobs: BTreeMap<Digest, (Descriptor, BlobSource)>,
}

#[derive(Deserialize)]
struct LayoutIndex {
    manifests: Vec<Descriptor>,
}

impl BlobProvider for Original {
    fn source(&self, digest: &Digest) -> Option<BlobSource> {
        self.blobs.get(digest).map(|(_, source)| source.clone())
    }
}

impl Original {
    /// Fetches its manifests.
    ///
    /// Errors: NotFound; Invalid – indexes that are nested too deep; others as the client's.
    pub async fn fetch(place: &ImageLocation, root: &Digest) -> Result<Self, Error> {
        let mut original = Self::new(root);
        let mut next = vec![root.clone()];
        for _ in 0..INDEX_DEPTH {
            let mut parts = Vec::new();
            for digest in next {
                let manifest = place.manifest(&digest).await?;
                parts.extend(manifest.required_manifests().cloned());
                original.add(manifest, |blob| Some(source(place, blob)));
            }
            next = parts;
        }
        original.whole(&next)
    }

    /// Finds it in an archive, below the catalog's folder there.
    ///
    /// Blocking. Errors: NotFound – something is missing; Invalid – something is damaged.
    pub fn of_archive(set: &Set, folder: &str) -> Result<Self, Error> {
        let read = |path: String| {
            let place = set.place(&path);
            let place = place.ok_or_else(|| Error::not_found("file of the archive", &path))?;
            place.read(MANIFEST_LIMIT_BYTES as u64)
        };
        let layout = format!("{folder}/{LAYOUT}");
        let index = read(format!("{layout}/index.json"))?;
        let wrong = |reason: String| Error::invalid(format!("{layout}/index.json"), reason);
        let root = match Manifest::parse(index.clone(), None) {
            // The file is the image index itself, or an index of one manifest.
            Ok(list) if is_stored(set, &layout, &list.digest) => list.digest,
            _ => {
                let index: LayoutIndex =
                    serde_json::from_slice(&index).map_err(|e| wrong(e.to_string()))?;
                match &index.manifests[..] {
                    [only] => only.digest.clone(),
                    _ => Digest::sha256(&read(format!("{layout}/index.json"))?),
                }
            }
        };
        let mut original = Self::new(&root);
        let mut next = vec![root.clone()];
        for _ in 0..INDEX_DEPTH {
            let mut parts = Vec::new();
            for digest in next {
                let manifest = match set.place(&blob_path(&layout, &digest)) {
                    Some(place) => place.manifest(&digest)?,
                    None if digest == root => Manifest::parse(index.clone(), None)?,
                    None => return Err(Error::not_found("manifest of the archive", digest)),
                };
                parts.extend(manifest.required_manifests().cloned());
                original.add(manifest, |blob| {
                    let place = set.place(&blob_path(&layout, &blob.digest));
                    let place = place.or_else(|| set.blob(&blob.digest))?;
                    Some(place.source())
                });
            }
            next = parts;
        }
        original.whole(&next)
    }

    /// Its files below the catalog's folder in an archive.
    ///
    /// Blocking. Errors: Internal – a file of a folder cannot be read.
    pub fn extras(&self, folder: &str) -> Result<Vec<Extra>, Error> {
        let mut extras = self.manifest_extras(folder);
        for (digest, (blob, source)) in &self.blobs {
            let path = blob_path(&format!("{folder}/{LAYOUT}"), digest);
            extras.push(match source {
                BlobSource::File(file) => Extra::local(path, file.clone())?,
                _ => Extra::blob(path, digest.clone(), blob.size),
            });
        }
        Ok(extras)
    }

    /// Its files below the catalog's folder in an archive that has its blobs elsewhere.
    pub fn manifest_extras(&self, folder: &str) -> Vec<Extra> {
        let layout = format!("{folder}/{LAYOUT}");
        let version = Bytes::from_static(br#"{"imageLayoutVersion":"1.0.0"}"#);
        let mut extras = vec![
            Extra::inline(format!("{layout}/oci-layout"), version),
            Extra::inline(format!("{layout}/index.json"), self.index()),
        ];
        for (digest, manifest) in &self.manifests {
            let path = blob_path(&layout, digest);
            extras.push(Extra::inline(path, manifest.bytes.clone()));
        }
        extras
    }

    /// Its blobs that are files of a folder.
    pub fn local(&self) -> impl Iterator<Item = (&Descriptor, &Path)> {
        self.blobs.values().filter_map(|(blob, source)| {
            let BlobSource::File(file) = source else {
                return None;
            };
            Some((blob, file.as_path()))
        })
    }

    /// As it is.
    pub fn image(&self) -> BuiltImage {
        let root = self.manifests.get(&self.root).into_iter();
        let parts = self.manifests.values().filter(|it| it.digest != self.root);
        BuiltImage {
            manifests: root.chain(parts).cloned().collect(),
            blobs: Vec::new(),
        }
    }

    /// As others are made of it.
    pub fn base(&self) -> BaseImage<'_> {
        BaseImage {
            manifests: &self.manifests,
            root: &self.root,
            blobs: self,
        }
    }

    /// Blobs to fetch for it, with their sources.
    pub fn remote(&self) -> impl Iterator<Item = (Digest, SourceBlob)> {
        self.blobs.iter().filter_map(|(digest, (blob, source))| {
            let BlobSource::Remote(remote) = source else {
                return None;
            };
            let origin = SourceRepository {
                registry: remote.reference.registry.clone(),
                repository: remote.reference.repository.clone(),
            };
            let sources = [origin].into();
            let size = blob.size;
            let file = None;
            let blob = SourceBlob {
                size,
                sources,
                file,
            };
            Some((digest.clone(), blob))
        })
    }

    fn new(root: &Digest) -> Self {
        Self {
            root: root.clone(),
            manifests: BTreeMap::new(),
            blobs: BTreeMap::new(),
        }
    }

    fn add(&mut self, manifest: Manifest, source: impl Fn(&Descriptor) -> Option<BlobSource>) {
        for blob in manifest.blobs() {
            if let Some(source) = source(blob) {
                self.blobs
                    .insert(blob.digest.clone(), (blob.clone(), source));
            }
        }
        self.manifests.insert(manifest.digest.clone(), manifest);
    }

    fn whole(self, rest: &[Digest]) -> Result<Self, Error> {
        if rest.is_empty() {
            return Ok(self);
        }
        let reason = format!("{}: indexes are nested too deep", self.root);
        Err(Error::invalid("catalog", reason))
    }

    /// The list itself, or an index of the only manifest.
    fn index(&self) -> Bytes {
        let Some(root) = self.manifests.get(&self.root) else {
            return Bytes::new();
        };
        if matches!(root.kind, Kind::Index { .. }) {
            return root.bytes.clone();
        }
        let entry = Descriptor {
            platform: Some(Platform::linux(DEFAULT_ARCHITECTURE)),
            ..root.descriptor()
        };
        let index: Value = json!({"schemaVersion": 2, "manifests": [entry]});
        index.to_string().into()
    }
}

/// Path of the pruned catalog in an archive.
pub fn index_path(folder: &str) -> String {
    format!("{folder}/{INDEX}")
}

/// The folder of a catalog in an archive, by its unique name. Source: the peer.
pub fn folder_of(name: &str) -> String {
    let path = match name.rsplit_once('@') {
        Some((named, digest)) => format!("{named}/{digest}"),
        None => match name.rsplit_once(':') {
            Some((named, tag)) if !tag.contains('/') => format!("{named}/{tag}"),
            _ => format!("{name}/latest"),
        },
    };
    format!("catalogs/{}", path.trim_start_matches('/'))
}

fn is_stored(set: &Set, layout: &str, digest: &Digest) -> bool {
    set.place(&blob_path(layout, digest)).is_some()
}

fn blob_path(layout: &str, digest: &Digest) -> String {
    format!(
        "{layout}/blobs/{}/{}",
        digest.algorithm().as_str(),
        digest.hex()
    )
}

fn source(place: &ImageLocation, blob: &Descriptor) -> BlobSource {
    match place {
        ImageLocation::Registry { client, reference } => BlobSource::Remote(Box::new(RemoteBlob {
            client: client.clone(),
            reference: reference.with_digest(blob.digest.clone()),
            blob: blob.clone(),
        })),
        ImageLocation::Layout(layout) => BlobSource::File(layout.path(&blob.digest)),
    }
}
