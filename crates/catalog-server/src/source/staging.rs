//! Temporary folders, removed on drop, at the latest by the next start.

use std::fs;
use std::path::{Path, PathBuf};

use model::Error;

/// Prefix of their names.
const PREFIX: &str = ".staging-";

/// A temporary folder.
#[derive(Debug)]
pub struct Staging(PathBuf);

impl Staging {
    /// Creates a folder below `scratch`.
    ///
    /// Blocking. Errors: Internal – it cannot be created.
    pub fn new(scratch: &Path) -> Result<Self, Error> {
        let path = scratch.join(format!("{PREFIX}{}", uuid::Uuid::new_v4()));
        make(&path)?;
        Ok(Self(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates a subfolder.
    ///
    /// Blocking. Errors: Internal – it cannot be created.
    pub fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.0.join(name);
        make(&path)?;
        Ok(path)
    }

    /// Removes leftovers of killed processes below `scratch`; the caller holds its lock.
    pub(crate) fn clear(scratch: &Path) {
        let Ok(entries) = fs::read_dir(scratch) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                drop(Self(entry.path()));
            }
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "temporary folder not removed");
        }
    }
}

fn make(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path)
        .map_err(|e| Error::internal(format!("creating the folder {}", path.display()), e))
}
