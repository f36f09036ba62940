//! An opened folder: its state, records and probes; all functions block.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;

use super::adoption_progress::Adoption;
use super::committer::{self, Committer, SharedState};
use super::index::ContentIndex;
use super::layout::FolderLayout;
use super::queries::IndexedBlob;
use super::reserve::Reserve;
use super::staged::{self, Staged};
use super::verify_queue::VerifyQueue;
use super::writable::{self, Writable, WriteSide};
use crate::caches::CheckedBlobs;
use crate::sessions::Sessions;
use crate::verified::Verified;
use crate::{Result, StoreError};
use oci::{Algorithm, Digest, Hasher, Repository};

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

/// Options of a store in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskOptions {
    /// Units: bytes. Reserved for deletions on a full disk, at most a sixteenth of it; zero for none.
    pub reserve_bytes: u64,
    /// Read-only: a folder that no registry of ours has written is not changed even at the start.
    pub is_read_only: bool,
}
