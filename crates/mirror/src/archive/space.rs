//! Room on the medium.

use std::io;
use std::path::Path;

use model::Error;

/// Free space on the file system of `folder`. Units: bytes.
pub(super) fn free(folder: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Errors: Conflict – there is less room than `needed` bytes.
pub(super) fn check(folder: &Path, needed: u64) -> Result<(), Error> {
    let free = free(folder).map_err(|e| failed(folder, 0, e))?;
    match needed.checked_sub(free).filter(|missing| *missing > 0) {
        None => Ok(()),
        Some(missing) => Err(full(folder, needed, missing)),
    }
}

/// Why writing to `folder` failed, where `needed` bytes were still to be written.
pub(super) fn failed(folder: &Path, needed: u64, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            let free = free(folder).unwrap_or_default();
            full(folder, needed, needed.saturating_sub(free))
        }
        io::ErrorKind::FileTooLarge => {
            let reason = "files of that size are not possible there: choose a smaller archiveSize";
            Error::conflict(format!("{}: {reason}", folder.display()))
        }
        _ => Error::internal(format!("writing to {}", folder.display()), error),
    }
}

fn full(folder: &Path, needed: u64, missing: u64) -> Error {
    if missing == 0 {
        let folder = folder.display();
        return Error::conflict(format!(
            "{folder} is full: make room and run it again, what is there is kept"
        ));
    }
    Error::conflict(format!(
        "{} is full: {needed} bytes are still to be written, and {missing} bytes more have to be free there; make room \
         and run it again, what is there is kept",
        folder.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_space_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let needed = 1 << 62;
        check(dir.path(), 1).unwrap();
        let text = check(dir.path(), needed).unwrap_err().to_string();
        assert!(
            text.contains("is full") && text.contains(&needed.to_string()),
            "{text}"
        );
        let full = failed(dir.path(), needed, io::ErrorKind::StorageFull.into()).to_string();
        assert!(full.contains("bytes more"), "{full}");
        let large = failed(dir.path(), needed, io::ErrorKind::FileTooLarge.into()).to_string();
        assert!(large.contains("archiveSize"), "{large}");
        let other = failed(dir.path(), needed, io::ErrorKind::PermissionDenied.into()).to_string();
        assert!(!other.contains("is full"), "{other}");
    }
}
