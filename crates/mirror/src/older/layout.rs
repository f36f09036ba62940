//! A catalog in a folder of the older kind, as an image layout: the same files under other names.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use model::Error;
use oci::{Digest, Manifest, Reference};
use serde_json::json;

use super::tree::RepositoryTree;

/// Levels of nested indexes.
const INDEX_DEPTH: usize = 4;

/// Writes the layout `to`, which does not exist yet.
///
/// Blocking. Errors: NotFound, Invalid – of the catalog; Internal – the disk.
pub(super) fn layout(dir: &Path, catalog: &Reference, to: &Path) -> Result<Manifest, Error> {
    let root = RepositoryTree::manifest(dir, catalog)?;
    let failed = |e: io::Error| Error::internal(format!("writing to {}", to.display()), e);
    let index = json!({"schemaVersion": 2, "manifests": [root.descriptor()]});
    fs::create_dir_all(to).map_err(failed)?;
    fs::write(to.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).map_err(failed)?;
    fs::write(to.join("index.json"), index.to_string()).map_err(failed)?;
    let mut next = vec![root.clone()];
    for _ in 0..INDEX_DEPTH {
        let mut parts = Vec::new();
        for manifest in next {
            let place = blob(to, &manifest.digest).map_err(failed)?;
            fs::write(place, &manifest.bytes).map_err(failed)?;
            for content in manifest.blobs() {
                let from = RepositoryTree::blob(dir, &catalog.repository, &content.digest);
                let from = fs::canonicalize(&from);
                let from = from.map_err(|_| Error::not_found("blob", &content.digest))?;
                let place = blob(to, &content.digest).map_err(failed)?;
                if !place.exists() {
                    symlink(from, place).map_err(failed)?;
                }
            }
            for part in manifest.required_manifests() {
                parts.push(RepositoryTree::manifest(
                    dir,
                    &catalog.with_digest(part.clone()),
                )?);
            }
        }
        next = parts;
    }
    Ok(root)
}

fn blob(layout: &Path, digest: &Digest) -> io::Result<PathBuf> {
    let folder = layout.join("blobs").join(digest.algorithm().as_str());
    fs::create_dir_all(&folder)?;
    Ok(folder.join(digest.hex()))
}
