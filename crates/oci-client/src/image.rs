//! Images as a whole: the manifest for a platform, its configuration, single files out of its layers.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt as _, TryStreamExt as _};
use model::Error;
use tokio_util::io::{StreamReader, SyncIoBridge};
use tokio_util::sync::CancellationToken;

use crate::Client;
use crate::layer::{self, LayerMatch};
use oci::{Descriptor, Kind, Manifest, Platform, Reference};

mod folder;
mod location;
#[cfg(test)]
mod location_tests;
mod tree;
mod visit;

pub use crate::layout::Layout;
pub use folder::FolderLimits;
pub use location::{ImageLocation, ResolvedImage};
pub use tree::{FileSelection, FileTree, fetch_tree};
pub use visit::{FileContent, FileVisitor, visit_files};

/// Limit of links on the way to one file, against loops.
const LINK_LIMIT: usize = 16;
/// Units: bytes. Largest image configuration.
const CONFIG_LIMIT_BYTES: u64 = 4 << 20;

/// A file to extract from an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFile {
    /// Path inside the image.
    pub path: String,
    /// Path on disk.
    pub destination: PathBuf,
}

/// The manifest of `reference` for `platform`: itself, or an entry of its index.
///
/// Errors: NotFound – no such image, or none for the platform; others as the client's.
pub async fn resolve(
    client: &Client,
    reference: &Reference,
    platform: &Platform,
) -> Result<Manifest, Error> {
    let manifest = client.pull_manifest(reference).await?;
    let Kind::Index { manifests } = &manifest.kind else {
        return Ok(manifest);
    };
    let entry = manifests
        .iter()
        .find(|entry| entry.platform.as_ref() == Some(platform))
        .ok_or_else(|| {
            Error::not_found(
                "image",
                format!("{reference} for {}/{}", platform.os, platform.architecture),
            )
        })?;
    let manifest = client
        .pull_manifest(&reference.with_digest(entry.digest.clone()))
        .await?;
    match manifest.kind {
        Kind::Image { .. } => Ok(manifest),
        Kind::Index { .. } | Kind::Schema1 { .. } => Err(Error::invalid(
            "image",
            format!("an entry of the index {reference} is no image manifest"),
        )),
    }
}

/// The configuration of an image, with its labels.
///
/// Errors: as [`resolve`]; Invalid – the configuration is no JSON.
pub async fn config(
    client: &Client,
    reference: &Reference,
    platform: &Platform,
) -> Result<serde_json::Value, Error> {
    let manifest = resolve(client, reference, platform).await?;
    let (config, _) = parts(&manifest)?;
    let bytes = client
        .pull_blob_bytes(reference, config, CONFIG_LIMIT_BYTES)
        .await?;
    serde_json::from_slice(&bytes)
        .map_err(|e| Error::invalid("image config", format!("{reference}: {e}")))
}

/// Extracts the file `path` of an image to `destination` by an atomic replace, with its mode bits.
///
/// Errors: NotFound – no such image or file; Invalid – an unreadable layer; others as the client's.
pub async fn fetch_file(
    client: &Client,
    reference: &Reference,
    platform: &Platform,
    path: &str,
    destination: &Path,
) -> Result<(), Error> {
    let wanted = ImageFile {
        path: path.to_owned(),
        destination: destination.to_owned(),
    };
    fetch_files(client, reference, platform, &[wanted]).await
}

/// Extracts several files of an image; each layer is read at most once, except for links.
///
/// Errors: as [`fetch_file`]; then none of the files is written.
pub async fn fetch_files(
    client: &Client,
    reference: &Reference,
    platform: &Platform,
    wanted: &[ImageFile],
) -> Result<(), Error> {
    let manifest = resolve(client, reference, platform).await?;
    let (_, layers) = parts(&manifest)?;
    let absent = |path: &str| Error::not_found("file", format!("{path} in image {reference}"));
    let mut searches = Vec::with_capacity(wanted.len());
    for wish in wanted {
        let path = layer::normalized(&wish.path).ok_or_else(|| absent(&wish.path))?;
        searches.push(PendingFile {
            path,
            staged: None,
            staging: staging_dir(&wish.destination)?,
        });
    }
    for _ in 0..=LINK_LIMIT {
        let open: Vec<usize> = (0..searches.len())
            .filter(|&i| searches[i].staged.is_none())
            .collect();
        if open.is_empty() {
            return place(wanted, searches).await;
        }
        pass(client, reference, layers, &mut searches, &open)
            .await?
            .map_or(Ok(()), |i| Err(absent(&wanted[i].path)))?;
    }
    Err(Error::invalid(
        "image",
        format!("{reference} has a loop of links on the way to a file"),
    ))
}

