//! The file store: objects as files, replaced atomically.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use durable::sync_folder;
use model::Error;
use model::ids::ClusterId;
use tokio::io::{AsyncRead, AsyncReadExt};
use uuid::Uuid;

use super::atomic::{
    Temporary, blocking, create, failure, is_absent, make_durable_folder, parent, put_file,
    retry_if_folder_deleted, temporary_in, unless_absent, write_whole,
};
use super::name::ObjectName;
use super::quota::{FileQuotas, Quota, Reservation};
use super::sweep::{DELETED, MAX_DEPTH, sweep};

/// Buffer of a streamed upload. Units: bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Objects of clusters below one folder.
#[derive(Debug, Clone)]
pub struct FileStore {
    root: PathBuf,
    quota: Arc<Quota>,
}

/// An object opened for reading.
#[derive(Debug)]
pub struct Object {
    /// Open file; stays readable when the object is replaced or deleted.
    pub file: tokio::fs::File,
    /// Units: bytes.
    pub length: u64,
    /// Time of the last put.
    pub modified: SystemTime,
}

impl Object {
    /// Reads a small object whole.
    pub async fn bytes(mut self) -> Result<Vec<u8>, Error> {
        let mut content = Vec::with_capacity(usize::try_from(self.length).unwrap_or_default());
        self.file
            .read_to_end(&mut content)
            .await
            .map_err(|error| Error::internal("reading a stored file", error))?;
        Ok(content)
    }
}

impl FileStore {
    /// Opens the store in `root`, which is created if missing, sweeps stale files and checks that it is writable.
    ///
    /// Errors: `Internal` – the folder cannot be created or written; the text names it.
    pub async fn open(root: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open_within(root, FileQuotas::default()).await
    }

    /// Like [`FileStore::open`], with quotas for content of callers.
    pub async fn open_within(root: impl Into<PathBuf>, limits: FileQuotas) -> Result<Self, Error> {
        let root = root.into();
        let quota = Arc::new(Quota::new(&root, limits));
        let store = Self { root, quota };
        let root = store.root.clone();
        let now = service::clock::now().into();
        blocking(
            format!("preparing the work folder {}", root.display()),
            move || {
                make_durable_folder(&root)?;
                sweep(&root, now)?;
                let probe = temporary_in(&root);
                write_whole(&probe, b"probe")?;
                fs::remove_file(probe)
            },
        )
        .await?;
        Ok(store)
    }

    /// The root folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Stores `content` as `name` by atomic replace; durable on return.
    ///
    /// Errors: `Invalid` – the name; `Internal` – the disk.
    pub async fn put(
        &self,
        cluster: ClusterId,
        name: &str,
        content: impl Into<Vec<u8>>,
    ) -> Result<(), Error> {
        let target = self.path(cluster, name)?;
        let content = content.into();
        blocking(format!("storing {name} of cluster {cluster}"), move || {
            put_file(&target, &content)
        })
        .await
    }

    /// Like [`FileStore::put`], for content of a caller: within the quotas.
    ///
    /// Errors: `TooLarge` – a quota is exceeded; those of [`FileStore::put`].
    pub async fn put_within(
        &self,
        cluster: ClusterId,
        name: &str,
        content: Vec<u8>,
    ) -> Result<(), Error> {
        let target = self.path(cluster, name)?;
        let folder = self.folder(cluster);
        let mut reservation = self.quota.begin(cluster, folder, target).await?;
        reservation.grow(content.len() as u64)?;
        self.put(cluster, name, content).await?;
        reservation.commit();
        Ok(())
    }

    /// Stores the stream `source` as `name`, up to `limit` bytes and within the quotas. Returns the length.
    ///
    /// Errors: `Invalid` – the name; `TooLarge` – limit or quota, nothing is stored; `NotFound` – the cluster was deleted
    /// meanwhile; `Unavailable` – the disk is full; `Internal` – the disk or the source.
    pub async fn put_stream(
        &self,
        cluster: ClusterId,
        name: &str,
        source: impl AsyncRead,
        limit: u64,
    ) -> Result<u64, Error> {
        let target = self.path(cluster, name)?;
        let folder = parent(&target).to_owned();
        let begin = self
            .quota
            .begin(cluster, self.folder(cluster), target.clone());
        let mut reservation = begin.await?;
        let temporary = Temporary(temporary_in(&folder));
        let doing = || format!("storing {name} of cluster {cluster}");
        let path = temporary.0.clone();
        let file = blocking(doing(), move || {
            retry_if_folder_deleted(|| {
                make_durable_folder(&folder)?;
                create(&path)
            })
        })
        .await?;
        let length = copy_limited(source, file, limit, &mut reservation, &doing).await?;
        let is_put = blocking(doing(), move || {
            // Synced content first, then the name, then the folder: a crash leaves the old object or the new one.
            match fs::rename(&temporary.0, &target) {
                // Another replica deleted the cluster meanwhile.
                Err(error) if is_absent(&error) => return Ok(false),
                outcome => outcome?,
            }
            unless_absent(sync_folder(parent(&target))).map(|()| true)
        })
        .await?;
        if !is_put {
            return Err(Error::not_found("cluster", cluster));
        }
        reservation.commit();
        Ok(length)
    }

