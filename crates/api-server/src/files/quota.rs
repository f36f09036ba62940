//! Quotas of stored files: of one cluster, and of all clusters.
//!
//! Usage is measured where the files are, so that replicas and restarts need no ledger: a cluster's files are summed for each
//! upload, all files once in a few seconds. Uploads in progress reserve the bytes received. Reservations are local to
//! a replica, so replicas together may exceed a quota by their uploads in progress.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::Error;
use model::ids::ClusterId;

use super::atomic::{blocking, is_temporary, unless_absent};
use super::bucket::FileBucket;
use super::name::ObjectName;

/// Longest age of the cached sum of all clusters; this process's commits since are added.
const SUM_AGE: Duration = Duration::from_secs(5);
/// Bound of the recursion below the root: `<cluster>/manifests/<folder>/<file>`, with a margin.
const MAX_DEPTH: usize = 8;

/// Quotas of a file store.
#[derive(Debug, Clone, Copy)]
pub struct FileQuotas {
    /// All files of one cluster. Units: bytes.
    pub cluster_bytes: u64,
    /// Files of all clusters. Units: bytes.
    pub total_bytes: u64,
}

impl Default for FileQuotas {
    /// No quota.
    fn default() -> Self {
        Self {
            cluster_bytes: u64::MAX,
            total_bytes: u64::MAX,
        }
    }
}

/// The stored files that count.
#[derive(Debug)]
pub(super) enum MeasuredFiles {
    /// Below a folder.
    Folder(PathBuf),
    Bucket(FileBucket),
}

impl MeasuredFiles {
    /// Usage of a cluster, and the size of one of its objects. Units: bytes.
    async fn of_cluster(&self, cluster: ClusterId, name: &ObjectName) -> Result<(u64, u64), Error> {
        match self {
            Self::Folder(root) => {
                let folder = root.join(cluster.to_string());
                let target = name.below(&folder);
                let doing = format!("summing the files of cluster {cluster}");
                blocking(doing, move || {
                    let replaced = fs::metadata(&target).map_or(0, |known| known.len());
                    Ok((sum(&folder, 0)?, replaced))
                })
                .await
            }
            Self::Bucket(bucket) => {
                let objects = bucket.list(cluster).await?;
                let replaced = objects.iter().find(|(known, _)| known == name);
                let replaced = replaced.map_or(0, |(_, size)| *size);
                Ok((objects.iter().map(|(_, size)| size).sum(), replaced))
            }
        }
    }

    /// Usage of all clusters. Units: bytes.
    async fn total(&self) -> Result<u64, Error> {
        match self {
            Self::Folder(root) => {
                let root = root.clone();
                let doing = "summing the files of all clusters".to_owned();
                blocking(doing, move || sum_clusters(&root)).await
            }
            Self::Bucket(bucket) => bucket.total().await,
        }
    }
}

/// The quotas, and the reservations of uploads in progress.
#[derive(Debug)]
pub(super) struct Quota {
    measured: MeasuredFiles,
    limits: FileQuotas,
    in_progress: Mutex<InProgress>,
    /// Cached sum. Locked while the folders are summed: concurrent uploads share one sum (single-flight).
    sum: tokio::sync::Mutex<Option<(Instant, u64)>>,
}

#[derive(Debug, Default)]
struct InProgress {
    by_cluster: HashMap<ClusterId, u64>,
    total: u64,
    /// Committed by this process since the last sum.
    stored: u64,
}

/// Reserved quota of an upload; dropping it releases the quota.
#[derive(Debug)]
pub(super) struct Reservation {
    quota: Arc<Quota>,
    cluster: ClusterId,
    /// On disk, without the object that the upload replaces. Units: bytes.
    on_disk: u64,
    total_on_disk: u64,
    reserved: u64,
}

impl Quota {
    pub(super) fn new(measured: MeasuredFiles, limits: FileQuotas) -> Self {
        Self {
            measured,
            limits,
            in_progress: Mutex::default(),
            sum: tokio::sync::Mutex::default(),
        }
    }

