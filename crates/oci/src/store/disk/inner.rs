//! Blobs, links and uploads on disk; everything here blocks.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File, TryLockError};
use std::hash::{Hash as _, Hasher as _};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use model::time::Timestamp;
use uuid::Uuid;

use super::durable::{self, Staged};
use super::layout::Layout;
use super::sessions::{Session, Sessions};
use crate::store::{Result, StoreError};
use crate::{Algorithm, Digest, Hasher, Repository};

/// Locks that repositories share by hash: enough that two busy ones seldom meet.
const LOCKS: usize = 64;
/// Units: bytes. Longest link: `sha512:` and 128 digits; anything longer is no link.
const LINK_LIMIT_BYTES: u64 = 256;
/// Units: bytes. Read at once when an upload is hashed again.
const REHASH_BYTES: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) layout: Layout,
    pub(super) sessions: Sessions,
    /// Readers of a repository's manifests see all links of a push or none.
    locks: Vec<RwLock<()>>,
    /// Held as long as the store is open.
    _exclusive: File,
}

/// A blob on disk.
#[derive(Debug)]
pub(super) struct Found {
    /// Its SHA-256, whatever it was asked by.
    pub(super) canonical: Digest,
    pub(super) path: PathBuf,
    pub(super) size: u64,
}

impl Inner {
    pub(super) fn open(root: &Path) -> Result<Self> {
        let layout = Layout::new(root);
        let exclusive = prepare(&layout).map_err(StoreError::io("opening the storage folder"))?;
        match exclusive.try_lock() {
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Damaged {
                    what: root.display().to_string(),
                    why: "another process has it open; stop that one first".to_owned(),
                });
            }
            // Some network filesystems have no locks: then the operator sees to it.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, "the storage folder cannot be locked");
            }
            Ok(()) => {}
        }
        clear(&layout.temporary_dir()).map_err(StoreError::io("clearing unfinished writes"))?;
        Ok(Self {
            layout,
            sessions: Sessions::default(),
            locks: (0..LOCKS).map(|_| RwLock::new(())).collect(),
            _exclusive: exclusive,
        })
    }

    pub(super) fn shared(&self, repository: &Repository) -> RwLockReadGuard<'_, ()> {
        let lock = &self.locks[slot(repository)];
        lock.read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn exclusive(&self, repository: &Repository) -> RwLockWriteGuard<'_, ()> {
        let lock = &self.locks[slot(repository)];
        lock.write()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Where the bytes of a blob of `repository` are. Errors: UnknownBlob.
    pub(super) fn find_blob(&self, repository: &Repository, digest: &Digest) -> Result<Found> {
        let canonical = linked(digest, |digest| self.layout.layer_link(repository, digest))?
            .ok_or_else(|| StoreError::UnknownBlob(digest.clone()))?;
        let path = self.layout.data(&canonical);
        match fs::metadata(&path) {
            Ok(metadata) => Ok(Found {
                canonical,
                path,
                size: metadata.len(),
            }),
            Err(error) if durable::is_absent(&error) => {
                tracing::warn!(repo.name = %repository, %digest, "a link points at a blob that is not there");
                Err(StoreError::UnknownBlob(digest.clone()))
            }
            Err(error) => Err(StoreError::io("reading a blob")(error)),
        }
    }

    pub(super) fn open_blob(
        &self,
        repository: &Repository,
        digest: &Digest,
        offset: u64,
    ) -> Result<(File, u64)> {
        let Found { path, size, .. } = self.find_blob(repository, digest)?;
        let open = || {
            let mut file = File::open(path)?;
            if offset > 0 {
                file.seek(io::SeekFrom::Start(offset))?;
            }
            Ok(file)
        };
        Ok((open().map_err(StoreError::io("opening a blob"))?, size))
    }

    pub(super) fn delete_blob(&self, repository: &Repository, digest: &Digest) -> Result<()> {
        let _guard = self.exclusive(repository);
        let found = self.find_blob(repository, digest)?;
        let remove = |digest: &Digest| {
            let link = self.layout.layer_link(repository, digest);
            if durable::remove_file(&link)? {
                durable::sync_parent(&link)?;
            }
            Ok(())
        };
        // The canonical link goes first: without it no other name counts.
        [&found.canonical, digest]
            .into_iter()
            .try_for_each(remove)
            .map_err(StoreError::io("removing a blob's link"))
    }

    pub(super) fn mount_blob(
        &self,
        repository: &Repository,
        from: Option<&Repository>,
        digest: &Digest,
    ) -> Result<bool> {
        let canonical = match from {
            Some(from) => match self.find_blob(from, digest) {
                Ok(found) => Some(found.canonical),
                Err(StoreError::UnknownBlob(_)) => None,
                Err(error) => return Err(error),
            },
            None if digest.algorithm() == Algorithm::Sha256 => {
                Some(digest.clone()).filter(|digest| self.layout.data(digest).is_file())
            }
            None => None,
        };
        let Some(canonical) = canonical else {
            return Ok(false);
        };
        let links = self.stage_layer_links(repository, &canonical, digest)?;
        place(links).map_err(StoreError::io("mounting a blob"))?;
        Ok(true)
    }

    pub(super) fn start_upload(&self, repository: &Repository, now: Timestamp) -> Result<Uuid> {
        let upload = Uuid::new_v4();
        let dir = self.layout.upload(repository, upload);
        let create = || {
            durable::create_dirs(&dir)?;
            fs::write(dir.join("startedat"), now.to_rfc3339())?;
            File::create_new(dir.join("data")).map(drop)
        };
        if let Err(error) = create() {
            // On a full disk, not even an empty folder should stay.
            fs::remove_dir_all(&dir).ok();
            return Err(StoreError::io("opening an upload")(error));
        }
        let hasher = Some(Hasher::new(Algorithm::Sha256));
        self.sessions.insert(upload, Session { size: 0, hasher });
        Ok(upload)
    }

    pub(super) fn upload_size(&self, repository: &Repository, upload: Uuid) -> Result<u64> {
        let dir = self.layout.upload(repository, upload);
        match fs::metadata(dir.join("data")) {
            Ok(metadata) => Ok(metadata.len()),
            // A session of distribution has no data file before its first byte.
            Err(error) if durable::is_absent(&error) && dir.join("startedat").is_file() => Ok(0),
            Err(error) if durable::is_absent(&error) => Err(StoreError::UnknownUpload),
            Err(error) => Err(StoreError::io("reading an upload")(error)),
        }
    }

    pub(super) fn drop_upload(&self, repository: &Repository, upload: Uuid) -> Result<()> {
        match fs::remove_dir_all(self.layout.upload(repository, upload)) {
            Err(error) if !durable::is_absent(&error) => {
                Err(StoreError::io("removing an upload")(error))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn finish_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        session: &Session,
        claimed: &Digest,
    ) -> Result<()> {
        let size = self.upload_size(repository, upload)?;
        let path = self.layout.upload(repository, upload).join("data");
        let failed = || StoreError::io("finishing an upload");
        let file = File::options()
            .append(true)
            .read(true)
            .create(true)
            .open(&path)
            .map_err(failed())?;
        let canonical = match &session.hasher {
            Some(hasher) if session.size == size => hasher.clone().finish(),
            _ => hash(&file, Algorithm::Sha256).map_err(failed())?,
        };
        let actual = match claimed.algorithm() {
            Algorithm::Sha256 => canonical.clone(),
            Algorithm::Sha512 => hash(&file, Algorithm::Sha512).map_err(failed())?,
        };
        if actual != *claimed {
            self.drop_upload(repository, upload)?;
            return Err(StoreError::WrongDigest {
                claimed: claimed.clone(),
                actual,
            });
        }
        file.sync_all().map_err(failed())?;
        // Staged before the bytes move, so that a full disk leaves the upload as it was.
        let links = self.stage_layer_links(repository, &canonical, claimed)?;
        let target = self.layout.data(&canonical);
        keep(&path, &target, size).map_err(failed())?;
        place(links).map_err(failed())?;
        self.drop_upload(repository, upload)
    }

    fn stage_layer_links(
        &self,
        repository: &Repository,
        canonical: &Digest,
        name: &Digest,
    ) -> Result<Vec<(Staged, PathBuf)>> {
        let alias = Some(name).filter(|name| *name != canonical);
        [Some(canonical), alias]
            .into_iter()
            .flatten()
            .map(|digest| self.stage_link(self.layout.layer_link(repository, digest), canonical))
            .collect()
    }

    pub(super) fn stage_link(&self, link: PathBuf, digest: &Digest) -> Result<(Staged, PathBuf)> {
        let stage = || {
            durable::create_parent(&link)?;
            Staged::write(self.layout.temporary(), digest.to_string().as_bytes())
        };
        let staged = stage().map_err(StoreError::io("writing a link"))?;
        Ok((staged, link))
    }
}

/// The canonical digest that `digest` stands for where `link` keeps its links.
pub(super) fn linked(digest: &Digest, link: impl Fn(&Digest) -> PathBuf) -> Result<Option<Digest>> {
    let Some(canonical) = read_link(&link(digest))? else {
        return Ok(None);
    };
    if canonical != *digest && read_link(&link(&canonical))?.is_none() {
        return Ok(None);
    }
    Ok(Some(canonical))
}

fn prepare(layout: &Layout) -> io::Result<File> {
    durable::create_dirs(&layout.temporary_dir())?;
    durable::create_dirs(&layout.repositories())?;
    durable::create_dirs(&layout.blobs())?;
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(layout.lock())
}

fn clear(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn slot(repository: &Repository) -> usize {
    let mut hasher = DefaultHasher::new();
    repository.hash(&mut hasher);
    usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or(0)
}

/// The digest that a link holds; nothing when there is no link.
pub(super) fn read_link(path: &Path) -> Result<Option<Digest>> {
    let mut text = String::new();
    let read =
        File::open(path).and_then(|file| file.take(LINK_LIMIT_BYTES).read_to_string(&mut text));
    match read {
        Ok(_) => {}
        Err(error) if durable::is_absent(&error) => return Ok(None),
        Err(error) => return Err(StoreError::io("reading a link")(error)),
    }
    let damaged = |error: model::Error| StoreError::Damaged {
        what: format!("link {}", path.display()),
        why: error.to_string(),
    };
    text.trim().parse().map(Some).map_err(damaged)
}

/// Gives every staged link its name and makes the names durable.
fn place(links: Vec<(Staged, PathBuf)>) -> io::Result<()> {
    for (staged, link) in links {
        staged.place(&link)?;
        durable::sync_parent(&link)?;
    }
    Ok(())
}

/// Moves an upload's bytes to `target`, unless the same bytes are there.
fn keep(upload: &Path, target: &Path, size: u64) -> io::Result<()> {
    if fs::metadata(target).is_ok_and(|metadata| metadata.len() == size) {
        return Ok(());
    }
    durable::create_parent(target)?;
    durable::rename(upload, target)?;
    durable::sync_parent(target)
}

fn hash(mut file: &File, algorithm: Algorithm) -> io::Result<Digest> {
    file.rewind()?;
    let mut hasher = Hasher::new(algorithm);
    let mut buffer = vec![0; REHASH_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            n => hasher.update(&buffer[..n]),
        }
    }
}
