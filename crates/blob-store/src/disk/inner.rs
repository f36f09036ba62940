//! Upload sessions, records and probes of a folder; all functions block.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use model::time::Timestamp;
use uuid::Uuid;

use super::DiskOptions;
use super::adopt;
use super::adoption::Adoption;
use super::change::{BlobSource, ContentName, JournalEntry, StoreChange};
use super::committer::{self, Committer, SharedState};
use super::download::Pieces;
use super::index::{ContentIndex, IndexedBlob};
use super::layout::FolderLayout;
use super::reserve::Reserve;
use super::staged::{self, Staged};
use super::verify_queue::VerifyQueue;
use super::writable::{self, Writable, WriteSide};
use crate::caches::CheckedBlobs;
use crate::sessions::Sessions;
use crate::verified::Verified;
use crate::{Result, StoreError};
use oci::{Algorithm, Digest, Hasher, Repository};

/// Units: bytes. Read buffer of a rehash.
const REHASH_BYTES: usize = 256 * 1024;
/// Units: bytes. Blobs up to this size are journalled whole, which is cheaper than an fsync for each.
const JOURNALLED_BYTES: u64 = 32 * 1024;
/// Units: bytes. Size of the probe's file, too large to be stored inline in an inode.
const PROBE_BYTES: usize = 64 * 1024;

/// Incremental hash of the first `size` bytes of an upload.
#[derive(Debug, Default)]
pub(super) struct DiskSession {
    pub(super) size: u64,
    pub(super) hasher: Option<Hasher>,
}

/// Use of the index when a folder is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// The folder is compared with the index.
    Adopt,
    /// The index is emptied and filled from the folder.
    Rebuild,
    /// The index is used as it is, and no garbage is collected.
    AsIs,
}

#[derive(Debug)]
pub(super) struct DiskInner {
    pub(super) sessions: Sessions<DiskSession>,
    pub(super) shared: Arc<SharedState>,
    pub(super) committer: Committer,
    pub(super) checked_blobs: CheckedBlobs,
    /// Queue of content to verify.
    pub(super) verify_queue: VerifyQueue,
    /// Shared lock of a read-only folder, held while the store is open.
    _shared_lock: Option<File>,
}

impl DiskInner {
    pub(super) fn open(root: &Path, opening: Opening, options: DiskOptions) -> Result<Self> {
        let layout = FolderLayout::new(root);
        let reserve = Reserve::new(&layout, options.reserve_bytes);
        let (writable, read_only) = open_for_changes(&layout, &reserve, options)?;
        let shared_lock = match &read_only {
            Some(why) => {
                tracing::warn!(why, "the storage folder is read-only and served as it is");
                writable::lock_shared(&layout)?
            }
            None => None,
        };
        let index = ContentIndex::open(&layout.index(), read_only.is_none())?;
        if opening == Opening::Rebuild {
            index.clear()?;
        }
        let adopts = opening != Opening::AsIs;
        let shared = Arc::new(SharedState {
            layout,
            index,
            verified: Verified::default(),
            adoption: Adoption::new(!adopts),
            is_incomplete: AtomicBool::new(!adopts),
            write_side: WriteSide::default(),
            reserve,
            read_only,
        });
        let committer = Committer::start(Arc::clone(&shared), writable)?;
        Ok(Self {
            sessions: Sessions::default(),
            shared,
            committer,
            checked_blobs: CheckedBlobs::default(),
            verify_queue: VerifyQueue::default(),
            _shared_lock: shared_lock,
        })
    }

    /// Errors: ReadOnly; Io – the disk is full.
    pub(super) fn may_add(&self) -> Result<()> {
        if let Some(why) = &self.shared.read_only {
            return Err(StoreError::ReadOnly(why.clone()));
        }
        if self.shared.reserve.is_released() {
            return Err(committer::full());
        }
        Ok(())
    }

    pub(super) fn layout(&self) -> &FolderLayout {
        &self.shared.layout
    }

    pub(super) fn blob(&self, repository: &Repository, digest: &Digest) -> Result<IndexedBlob> {
        let found = self.shared.index.snapshot()?.blob(repository, digest)?;
        found.ok_or_else(|| StoreError::UnknownBlob(digest.clone()))
    }

    pub(super) fn record(&self, name: &str) -> Result<Option<Bytes>> {
        match fs::read(self.layout().record(name)) {
            Ok(record) => Ok(Some(record.into())),
            Err(error) if staged::is_absent(&error) => Ok(None),
            Err(error) => Err(StoreError::io("reading a record")(error)),
        }
    }

