//! Small images, built in temporary files and pushed.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use model::Error;
use oci::{Algorithm, Descriptor, Digest, Hasher, Manifest, Reference, media_type};
use oci_client::Client;
use oci_client::client::BlobSource;
use serde_json::{Value, json};
use tar::{EntryType, Header};
use tempfile::NamedTempFile;

/// Of every entry, so that the same content has the same digest.
const MODIFIED: u64 = 0;
const EMPTY: &[u8] = b"";

/// An entry of a layer.
pub(super) struct LayerEntry {
    path: String,
    mode: u32,
    kind: EntryKind,
}

enum EntryKind {
    Bytes(Vec<u8>),
    File(PathBuf),
    Link(String),
}

impl LayerEntry {
    /// A readable file.
    pub(super) fn file(path: &str, content: &[u8]) -> Self {
        Self {
            path: path.to_owned(),
            mode: 0o644,
            kind: EntryKind::Bytes(content.to_vec()),
        }
    }

    /// A program.
    pub(super) fn program(path: &str, content: &[u8]) -> Self {
        Self {
            path: path.to_owned(),
            mode: 0o755,
            kind: EntryKind::Bytes(content.to_vec()),
        }
    }

    /// A program at `source`.
    pub(super) fn file_of(path: &str, source: &Path) -> Self {
        Self {
            path: path.to_owned(),
            mode: 0o755,
            kind: EntryKind::File(source.to_owned()),
        }
    }

    /// A symbolic link.
    pub(super) fn link(path: &str, target: &str) -> Self {
        Self {
            path: path.to_owned(),
            mode: 0o777,
            kind: EntryKind::Link(target.to_owned()),
        }
    }
}

/// A compressed layer on disk.
pub(super) struct LayerFile {
    file: NamedTempFile,
    descriptor: Descriptor,
    diff_id: Digest,
}

impl LayerFile {
    /// Packs `contents`.
    pub(super) fn of(contents: Vec<LayerEntry>) -> Result<Self, Error> {
        pack(contents).map_err(|error| Error::internal("packing an image layer", error))
    }
}

fn pack(contents: Vec<LayerEntry>) -> io::Result<LayerFile> {
    let file = NamedTempFile::new()?;
    let compressed = Counting::new(file.as_file().try_clone()?);
    let packer = GzEncoder::new(compressed, Compression::fast());
    let mut archive = tar::Builder::new(Counting::new(packer));
    for content in contents {
        append(&mut archive, content)?;
    }
    let uncompressed = archive.into_inner()?;
    let compressed = uncompressed.inner.finish()?;
    Ok(LayerFile {
        file,
        descriptor: Descriptor {
            media_type: media_type::OCI_LAYER_GZIP.to_owned(),
            size: compressed.count,
            digest: compressed.hasher.finish(),
            platform: None,
            annotations: None,
        },
        diff_id: uncompressed.hasher.finish(),
    })
}

fn append(archive: &mut tar::Builder<impl Write>, content: LayerEntry) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_mode(content.mode);
    header.set_mtime(MODIFIED);
    header.set_uid(0);
    header.set_gid(0);
    match content.kind {
        EntryKind::Bytes(bytes) => {
            header.set_size(bytes.len() as u64);
            archive.append_data(&mut header, &content.path, bytes.as_slice())
        }
        EntryKind::File(path) => {
            let mut file = File::open(path)?;
            let size = file.seek(io::SeekFrom::End(0))?;
            file.rewind()?;
            header.set_size(size);
            archive.append_data(&mut header, &content.path, file.take(size))
        }
        EntryKind::Link(target) => {
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            header.set_link_name(target)?;
            archive.append_data(&mut header, &content.path, EMPTY)
        }
    }
}

/// Pushes an image of `layers` as `image` (with a tag) and answers it pinned by digest.
pub(super) async fn push(
    client: &Client,
    image: &str,
    layers: &[LayerFile],
    labels: Value,
) -> Result<String, Error> {
    let reference = Reference::parse_local(image)?;
    for layer in layers {
        let source = BlobSource::File(layer.file.path().to_owned());
        client
            .push_blob(&reference, &layer.descriptor.digest, &source)
            .await?;
    }
    let config = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": { "Labels": labels },
        "rootfs": {
            "type": "layers",
            "diff_ids": layers.iter().map(|layer| layer.diff_id.to_string()).collect::<Vec<_>>(),
        },
    });
    let config = Bytes::from(config.to_string());
    let config = client
        .push_blob_bytes(&reference, media_type::OCI_CONFIG, config)
        .await?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": media_type::OCI_MANIFEST,
        "config": config,
        "layers": layers.iter().map(|layer| &layer.descriptor).collect::<Vec<_>>(),
    });
    let manifest = Manifest::parse(Bytes::from(manifest.to_string()), None)?;
    client.push_manifest(&reference, &manifest).await?;
    Ok(reference.with_digest(manifest.digest).to_string())
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A writer that hashes and counts its bytes.
struct Counting<W> {
    inner: W,
    hasher: Hasher,
    count: u64,
}

impl<W> Counting<W> {
    fn new(inner: W) -> Self {
        Self {
            inner,
            hasher: Hasher::new(Algorithm::Sha256),
            count: 0,
        }
    }
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.count += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