/// A file in progress, in a folder beside its destination, so that the last step is a rename.
struct PendingFile {
    path: String,
    staged: Option<PathBuf>,
    staging: PathBuf,
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.staging) {
            tracing::warn!(error = %error, path = %self.staging.display(), "temporary folder not removed");
        }
    }
}

/// Reads the layers from the top until each pending file is found or has a new path. Returns the first absent one.
async fn pass(
    client: &Client,
    reference: &Reference,
    layers: &[Descriptor],
    searches: &mut [PendingFile],
    open: &[usize],
) -> Result<Option<usize>, Error> {
    let mut open = open.to_vec();
    for layer in layers.iter().rev() {
        let Some(&first) = open.first() else {
            return Ok(None);
        };
        let paths: Vec<String> = open.iter().map(|&i| searches[i].path.clone()).collect();
        let staging = searches[first].staging.clone();
        let found = read_layer(client, reference, layer, paths, staging).await?;
        let mut still_open = Vec::new();
        for i in open {
            match found.get(&searches[i].path) {
                None => still_open.push(i),
                Some(LayerMatch::Removed) => return Ok(Some(i)),
                Some(LayerMatch::Link(path)) => searches[i].path.clone_from(path),
                Some(LayerMatch::File(file)) => {
                    let own = searches[i].staging.join("file");
                    link_or_copy(file, &own).await?;
                    searches[i].staged = Some(own);
                }
            }
        }
        open = still_open;
    }
    Ok(open.first().copied())
}

async fn read_layer(
    client: &Client,
    reference: &Reference,
    layer: &Descriptor,
    wanted: Vec<String>,
    dest: PathBuf,
) -> Result<BTreeMap<String, LayerMatch>, Error> {
    // A separate folder for each layer, so that files that are already linked elsewhere are not overwritten.
    let dest = dest.join(uuid::Uuid::new_v4().to_string());
    std::fs::create_dir(&dest)
        .map_err(|e| Error::internal(format!("creating {}", dest.display()), e))?;
    with_layer(client, reference, layer, move |bytes| {
        layer::extract_files(bytes, &wanted, &dest)
    })
    .await
}

/// Runs `work` with the bytes of a layer, on the blocking pool.
async fn with_layer<T: Send + 'static>(
    client: &Client,
    reference: &Reference,
    layer: &Descriptor,
    work: impl FnOnce(&mut dyn io::Read) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let stream = client.blob_stream(reference, layer).await?;
    // The reader reports an I/O error only: the client's error is passed beside it.
    let failure = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&failure);
    let stream = stream.map_err(move |error| {
        let text = io::Error::other(error.to_string());
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        text
    });
    // A cancelled caller ends the download: the blocking pool would finish it.
    let cancelled = CancellationToken::new();
    let _guard = cancelled.clone().drop_guard();
    let stream = stream.take_until(cancelled.cancelled_owned());
    let mut bridge = SyncIoBridge::new(StreamReader::new(Box::pin(stream)));
    let result = tokio::task::spawn_blocking(move || work(&mut bridge))
        .await
        .unwrap_or_else(|error| Err(Error::internal("reading a layer", error)));
    let failure = failure
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    failure.map_or(result, Err)
}

/// Links or copies, instead of a move: two requests may lead to one file, or to different file systems.
async fn link_or_copy(from: &Path, to: &Path) -> Result<(), Error> {
    if tokio::fs::hard_link(from, to).await.is_ok() {
        return Ok(());
    }
    tokio::fs::copy(from, to)
        .await
        .map(drop)
        .map_err(|e| Error::internal(format!("writing {}", to.display()), e))
}

async fn place(wanted: &[ImageFile], searches: Vec<PendingFile>) -> Result<(), Error> {
    for (wish, search) in wanted.iter().zip(&searches) {
        let Some(staged) = &search.staged else {
            continue;
        };
        let failed = |e| Error::internal(format!("writing {}", wish.destination.display()), e);
        tokio::fs::rename(staged, &wish.destination)
            .await
            .map_err(failed)?;
    }
    Ok(())
}

fn staging_dir(destination: &Path) -> Result<PathBuf, Error> {
    let parent = destination
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let dir = parent
        .unwrap_or(Path::new("."))
        .join(format!(".fetch-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&dir)
        .map_err(|e| Error::internal(format!("creating {}", dir.display()), e))?;
    Ok(dir)
}

fn parts(manifest: &Manifest) -> Result<(&Descriptor, &[Descriptor]), Error> {
    match &manifest.kind {
        Kind::Image { config, layers } => Ok((config, layers)),
        Kind::Index { .. } | Kind::Schema1 { .. } => Err(Error::invalid(
            "image",
            "only an image manifest of schema 2 has a config and layers",
        )),
    }
}
