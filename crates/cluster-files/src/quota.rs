//! Quotas of stored files: of one cluster, of the clusters of one owner, and of all clusters.
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
use service::server::Holder;

use crate::atomic::{blocking, is_temporary, unless_absent};
use crate::bucket::FileBucket;
use crate::name::ObjectName;

/// Longest age of the cached sum of all clusters; this process's commits since are added.
const SUM_AGE: Duration = Duration::from_secs(5);
/// Bound of the recursion below the root: `<cluster>/manifests/<folder>/<file>`, with a margin.
const MAX_DEPTH: usize = 8;

/// Quotas of a file store.
#[derive(Debug, Clone, Copy)]
pub struct FileQuotas {
    /// All files of one cluster. Units: bytes.
    pub cluster_bytes: u64,
    /// Files of the clusters of one owner. Units: bytes.
    pub owner_bytes: u64,
    /// Files of all clusters. Units: bytes.
    pub total_bytes: u64,
}

impl Default for FileQuotas {
    /// No quota.
    fn default() -> Self {
        Self {
            cluster_bytes: u64::MAX,
            owner_bytes: u64::MAX,
            total_bytes: u64::MAX,
        }
    }
}

/// The cluster that a file is stored for, and those that share the quota of its owner.
#[derive(Debug, Clone)]
pub struct FileOwner {
    pub(crate) cluster: ClusterId,
    /// Name; empty without an owner.
    pub(crate) name: String,
    /// Clusters of the owner; none without one.
    pub(crate) clusters: Vec<ClusterId>,
}

impl FileOwner {
    /// A cluster of the owner `name`, with all clusters of that owner.
    pub fn new(cluster: ClusterId, name: String, clusters: Vec<ClusterId>) -> Self {
        Self {
            cluster,
            name,
            clusters,
        }
    }
}

impl From<ClusterId> for FileOwner {
    /// A cluster without an owner.
    fn from(cluster: ClusterId) -> Self {
        Self::new(cluster, String::new(), Vec::new())
    }
}

/// Bytes of clusters.
type UsageByCluster = HashMap<ClusterId, u64>;

/// The stored files that count.
#[derive(Debug)]
pub(crate) enum MeasuredFiles {
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
    async fn by_cluster(&self) -> Result<UsageByCluster, Error> {
        match self {
            Self::Folder(root) => {
                let root = root.clone();
                let doing = "summing the files of all clusters".to_owned();
                blocking(doing, move || sum_clusters(&root)).await
            }
            Self::Bucket(bucket) => bucket.by_cluster().await,
        }
    }
}

/// The quotas, and the reservations of uploads in progress.
#[derive(Debug)]
pub(crate) struct Quota {
    measured: MeasuredFiles,
    limits: FileQuotas,
    in_progress: Mutex<InProgress>,
    /// Cached sum. Locked while the folders are summed: concurrent uploads share one sum (single-flight).
    sum: tokio::sync::Mutex<Option<(Instant, Arc<UsageByCluster>)>>,
}

#[derive(Debug, Default)]
struct InProgress {
    by_cluster: UsageByCluster,
    total: u64,
    /// Committed by this process since the last sum.
    stored: UsageByCluster,
}

/// Reserved quota of an upload; dropping it releases the quota.
#[derive(Debug)]
pub(crate) struct Reservation {
    quota: Arc<Quota>,
    owner: FileOwner,
    /// On disk, without the object that the upload replaces. Units: bytes.
    on_disk: u64,
    total_on_disk: u64,
    /// Of the clusters of the owner.
    owned_on_disk: u64,
    reserved: u64,
}

impl Quota {
    pub(crate) fn new(measured: MeasuredFiles, limits: FileQuotas) -> Self {
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
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.in_progress().total
    }