    pub(super) fn put_record(&self, name: &str, record: &[u8]) -> Result<()> {
        let staged = Staged::write(self.layout().temporary(), record);
        let placed = staged.and_then(|staged| staged.place(&self.layout().record(name)));
        placed.map_err(StoreError::io("writing a record"))
    }

    /// The SHA-256 of content under any of its digests.
    pub(super) fn canonical(&self, digest: &Digest) -> Result<Option<Digest>> {
        match digest.algorithm() {
            Algorithm::Sha256 => Ok(Some(digest.clone())),
            Algorithm::Sha512 => self.shared.index.snapshot()?.canonical(digest),
        }
    }

    /// A blob without regard to its repositories.
    pub(super) fn stored(&self, digest: &Digest) -> Result<Option<IndexedBlob>> {
        let canonical = self.canonical(digest)?;
        Ok(canonical.and_then(|canonical| {
            let size = fs::metadata(self.layout().data(&canonical)).ok()?.len();
            Some(IndexedBlob { canonical, size })
        }))
    }

    /// Reads the folder and the index and, if it `may_write`, writes and removes a temporary file.
    pub(super) fn probe(&self, may_write: bool) -> Result<()> {
        self.shared.index.snapshot()?.repositories("", 1)?;
        let read = || fs::read_dir(self.layout().root())?.next().transpose();
        read().map_err(StoreError::io("reading the storage folder"))?;
        if !may_write || self.shared.read_only.is_some() {
            return Ok(());
        }
        if let Some(broken) = self.shared.write_side.broken() {
            return Err(broken.into());
        }
        if self.shared.reserve.is_released() {
            return Err(committer::full());
        }
        let path = self.layout().temporary();
        let written = fs::write(&path, vec![0; PROBE_BYTES]);
        let removed = staged::remove_file(&path);
        written
            .and(removed.map(drop))
            .map_err(StoreError::io("writing into the storage folder"))
    }

    pub(super) fn start_upload(&self, repository: &Repository, now: Timestamp) -> Result<Uuid> {
        self.may_add()?;
        let upload = Uuid::new_v4();
        let dir = self.layout().upload(repository, upload);
        let create = || {
            fs::create_dir_all(&dir)?;
            fs::write(dir.join("startedat"), now.to_rfc3339())?;
            File::create_new(dir.join("data")).map(drop)
        };
        if let Err(error) = create() {
            // Remove the folder, so that failed uploads do not pile up on a full disk.
            fs::remove_dir_all(&dir).ok();
            return Err(StoreError::io("opening an upload")(error));
        }
        let hasher = Some(Hasher::new(Algorithm::Sha256));
        self.sessions
            .insert(upload, DiskSession { size: 0, hasher });
        Ok(upload)
    }

    pub(super) fn upload_size(&self, repository: &Repository, upload: Uuid) -> Result<u64> {
        let dir = self.layout().upload(repository, upload);
        match fs::metadata(dir.join("data")) {
            Ok(metadata) => Ok(metadata.len()),
            // An upload session of distribution has no data file before its first byte.
            Err(error) if staged::is_absent(&error) && dir.join("startedat").is_file() => Ok(0),
            Err(error) if staged::is_absent(&error) => Err(StoreError::UnknownUpload),
            Err(error) => Err(StoreError::io("reading an upload")(error)),
        }
    }

    pub(super) fn open_upload(
        &self,
        repository: &Repository,
        upload: Uuid,
        first: u64,
        length: u64,
    ) -> Result<Pieces> {
        let data = self.layout().upload(repository, upload).join("data");
        let opened = File::open(data);
        opened
            .and_then(|file| Pieces::open(file, first, length, None))
            .map_err(|error| {
                if staged::is_absent(&error) {
                    StoreError::UnknownUpload
                } else {
                    StoreError::io("reading an upload")(error)
                }
            })
    }

    pub(super) fn drop_upload(&self, repository: &Repository, upload: Uuid) -> Result<()> {
        match fs::remove_dir_all(self.layout().upload(repository, upload)) {
            Err(error) if !staged::is_absent(&error) => {
                Err(StoreError::io("removing an upload")(error))
            }
            _ => Ok(()),
        }
    }

