//! Folders: whether anything in them has changed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use model::Error;
use oci::{Algorithm, Hasher};

use super::image::FILES_LIMIT;

/// A hash over names, sizes, times and inodes of everything below `folder`. The content is not read: whoever looks
/// every few seconds should not notice it.
///
/// Errors: NotFound; Internal – a folder that cannot be read; TooLarge.
pub(super) async fn stamp(folder: &Path) -> Result<String, Error> {
    let folder = folder.to_owned();
    tokio::task::spawn_blocking(move || walk(&folder))
        .await
        .unwrap_or_else(|error| Err(Error::internal("looking at a folder", error)))
}

fn walk(root: &Path) -> Result<String, Error> {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut folders = vec![root.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for path in sorted(&folder)? {
            seen += 1;
            if seen > FILES_LIMIT {
                return Err(Error::TooLarge {
                    what: "number of files of a catalog",
                    limit: FILES_LIMIT as u64,
                });
            }
            let failed = |e| failed(&path, e);
            if fs::symlink_metadata(&path).map_err(failed)?.is_dir() {
                folders.push(path);
                continue;
            }
            let mut part = |bytes: &[u8]| {
                // With its length: parts cannot run into each other.
                hasher.update(&bytes.len().to_le_bytes());
                hasher.update(bytes);
            };
            part(path.as_os_str().as_encoded_bytes());
            // Through links: what they lead to is what is read.
            let Ok(file) = fs::metadata(&path) else {
                continue;
            };
            for number in [
                file.mtime(),
                file.mtime_nsec(),
                file.ctime(),
                file.ctime_nsec(),
            ] {
                part(&number.to_le_bytes());
            }
            for number in [file.size(), file.ino(), file.dev()] {
                part(&number.to_le_bytes());
            }
        }
    }
    Ok(hasher.finish().to_string())
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |e| failed(folder, e);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort_unstable();
    Ok(paths)
}

fn failed(path: &Path, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::not_found("file or folder", path.display());
    }
    Error::internal(format!("looking at {}", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_shows() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut stamps = vec![walk(folder.path()).unwrap()];
        let mut changed = |what: &str| {
            let stamp = walk(folder.path()).unwrap();
            assert!(!stamps.contains(&stamp), "{what}");
            assert_eq!(walk(folder.path()).unwrap(), stamp, "{what}");
            stamps.push(stamp);
        };
        fs::write(path("a"), "1").unwrap();
        changed("a new file");
        fs::write(path("b"), "2").unwrap();
        fs::rename(path("b"), path("a")).unwrap();
        changed("a replaced file");
        fs::create_dir(path("deep")).unwrap();
        fs::rename(path("a"), path("deep/a")).unwrap();
        changed("a moved file");
        std::os::unix::fs::symlink("deep/a", path("link")).unwrap();
        changed("a link");
        fs::write(path("deep/a"), "other").unwrap();
        changed("behind the link");
        fs::remove_file(path("deep/a")).unwrap();
        changed("a dangling link");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = walk(Path::new("/none/here")).unwrap_err();
        assert!(
            matches!(&error, Error::NotFound { id, .. } if id == "/none/here"),
            "{error}"
        );
    }
}