    /// Opens an empty reservation for an upload of an object.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        owner: FileOwner,
        name: &ObjectName,
    ) -> Result<Reservation, Error> {
        let (on_disk, replaced) = self.measured.of_cluster(owner.cluster, name).await?;
        let usage = self.usage().await?;
        let (total, owned) = {
            let stored = &self.in_progress().stored;
            let sum = |usage: &UsageByCluster, of: &[ClusterId]| -> u64 {
                of.iter().filter_map(|id| usage.get(id)).sum()
            };
            let total = usage.values().sum::<u64>() + stored.values().sum::<u64>();
            let owned = sum(&usage, &owner.clusters) + sum(stored, &owner.clusters);
            (total, owned)
        };
        Ok(Reservation {
            quota: Arc::clone(self),
            owner,
            on_disk: on_disk.saturating_sub(replaced),
            total_on_disk: total.saturating_sub(replaced),
            owned_on_disk: owned.saturating_sub(replaced),
            reserved: 0,
        })
    }

    /// Usage of all clusters on disk, as of the last seconds; nothing if no quota needs it.
    async fn usage(&self) -> Result<Arc<UsageByCluster>, Error> {
        if self.limits.total_bytes == u64::MAX && self.limits.owner_bytes == u64::MAX {
            return Ok(Arc::default());
        }
        let mut known = self.sum.lock().await;
        if let Some((at, usage)) = &*known
            && at.elapsed() < SUM_AGE
        {
            return Ok(Arc::clone(usage));
        }
        let usage = Arc::new(self.measured.by_cluster().await?);
        *known = Some((Instant::now(), Arc::clone(&usage)));
        self.in_progress().stored.clear();
        Ok(usage)
    }
}

impl Reservation {
    /// Reserves more bytes of an upload that has `length` bytes now, and may have `limit`.
    ///
    /// Errors: `TooLarge` – the upload is too long, or a quota is exceeded.
    pub(crate) fn receive(&mut self, bytes: u64, length: u64, limit: u64) -> Result<(), Error> {
        if length > limit {
            return Err(Error::TooLarge {
                what: "upload",
                limit,
            });
        }
        self.grow(bytes)
    }

    /// Reserves more bytes.
    ///
    /// Errors: `TooLarge` – a quota is exceeded.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), Error> {
        let limits = self.quota.limits;
        let mut in_progress = self.quota.in_progress();
        let of_cluster = in_progress.by_cluster.get(&self.owner.cluster).copied();
        let of_cluster = of_cluster.unwrap_or_default() + bytes;
        if self.on_disk.saturating_add(of_cluster) > limits.cluster_bytes {
            return Err(Error::TooLarge {
                what: "the cluster's stored files with this upload",
                limit: limits.cluster_bytes,
            });
        }
        let owned = self.owner.clusters.iter();
        let owned = owned.filter_map(|id| in_progress.by_cluster.get(id));
        let owned = owned.sum::<u64>() + bytes;
        if !self.owner.name.is_empty()
            && self.owned_on_disk.saturating_add(owned) > limits.owner_bytes
        {
            return Err(Error::TooLarge {
                what: "the stored files of the clusters of this owner with this upload",
                limit: limits.owner_bytes,
            });
        }
        let total = in_progress.total + bytes;
        if self.total_on_disk.saturating_add(total) > limits.total_bytes {
            return Err(Error::TooLarge {
                what: "the stored files of all clusters with this upload",
                limit: limits.total_bytes,
            });
        }
        in_progress
            .by_cluster
            .insert(self.owner.cluster, of_cluster);
        in_progress.total = total;
        drop(in_progress);
        self.reserved += bytes;
        Ok(())
    }

    /// Whose uploads the upload counts among; none without an owner.
    pub(crate) fn holder(&self) -> Option<Holder> {
        let name = &self.owner.name;
        (!name.is_empty()).then(|| Holder::user(name))
    }

    /// Commits the reservation: the upload is stored.
    pub(crate) fn commit(self) {
        let mut in_progress = self.quota.in_progress();
        let stored = in_progress.stored.entry(self.owner.cluster).or_default();
        *stored += self.reserved;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut in_progress = self.quota.in_progress();
        in_progress.total -= self.reserved;
        if let Some(bytes) = in_progress.by_cluster.get_mut(&self.owner.cluster) {
            *bytes -= self.reserved;
            if *bytes == 0 {
                in_progress.by_cluster.remove(&self.owner.cluster);
            }
        }
    }
}

/// Sums each cluster's folder; the installer cache beside them has its own limit.
fn sum_clusters(root: &Path) -> io::Result<UsageByCluster> {
    let mut usage = UsageByCluster::new();
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(id) = name.to_str().and_then(|name| name.parse().ok()) {
            usage.insert(id, sum(&entry.path(), 0)?);
        }
    }
    Ok(usage)
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