    /// The change that commits an upload as a blob. Its bytes are synced or travel with the change.
    pub(super) fn finished(
        &self,
        repository: &Repository,
        upload: Uuid,
        session: &DiskSession,
        claimed: &Digest,
    ) -> Result<JournalEntry> {
        let size = self.upload_size(repository, upload)?;
        let path = self.layout().upload(repository, upload).join("data");
        let failed = || StoreError::io("finishing an upload");
        let mut file = File::options()
            .append(true)
            .read(true)
            .create(true)
            .open(&path)
            .map_err(failed())?;
        let canonical = match &session.hasher {
            Some(hasher) if session.size == size => hasher.clone().finish(),
            _ => hash(&file, Algorithm::Sha256, || true).map_err(failed())?,
        };
        let actual = match claimed.algorithm() {
            Algorithm::Sha256 => canonical.clone(),
            Algorithm::Sha512 => hash(&file, Algorithm::Sha512, || true).map_err(failed())?,
        };
        if actual != *claimed {
            self.drop_upload(repository, upload)?;
            return Err(StoreError::WrongDigest {
                claimed: claimed.clone(),
                actual,
            });
        }
        let content = if size <= JOURNALLED_BYTES {
            let mut content = Vec::new();
            file.rewind().map_err(failed())?;
            file.read_to_end(&mut content).map_err(failed())?;
            Some(Bytes::from(content))
        } else {
            if let Err(error) = make_durable(&file, &path, &self.layout().repositories()) {
                // After a failed fsync, the kernel may drop dirty pages and report success for the next fsync: a
                // retry with these bytes would acknowledge lost data.
                self.drop_upload(repository, upload)?;
                return Err(failed()(error));
            }
            None
        };
        let change = StoreChange::AddBlob {
            repository: repository.clone(),
            blob: ContentName::new(canonical, claimed),
            size,
            from: BlobSource::Upload(upload),
        };
        Ok(JournalEntry { change, content })
    }

    pub(super) fn purge_uploads(&self, before: Timestamp) -> Result<usize> {
        let before = std::time::SystemTime::from(before);
        let failed = || StoreError::io("purging abandoned uploads");
        let mut purged = 0;
        for repository in adopt::having(self.layout(), &["_uploads"], || true).map_err(failed())? {
            let uploads = self.layout().uploads(&repository);
            for name in adopt::folders(&uploads).map_err(failed())? {
                let Ok(upload) = name.parse::<Uuid>() else {
                    continue;
                };
                let session = self.sessions.get(upload);
                // The writer of an active upload holds the lock, even if its last byte is old.
                let Ok(_guard) = session.try_lock() else {
                    continue;
                };
                let dir = self.layout().upload(&repository, upload);
                if is_older(&dir, before).map_err(failed())? {
                    self.drop_upload(&repository, upload)?;
                    self.sessions.forget(upload);
                    purged += 1;
                }
            }
        }
        Ok(purged)
    }
}

/// Syncs the bytes, then each folder from the upload's up to `repositories`, since any of them may be new. Before the
/// journal entry: the rename that it promises needs a durable file.
fn make_durable(file: &File, path: &Path, repositories: &Path) -> io::Result<()> {
    file.sync_data()?;
    let folders = path.ancestors().skip(1);
    for folder in folders.take_while(|folder| folder.starts_with(repositories)) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Whether an upload's folder is unchanged since `before`; also when it is deleted meanwhile.
fn is_older(dir: &Path, before: std::time::SystemTime) -> io::Result<bool> {
    for path in [dir.join("data"), dir.to_owned()] {
        match fs::metadata(path).and_then(|metadata| metadata.modified()) {
            Ok(changed_at) if changed_at >= before => return Ok(false),
            Ok(_) => {}
            Err(error) if staged::is_absent(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Opens the folder for changes. Returns the outcome, and the reason if the folder is read-only for good.
fn open_for_changes(
    layout: &FolderLayout,
    reserve: &Reserve,
    options: DiskOptions,
) -> Result<(Result<Writable>, Option<String>)> {
    // A folder that no registry of ours has written needs no recovery.
    if options.is_read_only && !layout.own().exists() && layout.repositories().is_dir() {
        let why = "the registry is in read-only mode".to_owned();
        return Ok((Err(StoreError::ReadOnly(why.clone())), Some(why)));
    }
    let mut writable = Writable::open(layout);
    if writable.as_ref().is_err_and(StoreError::is_full) && reserve.release() {
        writable = Writable::open(layout);
    }
    match writable {
        Err(error) if writable::is_read_only(layout, &error) => {
            let why = model::error::chain(&error);
            Ok((Err(error), Some(why)))
        }
        // Reads are served meanwhile.
        Err(error) if error.is_full() => Ok((Err(error), None)),
        Err(error) => Err(error),
        writable => Ok((writable, None)),
    }
}

/// Digest of a file. Errors: also Interrupted – `is_wanted` returned false.
pub(super) fn hash(
    mut file: &File,
    algorithm: Algorithm,
    is_wanted: impl Fn() -> bool,
) -> io::Result<Digest> {
    file.rewind()?;
    let mut hasher = Hasher::new(algorithm);
    let mut buffer = vec![0; REHASH_BYTES];
    loop {
        if !is_wanted() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            n => hasher.update(&buffer[..n]),
        }
    }
}
