//! Trees of folders that outlive a power failure, and files whose failures say which file it was.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use durable::sync_folder;

/// [`sync_folder`] of `folder` and all folders below it.
pub(crate) fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    sync_folder(folder)
}

/// A new file whose errors name it, also those that come to light in a compressor above it.
#[derive(Debug)]
pub(crate) struct NamedFile {
    path: PathBuf,
    file: File,
}

impl NamedFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path).map_err(|e| named(path, &e))?;
        let path = path.to_owned();
        Ok(Self { path, file })
    }
}

impl Write for NamedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).map_err(|e| named(&self.path, &e))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
