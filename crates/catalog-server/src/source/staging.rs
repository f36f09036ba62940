//! Folders for what is on its way. They are gone when nobody needs them any more, at the latest with the next start.

use std::fs;
use std::path::{Path, PathBuf};

use model::Error;

/// How their names begin.
const PREFIX: &str = ".staging-";

/// Such a folder.
#[derive(Debug)]
pub struct Staging(PathBuf);

impl Staging {
    /// A new one below `scratch`.
    ///
    /// Blocking. Errors: Internal – it cannot be made.
    pub fn new(scratch: &Path) -> Result<Self, Error> {
        let path = scratch.join(format!("{PREFIX}{}", uuid::Uuid::new_v4()));
        make(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A folder inside.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.0.join(name);
        make(&path)?;
        Ok(path)
    }

    /// Removes what processes left below `scratch` that were killed: nobody else may use it now.
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
            tracing::warn!(%error, path = %self.0.display(), "a temporary folder stays behind");
        }
    }
}

fn make(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path)
        .map_err(|e| Error::internal(format!("making the folder {}", path.display()), e))
}
