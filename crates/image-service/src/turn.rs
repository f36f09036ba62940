//! Whose turn it is to write a file of a folder that replicas share.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// How often those who wait look whether the other is done.
const LOOK: Duration = Duration::from_secs(1);

/// While it lives, nobody else who asks for a turn writes the file. The system ends it with the process.
#[derive(Debug)]
pub(crate) struct Turn {
    _locked: File,
}

impl Turn {
    /// Waits until nobody else writes `path`. The file is made when it is not there, and is at that name afterwards.
    ///
    /// Errors: the file cannot be opened. A file system without locks is for one writer: there the turn comes at once.
    pub(crate) async fn take(path: &Path) -> io::Result<Self> {
        loop {
            let file = open(path).await?;
            match file.try_lock() {
                // Who had the turn before may have given the file its final name.
                Ok(()) if !is_at(path, &file) => {}
                Ok(()) => return Ok(Self { _locked: file }),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK).await,
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Self { _locked: file });
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

async fn open(path: &Path) -> io::Result<File> {
    let mut options = tokio::fs::OpenOptions::new();
    options.create(true).append(true);
    Ok(options.open(path).await?.into_std().await)
}

fn is_at(path: &Path, file: &File) -> bool {
    match (std::fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(held)) => (there.dev(), there.ino()) == (held.dev(), held.ino()),
        _ => false,
    }
}
