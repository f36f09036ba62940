//! A private folder for one run of the installer.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use model::ids::ClusterId;
use uuid::Uuid;

use super::program::temporary;
use crate::files::make_folder;

/// A folder that is removed when the run is over, however it ends; it holds the pull secret.
pub(super) struct WorkFolder(PathBuf);

impl WorkFolder {
    /// Makes an empty folder for `cluster` below `parent`, and its folder for scratch files beside it.
    ///
    /// What a killed run of the same cluster left is removed: only one preparation of a cluster runs at a time.
    pub(super) fn make(parent: &Path, cluster: ClusterId) -> io::Result<Self> {
        make_folder(parent)?;
        let prefix = format!("{cluster}-");
        for entry in fs::read_dir(parent)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        let folder = Self(parent.join(format!("{prefix}{}", Uuid::new_v4().simple())));
        make_folder(&folder.0)?;
        make_folder(&temporary(&folder.0))?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        for folder in [&temporary(&self.0), &self.0] {
            if let Err(error) = fs::remove_dir_all(folder) {
                tracing::warn!(folder = %folder.display(), %error, "a work folder is left behind");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_behind() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path().join("work");
        let cluster = ClusterId(Uuid::from_u128(1));
        let killed = WorkFolder::make(&parent, cluster).unwrap();
        let left = killed.path().to_owned();
        fs::write(left.join("install-config.yaml"), "x").unwrap();
        std::mem::forget(killed);
        let folder = WorkFolder::make(&parent, cluster).unwrap();
        assert!(!left.exists());
        drop(folder);
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
    }
}
