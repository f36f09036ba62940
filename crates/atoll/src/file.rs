//! Files that are either the old or the new one, whatever happens.

use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use service::Error;

/// Writes a file with exactly `mode`, whatever the umask: others have to read what they are given.
///
/// Errors: a folder that cannot be written.
pub(crate) fn write_whole(path: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
    replace(path, content, mode, None)
}

/// Writes a file anew with the mode and owner that it has: its readers stay. One that is not there gets `mode`.
///
/// Errors: a folder that cannot be written, an owner that cannot be given.
pub(crate) fn rewrite(path: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
    let Ok(old) = fs::metadata(path) else {
        return replace(path, content, mode, None);
    };
    let owner = (old.uid(), old.gid());
    replace(path, content, old.mode() & 0o7777, Some(owner))
}

fn replace(path: &Path, content: &[u8], mode: u32, owner: Option<(u32, u32)>) -> Result<(), Error> {
    // Appended: a certificate and its key differ in their extensions only.
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
        file.sync_all()?;
        fs::rename(part, path)
    })();
    written.map_err(|e| Error::new(format!("writing {}", path.display()), e))
}

/// Makes a folder with exactly `mode`; one that is there keeps its own.
///
/// Errors: a folder that cannot be made.
pub(crate) fn folder(path: &Path, mode: u32) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path)
        .map_err(|e| Error::new(format!("making the folder {}", path.display()), e))?;
    set_mode(path, mode)
}

/// Errors: what is not there, or somebody else's.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), Error> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|e| Error::new(format!("setting the mode of {}", path.display()), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_exact() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        // No usual umask leaves the last one as it is.
        for wanted in [0o600, 0o644, 0o666] {
            let path = dir.path().join("password");
            write_whole(&path, b"x", wanted).unwrap();
            assert_eq!(mode(&path), wanted);
        }
        let path = dir.path().join("password");
        rewrite(&path, b"y", 0o600).unwrap();
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
