//! The images of a bundle, with their blobs once each.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use model::Error;
use oci::{Digest, Kind, Manifest};
use oci_client::client::{BlobSource, RemoteBlob};
use oci_client::image::{ImageLocation, Layout};
use serde_json::json;

use crate::manifest::{BundledImage, Encoding, ImageUse};
use crate::writer::PlannedContent;

/// Mark of an OCI image layout.
pub(crate) const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// Annotation with the name of an image. Source: OCI image-spec.
const NAME: &str = "org.opencontainers.image.ref.name";
/// Suffixes of the media types of compressed layers.
const COMPRESSED: [&str; 3] = ["gzip", "zstd", "bzip2"];
/// Levels of nested indexes.
const DEPTH: usize = 4;

/// Images to be bundled.
#[derive(Debug, Default)]
pub struct ImageSet {
    images: Vec<BundledImage>,
    pub(crate) locations: Vec<(String, ImageLocation, Digest)>,
    blobs: BTreeMap<Digest, PlannedBlob>,
    /// Digests of all manifests, also of the entries of indexes.
    manifests: Vec<Digest>,
}

#[derive(Debug)]
struct PlannedBlob {
    source: BlobSource,
    is_compressible: bool,
}

impl ImageSet {
    /// Adds an image under `name`, with the entries of an index.
    ///
    /// Errors: NotFound; Invalid – another image has the name, a manifest in the form of 2016; the registry's.
    pub async fn add(
        &mut self,
        name: &str,
        location: ImageLocation,
        used: ImageUse,
    ) -> Result<(), Error> {
        let digest = location.digest().await?;
        if let Some(same) = self.images.iter().find(|image| image.name == name) {
            if same.digest == digest {
                // Service images can be in the registry, too.
                let is_known = self
                    .images
                    .iter()
                    .any(|it| it.name == name && it.used == used);
                if is_known {
                    return Ok(());
                }
            } else {
                let reason = format!("{} and {digest} have the name {name}", same.digest);
                return Err(Error::invalid("image", reason));
            }
        }
        let top = location.manifest(&digest).await?;
        let mut content = Vec::new();
        let mut pending = vec![(top.clone(), 0)];
        while let Some((manifest, depth)) = pending.pop() {
            self.add_manifest(&manifest, used, &location, &mut content)?;
            if let Kind::Index { manifests } = &manifest.kind {
                if depth == DEPTH {
                    return Err(Error::invalid(
                        "image",
                        format!("{name}: too many nested indexes"),
                    ));
                }
                for entry in manifests {
                    pending.push((location.manifest(&entry.digest).await?, depth + 1));
                }
            }
        }
        content.sort();
        content.dedup();
        self.images.push(BundledImage {
            name: name.to_owned(),
            digest: digest.clone(),
            media_type: top.media_type.to_owned(),
            size: top.bytes.len() as u64,
            used,
            content,
        });
        self.locations.push((name.to_owned(), location, digest));
        Ok(())
    }

    /// Adds all named images of a layout.
    ///
    /// Errors: as [`Self::add`]; NotFound – no layout, or without names.
    pub async fn add_layout(&mut self, layout: &Layout, used: ImageUse) -> Result<(), Error> {
        let names = match &layout.name {
            Some(name) => vec![name.clone()],
            None => layout.names()?,
        };
        if names.is_empty() {
            return Err(Error::not_found("named image in the layout", layout));
        }
        for name in names {
            let location = ImageLocation::Layout(Layout {
                folder: layout.folder.clone(),
                name: Some(name.clone()),
            });
            self.add(&name, location, used).await?;
        }
        Ok(())
    }

    /// The images.
    pub fn images(&self) -> &[BundledImage] {
        &self.images
    }

    /// Whether an image, or an entry of an index, has the digest.
    pub(crate) fn has_digest(&self, digest: &Digest) -> bool {
        self.manifests.contains(digest)
    }

    /// The layout as members: mark, index and blobs.
    pub fn contents(&self) -> Vec<PlannedContent> {
        let images: Vec<_> = self.images.iter().collect();
        let mut contents = vec![
            PlannedContent::text("oci-layout", LAYOUT),
            PlannedContent::text("index.json", index(&images)),
        ];
        contents.extend(self.blobs.iter().map(|(digest, blob)| PlannedContent {
            encoding: if blob.is_compressible {
                Encoding::Gzip
            } else {
                Encoding::Plain
            },
            source: blob.source.clone(),
            digest: Some(digest.clone()),
            ..PlannedContent::text(blob_path(digest), "")
        }));
        contents
    }

    fn add_manifest(
        &mut self,
        manifest: &Manifest,
        used: ImageUse,
        location: &ImageLocation,
        content: &mut Vec<Digest>,
    ) -> Result<(), Error> {
        if matches!(manifest.kind, Kind::Schema1 { .. }) {
            let reason =
                format!("{location}: manifests in the form of 2016 have no place in layouts");
            return Err(Error::invalid("image", reason));
        }
        content.push(manifest.digest.clone());
        self.manifests.push(manifest.digest.clone());
        let own = PlannedBlob {
            source: BlobSource::Bytes(Bytes::clone(&manifest.bytes)),
            is_compressible: false,
        };
        self.blobs.entry(manifest.digest.clone()).or_insert(own);
        for blob in manifest.blobs() {
            content.push(blob.digest.clone());
            let kind = &blob.media_type;
            let is_packed = COMPRESSED.iter().any(|end| kind.ends_with(end));
            // The registry gets blobs from their place in the file.
            let is_compressible = used == ImageUse::Service && kind.contains("tar") && !is_packed;
            let source = match location {
                ImageLocation::Layout(layout) => BlobSource::File(layout.path(&blob.digest)),
                ImageLocation::Registry { client, reference } => {
                    BlobSource::Remote(Box::new(RemoteBlob {
                        client: client.clone(),
                        reference: reference.clone(),
                        blob: blob.clone(),
                    }))
                }
            };
            let planned = self
                .blobs
                .entry(blob.digest.clone())
                .or_insert(PlannedBlob {
                    source,
                    is_compressible,
                });
            planned.is_compressible &= is_compressible;
        }
        Ok(())
    }
}

/// Path of a blob in a layout.
pub fn blob_path(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm().as_str(), digest.hex())
}

/// `index.json` of a layout.
pub(crate) fn index(images: &[&BundledImage]) -> String {
    let mut names = BTreeSet::new();
    let entries: Vec<_> = images
        .iter()
        .filter(|image| names.insert(&image.name))
        .map(|image| {
            json!({
                "mediaType": image.media_type, "digest": image.digest, "size": image.size,
                "annotations": { NAME: image.name },
            })
        })
        .collect();
    json!({ "schemaVersion": 2, "manifests": entries }).to_string()
}

/// Repository and tag of an image, without its registry: its name in another registry.
pub fn path_in_registry(name: &str) -> String {
    let path = match name.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => path,
        _ => name,
    };
    let last = path.rsplit('/').next().unwrap_or(path);
    if last.contains([':', '@']) {
        path.to_owned()
    } else {
        format!("{path}:latest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_their_registry() {
        for (name, expected) in [
            ("localhost/atoll/db:0.1.0", "atoll/db:0.1.0"),
            ("quay.io:443/a/b@sha256:00", "a/b@sha256:00"),
            ("[::1]:5000/a", "a:latest"),
            ("acme/tool:v1", "acme/tool:v1"),
            ("tool", "tool:latest"),
        ] {
            assert_eq!(path_in_registry(name), expected);
        }
    }
}
