//! The file store: objects as files, replaced atomically.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Cursor, Read as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use ::bucket::S3Options;
use durable::sync_folder;
use model::Error;
use model::ids::ClusterId;
use sealing::{KeySet, Keyring, SecretPlace};
use tokio::io::{AsyncRead, AsyncReadExt};
use uuid::Uuid;

use crate::LOGS;
use crate::atomic::{
    Temporary, blocking, create, failure, is_absent, make_durable_folder, parent, put_file,
    retry_if_folder_deleted, temporary_in, unless_absent, write_whole,
};
use crate::bucket::{BucketObject, FileBucket};
use crate::name::ObjectName;
use crate::quota::{FileOwner, FileQuotas, MeasuredFiles, Quota, Reservation};
use crate::stale::is_same;
use crate::sweep::{DELETED, MAX_DEPTH, sweep};

/// Buffer of a streamed upload. Units: bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// Objects of clusters below one folder.
#[derive(Debug, Clone)]
pub struct FileStore {
    root: PathBuf,
    /// Holds the objects in place of the folder.
    bucket: Option<FileBucket>,
    quota: Arc<Quota>,
    keyring: Keyring,
}

/// An object opened for reading.
pub struct Object {
    /// Content; stays readable when the object is replaced or deleted.
    pub content: Pin<Box<dyn AsyncRead + Send>>,
    /// Units: bytes.
    pub length: u64,
    /// Time of the last put.
    pub modified: SystemTime,
}

impl From<BucketObject> for Object {
    fn from(object: BucketObject) -> Self {
        Self {
            length: object.info.size,
            modified: object.modified(),
            content: Box::pin(object.reader()),
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("length", &self.length)
            .field("modified", &self.modified)
            .finish_non_exhaustive()
    }
}

impl Object {
    /// Reads a small object whole.
    pub async fn bytes(mut self) -> Result<Vec<u8>, Error> {
        let mut content = Vec::with_capacity(usize::try_from(self.length).unwrap_or_default());
        self.content
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
        let measured = MeasuredFiles::Folder(root.clone());
        let store = Self {
            root,
            bucket: None,
            quota: Arc::new(Quota::new(measured, limits)),
            keyring: Keyring::default(),
        };
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

    /// Opens a store in a bucket; the folder `root` keeps only files of this replica.
    ///
    /// Errors: `Unavailable` – the bucket cannot be used; those of [`FileStore::open`].
    pub async fn open_bucket(
        root: impl Into<PathBuf>,
        limits: FileQuotas,
        options: &S3Options,
    ) -> Result<Self, Error> {
        let bucket = FileBucket::open(options).await?;
        let folder = Self::open_within(root, limits).await?;
        let measured = MeasuredFiles::Bucket(bucket.clone());
        Ok(Self {
            bucket: Some(bucket),
            quota: Arc::new(Quota::new(measured, limits)),
            ..folder
        })
    }

    /// Seals objects other than logs with the keys of `keyring`.
    #[must_use]
    pub fn sealing_with(mut self, keyring: Keyring) -> Self {
        self.keyring = keyring;
        self
    }

    /// Keys of sealed objects.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
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
        let object = ObjectName::parse(name)?;
        let mut content = content.into();
        if is_secret(name) {
            let keys = self.keyring.keys().await;
            let sealed = keys.seal(&place(cluster, name), &content);
            content = sealed.map_err(|error| Error::internal("sealing a file", error))?;
        }
        if let Some(bucket) = &self.bucket {
            return bucket.put(cluster, &object, content).await;
        }
        let target = object.below(&self.folder(cluster));
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
        owner: impl Into<FileOwner>,
        name: &str,
        content: Vec<u8>,
    ) -> Result<(), Error> {
        let object = ObjectName::parse(name)?;
        let owner = owner.into();
        let cluster = owner.cluster;
        let mut reservation = self.quota.begin(owner, &object).await?;
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
        owner: impl Into<FileOwner>,
        name: &str,
        source: impl AsyncRead,
        limit: u64,
    ) -> Result<u64, Error> {
        let object = ObjectName::parse(name)?;
        let owner = owner.into();
        let cluster = owner.cluster;
        let mut reservation = self.quota.begin(owner, &object).await?;
        if let Some(bucket) = &self.bucket {
            let put = bucket.put_stream(cluster, &object, source, limit, &mut reservation);
            let length = put.await?;
            reservation.commit();
            return Ok(length);
        }
        let target = object.below(&self.folder(cluster));
        let folder = parent(&target).to_owned();
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
        let object = ObjectName::parse(name)?;
        let found = match &self.bucket {
            Some(bucket) => bucket.get(cluster, &object).await?.map(Object::from),
            None => self.open_file(cluster, &object).await?,
        };
        let object = found.ok_or_else(|| Error::not_found("file", name))?;
        let keys = self.keyring.keys().await;
        if !is_secret(name) || keys.active_id().is_none() {
            return Ok(object);
        }
        // Small: written from memory.
        let modified = object.modified;
        let opened = keys.open(&place(cluster, name), object.bytes().await?);
        let doing = || format!("reading {name} of cluster {cluster}");
        let content = opened.map_err(|error| Error::internal(doing(), error))?;
        Ok(Object {
            length: content.len() as u64,
            content: Box::pin(Cursor::new(content)),
            modified,
        })
    }

