//! Stores of metadata: a folder, or an image with that one file.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use model::Error;
use model::image_set::Storage;
use model::mirror_metadata::MirrorMetadata;
use oci::{Digest, Manifest, Platform, Reference, Tag, media_type};
use oci_client::Client;
use serde_json::json;
use uuid::Uuid;

use super::metadata_file::{FILE_MODE, read_file, write_file};
use super::runs;
use crate::archive::METADATA;
use crate::names;
use crate::publish::MirrorTarget;

/// The image of a target, below its namespace. Source: the peer.
const REPOSITORY: &str = "oc-mirror";
/// Creation time of an image without one. Source: the peer's tools.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

/// A store of metadata.
#[derive(Debug, Clone)]
pub enum MetadataStore {
    /// Below this folder.
    Folder(PathBuf),
    /// In this folder, with a file for each run.
    Runs(PathBuf),
    /// In this image.
    Image {
        client: Client,
        reference: Reference,
    },
}

impl MetadataStore {
    /// The store of a configuration; `client` is for an image, and accepts any certificate where the configuration has
    /// skipTLS.
    ///
    /// Errors: Invalid – the image's name is no reference.
    pub fn new(storage: &Storage, client: &Client) -> Result<Self, Error> {
        match storage {
            Storage::Local { path } => Ok(Self::Folder(path.into())),
            Storage::Registry { image, .. } => Ok(Self::Image {
                client: client.clone(),
                reference: names::reference(image)?,
            }),
        }
    }

    /// The set's metadata in the target.
    ///
    /// Errors: Invalid – its name does not fit into the target.
    pub fn in_target(target: &MirrorTarget, uid: Uuid) -> Result<Self, Error> {
        let place = target.place(&REPOSITORY.parse()?)?;
        Ok(Self::Image {
            client: target.client.clone(),
            reference: Reference {
                tag: Some(uid.to_string().parse::<Tag>()?),
                ..place
            },
        })
    }

    /// The metadata of all sets in the target.
    ///
    /// Errors: as [`Self::read`].
    pub async fn all_in_target(target: &MirrorTarget) -> Result<Vec<MirrorMetadata>, Error> {
        let place = target.place(&REPOSITORY.parse()?)?;
        let tags = match target.client.tags(&place).await {
            Ok(tags) => tags,
            Err(Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for uid in tags
            .iter()
            .filter_map(|tag| tag.as_str().parse::<Uuid>().ok())
        {
            found.extend(Self::in_target(target, uid)?.read().await?);
        }
        Ok(found)
    }

    /// The metadata; none before the first run.
    ///
    /// Errors: Invalid – malformed metadata; TooLarge; Internal – the disk; those of the registry.
    pub async fn read(&self) -> Result<Option<MirrorMetadata>, Error> {
        match self {
            Self::Folder(folder) => {
                let file = folder.join(METADATA);
                blocking(move || read_file(&file)).await
            }
            Self::Runs(folder) => {
                let folder = folder.clone();
                blocking(move || runs::newest(&folder, None)).await
            }
            Self::Image { client, reference } => read_image(client, reference).await,
        }
    }

    /// The metadata of the last run before a time; none where there was none, or the store keeps the last run alone. Units:
    /// seconds since 1970.
    ///
    /// Errors: as [`Self::read`].
    pub async fn read_before(&self, time: i64) -> Result<Option<MirrorMetadata>, Error> {
        match self {
            Self::Runs(folder) => {
                let folder = folder.clone();
                blocking(move || runs::newest(&folder, Some(time))).await
            }
            Self::Folder(_) | Self::Image { .. } => {
                let last = self.read().await?;
                Ok(last.filter(|it| it.past_mirror.timestamp < time))
            }
        }
    }

    /// Replaces the metadata.
    ///
    /// Errors: Internal – the disk; those of the registry.
    pub async fn write(&self, metadata: Bytes) -> Result<(), Error> {
        match self {
            Self::Folder(folder) => {
                let file = folder.join(METADATA);
                let write = move || {
                    write_file(&file, &metadata)
                        .map_err(|e| Error::internal(format!("writing {}", file.display()), e))
                };
                blocking(write).await
            }
            Self::Runs(folder) => {
                let folder = folder.clone();
                blocking(move || runs::add(&folder, &metadata)).await
            }
            Self::Image { client, reference } => write_image(client, reference, metadata).await,
        }
    }
}

/// Serialises metadata.
pub(crate) fn stored(metadata: &MirrorMetadata) -> Result<Bytes, Error> {
    let bytes = serde_json::to_vec(metadata);
    let bytes = bytes.map_err(|e| Error::internal("writing metadata", e))?;
    Ok(bytes.into())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|e| Err(Error::internal("keeping metadata", e)))
}

async fn read_image(
    client: &Client,
    reference: &Reference,
) -> Result<Option<MirrorMetadata>, Error> {
    let Some(digest) = client.manifest_digest(reference).await? else {
        return Ok(None);
    };
    let made = || tempfile::tempdir().map_err(|e| Error::internal("making a folder", e));
    let folder = blocking(made).await?;
    let file = folder.path().join("metadata.json");
    let pinned = reference.with_digest(digest);
    oci_client::image::fetch_file(client, &pinned, &Platform::linux(""), METADATA, &file)
        .await
        .map_err(|e| match e {
            // The image exists: its digest was resolved before.
            Error::NotFound { .. } => Error::invalid(
                reference.to_string(),
                "the image has no metadata of a set in it",
            ),
            other => other,
        })?;
    blocking(move || {
        // The file has mode 0 in the image.
        let readable = fs::set_permissions(&file, Permissions::from_mode(FILE_MODE));
        readable.map_err(|e| Error::internal("reading metadata", e))?;
        let metadata = read_file(&file);
        drop(folder);
        metadata
    })
    .await
}

async fn write_image(client: &Client, reference: &Reference, metadata: Bytes) -> Result<(), Error> {
    let made = move || layer(&metadata).map_err(|e| Error::internal("packing metadata", e));
    let (tar, gzip) = blocking(made).await?;
    let config = json!({
        "architecture": "",
        "config": {},
        "created": NO_TIME,
        "history": [{ "created": NO_TIME }],
        "os": "",
        "rootfs": { "diff_ids": [tar], "type": "layers" },
    });
    let layer = client
        .push_blob_bytes(reference, media_type::DOCKER_LAYER_GZIP, gzip)
        .await?;
    let config = client
        .push_blob_bytes(
            reference,
            media_type::DOCKER_CONFIG,
            config.to_string().into(),
        )
        .await?;
    let manifest = json!({
        "config": config,
        "layers": [layer],
        "mediaType": media_type::DOCKER_MANIFEST,
        "schemaVersion": 2,
    });
    let manifest = Manifest::parse(manifest.to_string().into(), None)?;
    client.push_manifest(reference, &manifest).await
}

/// The digest of a layer with the metadata, and that layer compressed. The same metadata always makes the same image.
fn layer(metadata: &[u8]) -> io::Result<(Digest, Bytes)> {
    let mut header = tar::Header::new_ustar();
    header.set_size(metadata.len() as u64);
    header.set_mode(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_data(&mut header, METADATA, metadata)?;
    let tar = tar.into_inner()?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&tar)?;
    Ok((Digest::sha256(&tar), gzip.finish()?.into()))
}
