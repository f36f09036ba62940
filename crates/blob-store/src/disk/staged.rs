//! Atomic replace without fsync: temporary file, rename; the journal makes it durable.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A temporary file with its final content; removed unless it is placed.
#[derive(Debug)]
pub(super) struct Staged(Option<PathBuf>);

impl Staged {
    /// Writes `bytes` to `temporary`, without an fsync.
    pub(super) fn write(temporary: PathBuf, bytes: &[u8]) -> io::Result<Self> {
        let mut file = File::create_new(&temporary)?;
        let staged = Self(Some(temporary));
        file.write_all(bytes)?;
        Ok(staged)
    }

    /// Renames the file to its final name.
    pub(super) fn place(mut self, target: &Path) -> io::Result<()> {
        let Some(temporary) = self.0.as_deref() else {
            return Ok(());
        };
        rename(temporary, target)?;
        self.0 = None;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(temporary) = &self.0 {
            // The next start removes leftovers.
            fs::remove_file(temporary).ok();
        }
    }
}

/// Renames a file, and creates the target's folder again if it was removed concurrently.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && from.exists() => {
            durable::create_parent(to)?;
            fs::rename(from, to)
        }
        result => result,
    }
}

/// Removes a file. Returns whether it existed.
pub(super) fn remove_file(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether `error` means that the file does not exist.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