    /// Opens an object.
    ///
    /// Errors: `NotFound` – it does not exist; `Invalid` – the name.
    pub async fn get(&self, cluster: ClusterId, name: &str) -> Result<Object, Error> {
        let path = self.path(cluster, name)?;
        let doing = || format!("reading {name} of cluster {cluster}");
        let file = match tokio::fs::File::open(&path).await {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Err(Error::not_found("file", name)),
            Err(error) => return Err(Error::internal(doing(), error)),
        };
        let metadata = file
            .metadata()
            .await
            .map_err(|error| Error::internal(doing(), error))?;
        if !metadata.is_file() {
            return Err(Error::not_found("file", name));
        }
        Ok(Object {
            file,
            length: metadata.len(),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        })
    }

    /// Whether an object of that name exists.
    pub async fn contains(&self, cluster: ClusterId, name: &str) -> Result<bool, Error> {
        match self.get(cluster, name).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Names of the cluster's objects that are `prefix` or below it (all for ""), sorted.
    pub async fn list(&self, cluster: ClusterId, prefix: &str) -> Result<Vec<ObjectName>, Error> {
        let folder = self.folder(cluster);
        let prefix = prefix.to_owned();
        blocking(format!("listing files of cluster {cluster}"), move || {
            let mut names = names_in(&folder)?;
            names.retain(|name| name.is_in(&prefix));
            Ok(names)
        })
        .await
    }

    /// Deletes an object; false if it did not exist.
    pub async fn delete(&self, cluster: ClusterId, name: &str) -> Result<bool, Error> {
        let path = self.path(cluster, name)?;
        blocking(
            format!("deleting {name} of cluster {cluster}"),
            move || match fs::remove_file(&path) {
                Ok(()) => unless_absent(sync_folder(parent(&path))).map(|()| true),
                Err(error) if is_absent(&error) => Ok(false),
                Err(error) => Err(error),
            },
        )
        .await
    }

    /// Deletes the cluster's objects other than those below the `kept` prefixes.
    pub async fn delete_cluster_except(
        &self,
        cluster: ClusterId,
        kept: &[&str],
    ) -> Result<(), Error> {
        let folder = self.folder(cluster);
        let kept: Vec<String> = kept.iter().map(|&prefix| prefix.to_owned()).collect();
        blocking(format!("deleting files of cluster {cluster}"), move || {
            for name in names_in(&folder)? {
                if !kept.iter().any(|prefix| name.is_in(prefix)) {
                    unless_absent(fs::remove_file(name.below(&folder)))?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Deletes all objects of the cluster, atomically for readers, also during puts of other replicas.
    pub async fn delete_cluster(&self, cluster: ClusterId) -> Result<(), Error> {
        let folder = self.folder(cluster);
        let deleted = self
            .root
            .join(format!("{DELETED}{}", Uuid::new_v4().simple()));
        blocking(format!("deleting files of cluster {cluster}"), move || {
            // Renamed first: after a crash the objects are invisible, and the sweep removes the rest.
            match fs::rename(&folder, &deleted) {
                Err(error) if is_absent(&error) => return Ok(()),
                outcome => outcome?,
            }
            unless_absent(fs::remove_dir_all(&deleted))
        })
        .await
    }

    #[cfg(test)]
    fn quota_in_progress(&self) -> u64 {
        self.quota.reserved_bytes()
    }

    fn folder(&self, cluster: ClusterId) -> PathBuf {
        self.root.join(cluster.to_string())
    }

    fn path(&self, cluster: ClusterId, name: &str) -> Result<PathBuf, Error> {
        Ok(ObjectName::parse(name)?.below(&self.folder(cluster)))
    }
}

async fn copy_limited(
    source: impl AsyncRead,
    file: File,
    limit: u64,
    reservation: &mut Reservation,
    doing: &impl Fn() -> String,
) -> Result<u64, Error> {
    use tokio::io::AsyncWriteExt;

    let mut source = std::pin::pin!(source);
    let mut file = tokio::fs::File::from_std(file);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut length = 0;
    let failed = |error| failure(doing(), error);
    loop {
        let count = source.read(&mut chunk).await.map_err(failed)?;
        if count == 0 {
            break;
        }
        length += count as u64;
        if length > limit {
            return Err(Error::TooLarge {
                what: "upload",
                limit,
            });
        }
        reservation.grow(count as u64)?;
        file.write_all(&chunk[..count]).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    file.sync_all().await.map_err(failed)?;
    Ok(length)
}

/// Names of the objects in a cluster's folder; empty if it does not exist.
fn names_in(folder: &Path) -> io::Result<Vec<ObjectName>> {
    let mut names = Vec::new();
    collect(folder, "", 0, &mut names)?;
    names.sort();
    Ok(names)
}

fn collect(
    folder: &Path,
    above: &str,
    depth: usize,
    names: &mut Vec<ObjectName>,
) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if is_absent(&error) => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Ok(element) = entry.file_name().into_string() else {
            continue;
        };
        let text = format!("{above}{element}");
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(&entry.path(), &format!("{text}/"), depth + 1, names)?;
        } else if kind.is_file()
            && let Ok(name) = ObjectName::parse(&text)
        {
            names.push(name);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