    async fn open_file(
        &self,
        cluster: ClusterId,
        name: &ObjectName,
    ) -> Result<Option<Object>, Error> {
        let path = name.below(&self.folder(cluster));
        let failed = |error| Error::internal(format!("reading {name} of cluster {cluster}"), error);
        let file = match tokio::fs::File::open(&path).await {
            Ok(file) => file,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let metadata = file.metadata().await.map_err(failed)?;
        if !metadata.is_file() {
            return Ok(None);
        }
        Ok(Some(Object {
            length: metadata.len(),
            modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            content: Box::pin(file),
        }))
    }

    /// Seals the objects that are plain, or sealed with an older key. Objects that are replaced meanwhile are sealed
    /// by their put.
    ///
    /// Errors: the disk; an object that does not open.
    pub async fn seal_all(&self, keys: &KeySet) -> Result<(), Error> {
        if let Some(bucket) = &self.bucket {
            return seal_bucket(bucket, keys).await;
        }
        let root = self.root.clone();
        let doing = || "sealing the files of clusters".to_owned();
        let clusters = blocking(doing(), move || clusters_in(&root)).await?;
        for cluster in clusters {
            let (folder, keys) = (self.folder(cluster), keys.clone());
            blocking(doing(), move || {
                for name in names_in(&folder)? {
                    if is_secret(name.as_str()) {
                        let path = name.below(&folder);
                        unless_absent(seal_file(&path, &place(cluster, name.as_str()), &keys))?;
                    }
                }
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Whether an object of that name exists.
    pub async fn contains(&self, cluster: ClusterId, name: &str) -> Result<bool, Error> {
        if let Some(bucket) = &self.bucket {
            let found = bucket.head(cluster, &ObjectName::parse(name)?).await?;
            return Ok(found.is_some());
        }
        match self.get(cluster, name).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Names of the cluster's objects that are `prefix` or below it (all for ""), sorted.
    pub async fn list(&self, cluster: ClusterId, prefix: &str) -> Result<Vec<ObjectName>, Error> {
        if let Some(bucket) = &self.bucket {
            let objects = bucket.list(cluster).await?.into_iter();
            let names = objects.map(|(name, _)| name);
            return Ok(names.filter(|name| name.is_in(prefix)).collect());
        }
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
        if let Some(bucket) = &self.bucket {
            let object = ObjectName::parse(name)?;
            let is_known = bucket.head(cluster, &object).await?.is_some();
            bucket.delete(cluster, &[object]).await?;
            return Ok(is_known);
        }
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
        if let Some(bucket) = &self.bucket {
            let mut names = self.list(cluster, "").await?;
            names.retain(|name| !kept.iter().any(|prefix| name.is_in(prefix)));
            return bucket.delete(cluster, &names).await;
        }
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
        if self.bucket.is_some() {
            return self.delete_cluster_except(cluster, &[]).await;
        }
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
    pub(crate) fn free_uploads(&self) -> usize {
        let bucket = self.bucket.as_ref();
        bucket.map_or(0, FileBucket::free_uploads)
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

/// Logs are streamed, and hold no secrets that agents do not mask.
fn is_secret(name: &str) -> bool {
    name.split('/').next() != Some(LOGS)
}

fn place(cluster: ClusterId, name: &str) -> SecretPlace {
    SecretPlace::new("files", name, cluster)
}

async fn seal_bucket(bucket: &FileBucket, keys: &KeySet) -> Result<(), Error> {
    for cluster in bucket.clusters().await? {
        for (name, _) in bucket.list(cluster).await? {
            if is_secret(name.as_str()) {
                seal_object(bucket, cluster, &name, keys).await?;
            }
        }
    }
    Ok(())
}

async fn seal_object(
    bucket: &FileBucket,
    cluster: ClusterId,
    name: &ObjectName,
    keys: &KeySet,
) -> Result<(), Error> {
    let Some(object) = bucket.get(cluster, name).await? else {
        return Ok(());
    };
    let opened = object.info.clone();
    let stored = object.bytes().await?;
    if !keys.is_outdated(&stored) {
        return Ok(());
    }
    let place = place(cluster, name.as_str());
    let plain = match keys.open(&place, stored) {
        Ok(plain) => plain,
        // A damaged object must not keep the others plain.
        Err(error) => {
            tracing::error!(%error, "file not sealed again");
            return Ok(());
        }
    };
    let sealed = keys.seal(&place, &plain);
    let sealed = sealed.map_err(|error| Error::internal("sealing a file", error))?;
    if bucket.head(cluster, name).await?.as_ref() != Some(&opened) {
        return Ok(());
    }
    bucket.put(cluster, name, sealed).await
}

fn clusters_in(root: &Path) -> io::Result<Vec<ClusterId>> {
    let mut clusters = Vec::new();
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name();
        clusters.extend(
            name.to_str()
                .and_then(|name| name.parse::<ClusterId>().ok()),
        );
    }
    Ok(clusters)
}

fn seal_file(path: &Path, place: &SecretPlace, keys: &KeySet) -> io::Result<()> {
    let mut file = File::open(path)?;
    let opened = file.metadata()?;
    let mut stored = Vec::new();
    file.read_to_end(&mut stored)?;
    if !keys.is_outdated(&stored) {
        return Ok(());
    }
    let plain = match keys.open(place, stored) {
        Ok(plain) => plain,
        // A damaged file must not keep the others plain.
        Err(error) => {
            tracing::error!(%error, "file not sealed again");
            return Ok(());
        }
    };
    let sealed = keys.seal(place, &plain).map_err(io::Error::other)?;
    let folder = parent(path);
    let temporary = Temporary(temporary_in(folder));
    write_whole(&temporary.0, &sealed)?;
    if !is_same(path, &opened) {
        return Ok(());
    }
    fs::rename(&temporary.0, path)?;
    sync_folder(folder)
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
        reservation.receive(count as u64, length, limit)?;
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