    fn in_progress(&self) -> MutexGuard<'_, InProgress> {
        self.in_progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Reservations of all uploads in progress. Units: bytes.
    #[cfg(test)]
    pub(super) fn reserved_bytes(&self) -> u64 {
        self.in_progress().total
    }

    /// Opens an empty reservation for an upload of an object.
    pub(super) async fn begin(
        self: &Arc<Self>,
        cluster: ClusterId,
        name: &ObjectName,
    ) -> Result<Reservation, Error> {
        let (on_disk, replaced) = self.measured.of_cluster(cluster, name).await?;
        let total = self.total().await?;
        Ok(Reservation {
            quota: Arc::clone(self),
            cluster,
            on_disk: on_disk.saturating_sub(replaced),
            total_on_disk: total.saturating_sub(replaced),
            reserved: 0,
        })
    }

    /// Usage of all clusters on disk. Units: bytes.
    async fn total(&self) -> Result<u64, Error> {
        if self.limits.total_bytes == u64::MAX {
            return Ok(0);
        }
        let mut known = self.sum.lock().await;
        if let Some((at, bytes)) = *known
            && at.elapsed() < SUM_AGE
        {
            return Ok(bytes + self.in_progress().stored);
        }
        let bytes = self.measured.total().await?;
        *known = Some((Instant::now(), bytes));
        self.in_progress().stored = 0;
        Ok(bytes)
    }
}

impl Reservation {
    /// Reserves more bytes.
    ///
    /// Errors: `TooLarge` – a quota is exceeded.
    pub(super) fn grow(&mut self, bytes: u64) -> Result<(), Error> {
        let limits = self.quota.limits;
        let mut in_progress = self.quota.in_progress();
        let of_cluster = in_progress.by_cluster.get(&self.cluster).copied();
        let of_cluster = of_cluster.unwrap_or_default() + bytes;
        if self.on_disk.saturating_add(of_cluster) > limits.cluster_bytes {
            return Err(Error::TooLarge {
                what: "the cluster's stored files with this upload",
                limit: limits.cluster_bytes,
            });
        }
        let total = in_progress.total + bytes;
        if self.total_on_disk.saturating_add(total) > limits.total_bytes {
            return Err(Error::TooLarge {
                what: "the stored files of all clusters with this upload",
                limit: limits.total_bytes,
            });
        }
        in_progress.by_cluster.insert(self.cluster, of_cluster);
        in_progress.total = total;
        drop(in_progress);
        self.reserved += bytes;
        Ok(())
    }

    /// Commits the reservation: the upload is stored.
    pub(super) fn commit(self) {
        self.quota.in_progress().stored += self.reserved;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut in_progress = self.quota.in_progress();
        in_progress.total -= self.reserved;
        if let Some(bytes) = in_progress.by_cluster.get_mut(&self.cluster) {
            *bytes -= self.reserved;
            if *bytes == 0 {
                in_progress.by_cluster.remove(&self.cluster);
            }
        }
    }
}

/// Sums the clusters' folders; the installer cache beside them has its own limit.
fn sum_clusters(root: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        if name
            .to_str()
            .is_some_and(|name| name.parse::<ClusterId>().is_ok())
        {
            bytes += sum(&entry.path(), 0)?;
        }
    }
    Ok(bytes)
}

/// Bytes of the files below `folder`. Partial uploads are skipped: they are reserved.
fn sum(folder: &Path, depth: usize) -> io::Result<u64> {
    let mut bytes = 0;
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < MAX_DEPTH {
            bytes += sum(&entry.path(), depth + 1)?;
        } else if !is_temporary(&entry.file_name()) {
            // Files may be deleted during the sum.
            unless_absent(entry.metadata().map(|found| bytes += found.len()))?;
        }
    }
    Ok(bytes)
}
