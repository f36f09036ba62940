//! OCI layouts: an image as a folder, with the digest that it has in storage.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::engine::ImageEngine;

/// The file that names the manifests of a layout.
const INDEX: &str = "index.json";

#[derive(Debug, Deserialize)]
struct LayoutIndex {
    manifests: Vec<ManifestDescriptor>,
}

#[derive(Debug, Deserialize)]
struct ManifestDescriptor {
    digest: String,
}

/// Makes `folder` the layout of the image with this digest.
pub(super) fn write(
    engine: ImageEngine,
    reference: &str,
    digest: &str,
    folder: &Path,
) -> Result<()> {
    if holds(folder).as_deref() == Some(digest) {
        return Ok(());
    }
    let unfinished = folder.with_extension(format!("{}.tmp", std::process::id()));
    remove(&unfinished)?;
    engine.write_layout(reference, &unfinished)?;
    let written = holds(&unfinished);
    ensure!(
        written.as_deref() == Some(digest),
        "{reference} is {digest}, but was written as {written:?}"
    );
    remove(folder)?;
    fs::rename(&unfinished, folder).with_context(|| format!("writing {}", folder.display()))
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}

/// The digest of the one image in a layout.
fn holds(folder: &Path) -> Option<String> {
    let text = fs::read(folder.join(INDEX)).ok()?;
    let index: LayoutIndex = serde_json::from_slice(&text).ok()?;
    match <[ManifestDescriptor; 1]>::try_from(index.manifests) {
        Ok([manifest]) => Some(manifest.digest),
        Err(_) => None,
    }
}
