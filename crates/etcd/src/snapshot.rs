//! Snapshots: the database of one member as a file, checked.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use super::bolt::{self, BoltError};
use super::call;
use super::endpoint::EtcdEndpoint;
use super::error::EtcdError;

/// Largest snapshot; etcd warns above 8 GiB. Units: bytes.
pub const MAX_SNAPSHOT_BYTES: u64 = 32 << 30;
/// SHA-256 of the database, which etcd appends to it. Units: bytes.
const HASH_BYTES: usize = 32;
/// Databases are pages of at least so many bytes. Source: etcdutl, `hasChecksum`.
const PAGE_BYTES: u64 = 512;
const CHUNK_BYTES: usize = 1 << 18;

/// A checked snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFile {
    /// Its path.
    pub path: PathBuf,
    /// Its size, with etcd's hash. Units: bytes.
    pub size_bytes: u64,
    /// SHA-256 of the whole file, in hexadecimal.
    pub sha256: String,
}

/// A snapshot that could not be taken, or is unusable.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// etcd did not send it.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// The file cannot be written or read.
    #[error("{}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// More than the bound.
    #[error("the snapshot has more than {limit} bytes")]
    TooLarge {
        /// Units: bytes.
        limit: u64,
    },
    /// A stream that ended early.
    #[error("the snapshot ended {missing} bytes early")]
    Truncated {
        /// Units: bytes.
        missing: u64,
    },
    /// No whole pages with a hash.
    #[error("{} has {size} bytes: expected whole pages and etcd's hash of {HASH_BYTES} bytes", path.display())]
    Size {
        /// Its path.
        path: PathBuf,
        /// Units: bytes.
        size: u64,
    },
    /// The content differs from etcd's hash.
    #[error("{} differs from the hash that etcd appended", path.display())]
    Hash {
        /// Its path.
        path: PathBuf,
    },
    /// It is no database.
    #[error("{}", path.display())]
    Database {
        /// Its path.
        path: PathBuf,
        /// The defect.
        #[source]
        source: BoltError,
    },
}

/// Saves a snapshot of the endpoint's member as `path`, readable by its owner alone. A file at `path` is complete,
/// durable and checked: before that it has another name.
///
/// Errors: as [`SnapshotError`]; AlreadyExists – a file at `path`.
pub async fn save_snapshot(
    endpoint: &EtcdEndpoint,
    path: &Path,
    limit: u64,
) -> Result<SnapshotFile, SnapshotError> {
    let failed = |source| SnapshotError::File {
        path: path.to_owned(),
        source,
    };
    if path.try_exists().map_err(failed)? {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    // The member has all acknowledged writes.
    endpoint.linearizable_read().await?;
    let partial = path.with_added_extension("partial");
    let saved = receive(endpoint, &partial, limit).await;
    let checked = match saved {
        Ok(()) => check(&partial).await,
        Err(error) => Err(error),
    };
    match checked {
        Ok(mut snapshot) => {
            fs::rename(&partial, path).map_err(failed)?;
            durable::sync_parent(path).map_err(failed)?;
            path.clone_into(&mut snapshot.path);
            Ok(snapshot)
        }
        Err(error) => {
            // It may hold half of all secrets of the cluster.
            drop(fs::remove_file(&partial));
            Err(error)
        }
    }
}

async fn receive(endpoint: &EtcdEndpoint, path: &Path, limit: u64) -> Result<(), SnapshotError> {
    let failed = |source| SnapshotError::File {
        path: path.to_owned(),
        source,
    };
    // Of a run that was killed.
    drop(fs::remove_file(path));
    let file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(failed)?;
    let mut file = tokio::fs::File::from_std(file);
    let call = &call::SNAPSHOT;
    let mut stream = endpoint.snapshot().await?;
    let (mut written, mut missing) = (0_u64, 0);
    loop {
        let message = tokio::time::timeout(call.timeout, stream.message()).await;
        let message = message.map_err(|_| endpoint.timed_out(call))?;
        let message = message.map_err(|status| endpoint.status_error(call, &status))?;
        let Some(message) = message else { break };
        written += message.blob.len() as u64;
        if written > limit {
            return Err(SnapshotError::TooLarge { limit });
        }
        missing = message.remaining_bytes;
        file.write_all(&message.blob).await.map_err(failed)?;
    }
    if missing > 0 {
        return Err(SnapshotError::Truncated { missing });
    }
    file.flush().await.map_err(failed)?;
    file.sync_all().await.map_err(failed)
}

async fn check(path: &Path) -> Result<SnapshotFile, SnapshotError> {
    let path = path.to_owned();
    // Hashing gigabytes blocks.
    let checked = tokio::task::spawn_blocking({
        let path = path.clone();
        move || check_snapshot(&path)
    });
    checked.await.unwrap_or_else(|error| {
        Err(SnapshotError::File {
            path,
            source: io::Error::other(error),
        })
    })
}

/// Checks a snapshot: etcd's hash of it, and that it is a database. Blocking.
///
/// Errors: File; Size; Hash; Database.
pub fn check_snapshot(path: &Path) -> Result<SnapshotFile, SnapshotError> {
    let failed = |source| SnapshotError::File {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let path = path.to_owned();
    if size % PAGE_BYTES != HASH_BYTES as u64 {
        return Err(SnapshotError::Size { path, size });
    }
    let database = size - HASH_BYTES as u64;
    let mut content = Sha256::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut left = database;
    while left > 0 {
        let length = usize::try_from(left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        let part = &mut chunk[..length];
        file.read_exact(part).map_err(failed)?;
        content.update(&*part);
        left -= length as u64;
    }
    let mut appended = [0; HASH_BYTES];
    file.read_exact(&mut appended).map_err(failed)?;
    let mut whole = content.clone();
    whole.update(appended);
    if content.finalize()[..] != appended {
        return Err(SnapshotError::Hash { path });
    }
    if let Err(source) = bolt::check(&file, database) {
        return Err(SnapshotError::Database { path, source });
    }
    Ok(SnapshotFile {
        path,
        size_bytes: size,
        sha256: hex::encode(whole.finalize()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(mut database: Vec<u8>) -> Vec<u8> {
        let hash = Sha256::digest(&database);
        database.extend_from_slice(&hash);
        database
    }

    #[test]
    fn hash_and_database_are_checked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("snapshot");
        let checked = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            check_snapshot(&path)
        };
        let whole = snapshot(bolt::tests::database());
        let found = checked(&whole).unwrap();
        assert_eq!(found.size_bytes, whole.len() as u64);
        assert_eq!(found.sha256, hex::encode(Sha256::digest(&whole)));
        for at in [0, 5000, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert!(
                matches!(checked(&damaged), Err(SnapshotError::Hash { .. })),
                "{at}"
            );
        }
        for length in [0, whole.len() - 1, whole.len() - 32] {
            let cut = checked(&whole[..length]);
            assert!(matches!(cut, Err(SnapshotError::Size { .. })), "{length}");
        }
        let other = checked(&snapshot(vec![0; 8192]));
        assert!(matches!(other, Err(SnapshotError::Database { .. })));
        let empty = checked(&snapshot(vec![]));
        assert!(matches!(empty, Err(SnapshotError::Database { .. })));
    }
}
