//! Locks of files in a folder that replicas share.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// How often a waiting replica retries the lock.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Exclusive lock on a file; the system releases it with the process.
#[derive(Debug)]
pub(crate) struct FileLock {
    _locked: File,
}

impl FileLock {
    /// Waits for the lock on `path`. The file is created when missing, and is at that name afterwards.
    ///
    /// Errors: the file cannot be opened. A file system without locks has one writer: there it returns at once.
    pub(crate) async fn acquire(path: &Path) -> io::Result<Self> {
        loop {
            let file = open(path).await?;
            match file.try_lock() {
                // The previous holder may have renamed the file to its final name.
                Ok(()) if !is_at(path, &file) => {}
                Ok(()) => return Ok(Self { _locked: file }),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(POLL_INTERVAL).await,
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
