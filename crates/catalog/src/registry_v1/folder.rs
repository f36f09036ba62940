//! Files of a bundle.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Most files of one bundle.
pub const FILES_LIMIT: usize = 4096;
/// Largest bundle. Units: bytes. A cluster stores the manifests of one in objects of a megabyte.
pub const BYTES_LIMIT: u64 = 128 << 20;

/// Subfolders of a bundle.
const MANIFESTS: &str = "manifests";
const METADATA: &str = "metadata";

/// The files of a bundle, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleFolder {
    pub manifests: Vec<BundleFile>,
    pub metadata: Vec<BundleFile>,
}

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleFile {
    /// Path inside the bundle.
    pub path: String,
    pub content: Vec<u8>,
}

impl BundleFolder {
    /// Whether a folder is a bundle, and not a catalog.
    pub fn is_bundle(folder: &Path) -> bool {
        [MANIFESTS, METADATA]
            .iter()
            .all(|name| folder.join(name).is_dir())
    }

    /// Reads the bundle in `folder`; folders below its two are skipped, as are hidden manifests.
    ///
    /// Blocking. Errors: unreadable files, or a bundle that is too large.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let mut left = BYTES_LIMIT;
        Ok(Self {
            manifests: files(folder, MANIFESTS, &mut left)?,
            metadata: files(folder, METADATA, &mut left)?,
        })
    }
}

/// The files of a subfolder, by name. Units: `left` in bytes.
fn files(folder: &Path, name: &str, left: &mut u64) -> io::Result<Vec<BundleFile>> {
    let too_large = |limit: u64, unit: &str| {
        io::Error::other(format!("the bundle has more than {limit} {unit}"))
    };
    let entries = fs::read_dir(folder.join(name)).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!("the bundle has no folder {name}")),
        _ => e,
    })?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() || (name == MANIFESTS && file.starts_with('.')) {
            continue;
        }
        if found.len() == FILES_LIMIT {
            return Err(too_large(FILES_LIMIT as u64, "files"));
        }
        let mut content = Vec::new();
        let read = File::open(entry.path())?
            .take(*left + 1)
            .read_to_end(&mut content)?;
        *left = left
            .checked_sub(read as u64)
            .ok_or_else(|| too_large(BYTES_LIMIT, "bytes"))?;
        found.push(BundleFile {
            path: format!("{name}/{file}"),
            content,
        });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
