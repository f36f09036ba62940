//! Durable folders: the fsync of a file does not make its parent folders' entries durable.
//!
//! Blocking, standard library only: every crate that stores files depends on it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::path::Path;

/// Creates `folder` and the missing folders above it, each durable in its parent.
///
/// Errors: a folder cannot be created or synced, or the path is no folder.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    create_folder_with(&DirBuilder::new(), folder)
}

/// [`create_folder`], with the permissions of `builder`.
///
/// Errors: as of [`create_folder`].
pub fn create_folder_with(builder: &DirBuilder, folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    create_folder_with(builder, parent(folder))?;
    match builder.create(folder) {
        // Created concurrently by another process, which may not have synced it yet.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
        created => created?,
    }
    // Removed if the sync fails: the next call takes an existing folder for durable.
    sync_parent(folder).inspect_err(|_| drop(fs::remove_dir(folder)))
}

/// [`create_folder`] of the parent of `path`.
///
/// Errors: as of [`create_folder`].
pub fn create_parent(path: &Path) -> io::Result<()> {
    create_folder(parent(path))
}

/// Syncs `folder`: makes creations, renames and removals of its entries durable.
///
/// Errors: it cannot be read or synced.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes the entry of `path` in its parent durable.
///
/// Errors: the parent cannot be read or synced.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    sync_folder(parent(path))
}

/// Parent of `path`: `.` for a plain name, `/` for `/`.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent.unwrap_or(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    use std::path::PathBuf;

    use faults::{Campaign, DONE, FOLDER};

    #[test]
    fn all_missing_folders_are_created_with_the_same_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        let mut builder = DirBuilder::new();
        create_folder_with(builder.mode(0o700), &deep).unwrap();
        create_folder(&deep).unwrap();
        for folder in deep.ancestors().take(3) {
            let mode = folder.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
        }
    }

    #[test]
    fn an_existing_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        for folder in [file.clone(), file.join("below")] {
            create_folder(&folder).unwrap_err();
        }
    }

    #[test]
    fn the_parent_of_a_name_is_the_working_folder() {
        for (path, expected) in [("a", "."), ("a/b", "a"), ("/a", "/"), ("/", "/")] {
            assert_eq!(parent(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    /// Driver of the campaign: creates the folders, and retries after a fault.
    #[test]
    fn driver() {
        let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
            return;
        };
        let deep = folder.join("a/b");
        if create_folder(&deep).is_err() {
            // Otherwise the retry would take it for durable.
            assert!(!deep.exists());
            create_folder(&deep).unwrap();
        }
        println!("{DONE}");
        std::process::abort();
    }

    #[test]
    fn folders_are_durable_after_any_fault() {
        let campaign = Campaign {
            driver: "tests::driver",
            state: |folder: &Path| folder.join("a/b").is_dir().to_string(),
            sample: None,
            ends_by_abort: true,
        };
        assert_eq!(
            campaign.unsynced_folders().unwrap(),
            [""; 0].map(PathBuf::from)
        );
        // Two mkdir and two fsync, each with two errors.
        assert_eq!(campaign.run().unwrap(), 8);
    }
}
