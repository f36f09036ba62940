//! Atomic replace of files: temporary name, fsync, rename.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use crate::{Error, ResultExt as _};

/// Replaces a file atomically, with exactly `mode` regardless of the umask: other users have to read it.
///
/// Errors: the folder cannot be written.
pub fn write_atomic(path: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
    replace(path, content, mode, None)
}

/// Replaces a file atomically and keeps its mode and owner; a new file gets `mode`.
///
/// Errors: the folder cannot be written, or the owner not set.
pub fn rewrite_atomic(path: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
    let Ok(old) = fs::metadata(path) else {
        return replace(path, content, mode, None);
    };
    let owner = (old.uid(), old.gid());
    replace(path, content, old.mode() & 0o7777, Some(owner))
}

fn replace(path: &Path, content: &[u8], mode: u32, owner: Option<(u32, u32)>) -> Result<(), Error> {
    // Appended, not replaced: a certificate and its key differ in their extensions only.
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let written = (|| {
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(mode)
            .open(part)?;
        if let Some((user, group)) = owner {
            fchown(&file, Some(user), Some(group))?;
        }
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(content)?;
        // Before the rename: after a power failure the name must lead to all bytes, or to the old file.
        file.sync_all()?;
        fs::rename(part, path)
    })();
    written.map_err(|e| {
        fs::remove_file(part).ok();
        Error::new(format!("writing {}", path.display()), e)
    })
}

/// Creates a folder with exactly `mode`; an existing folder keeps its mode.
///
/// Errors: the folder cannot be created.
pub fn folder(path: &Path, mode: u32) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path).doing(|| format!("creating the folder {}", path.display()))?;
    set_mode(path, mode)
}

/// Sets the permissions of a file or folder.
///
/// Errors: it does not exist, or has another owner.
pub fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .doing(|| format!("setting the mode of {}", path.display()))
}

/// The content of a file; none if it does not exist.
///
/// Errors: it cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(format!("reading {}", path.display()), error)),
    }
}

/// Whether this process runs as root.
///
/// Errors: /proc is not mounted.
pub fn is_root() -> Result<bool, Error> {
    fs::metadata("/proc/self")
        .map(|metadata| metadata.uid() == 0)
        .doing("reading /proc/self")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_exact() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        // Every usual umask would clear bits of the last mode.
        for wanted in [0o600, 0o644, 0o666] {
            let path = dir.path().join("password");
            write_atomic(&path, b"x", wanted).unwrap();
            assert_eq!(mode(&path), wanted);
        }
        let path = dir.path().join("password");
        rewrite_atomic(&path, b"y", 0o600).unwrap();
        assert_eq!(
            (mode(&path), fs::read(&path).unwrap()),
            (0o666, b"y".to_vec())
        );
        let within = dir.path().join("secrets");
        folder(&within, 0o700).unwrap();
        folder(&within, 0o755).unwrap();
        assert_eq!(mode(&within), 0o700);
    }
}
