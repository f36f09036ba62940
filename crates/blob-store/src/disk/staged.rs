//! Files that are whole or absent: temporary file, rename; durable by the journal.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file with its final content under a temporary name; removed unless it is placed.
#[derive(Debug)]
pub(super) struct Staged(Option<PathBuf>);

impl Staged {
    /// Writes `bytes` to `temporary`; durable by the journal, or not at all.
    pub(super) fn write(temporary: PathBuf, bytes: &[u8]) -> io::Result<Self> {
        let mut file = File::create_new(&temporary)?;
        let staged = Self(Some(temporary));
        file.write_all(bytes)?;
        Ok(staged)
    }

    /// Gives the file its final name.
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
            // What cannot be removed now is removed at the next start.
            fs::remove_file(temporary).ok();
        }
    }
}

/// Renames, also when somebody has just removed the folder that the target was to be in.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && from.exists() => {
            durable::create_parent(to)?;
            fs::rename(from, to)
        }
        result => result,
    }
}

/// Removes a file; whether it was there.
pub(super) fn remove_file(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether `error` says that there is nothing.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
