//! The folder opened for changes, and its write state for the readiness probe.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::journal::ChangeJournal;
use super::layout::FolderLayout;
use crate::{Result, StoreError};

/// The lock and the journal of a folder, held by one process at a time.
#[derive(Debug)]
pub(super) struct Writable {
    pub(super) journal: ChangeJournal,
    /// Journal files of earlier processes, oldest first.
    pub(super) old: Vec<PathBuf>,
    /// Changes in these files may be missing in the folder.
    pub(super) needs_replay: bool,
    /// The locked file.
    exclusive: File,
}

impl Writable {
    /// Locks and prepares the folder. Errors: Damaged – another process has the folder open; Io.
    pub(super) fn open(layout: &FolderLayout) -> Result<Self> {
        let exclusive = prepare(layout).map_err(StoreError::io("opening the storage folder"))?;
        match exclusive.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(in_use(layout)),
            // Some network filesystems have no locks; the operator has to exclude a second process.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, "the storage folder cannot be locked");
            }
            Ok(()) => {}
        }
        // After the lock: temporary files of a running process must not be removed.
        clear(&layout.temporary_dir()).map_err(StoreError::io("clearing unfinished writes"))?;
        let (journal, old, needs_replay) = ChangeJournal::open(&layout.journal())
            .map_err(StoreError::io("opening the journal"))?;
        Ok(Self {
            journal,
            old,
            needs_replay,
            exclusive,
        })
    }

    /// Separates the journal from the lock file, whose lock lasts until it is closed.
    pub(super) fn into_parts(self) -> (ChangeJournal, Vec<PathBuf>, bool, File) {
        (self.journal, self.old, self.needs_replay, self.exclusive)
    }
}

/// Takes a shared lock on a read-only folder, against processes that change it; `None` if locking is not possible.
///
/// Errors: Damaged – a process has the folder open for changes.
pub(super) fn lock_shared(layout: &FolderLayout) -> Result<Option<File>> {
    let Ok(file) = File::open(layout.lock()) else {
        return Ok(None);
    };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Err(in_use(layout)),
        Err(TryLockError::Error(_)) => Ok(None),
        Ok(()) => Ok(Some(file)),
    }
}

/// Whether `error` comes from a read-only medium or from permissions, and the content can be read.
pub(super) fn is_read_only(layout: &FolderLayout, error: &StoreError) -> bool {
    let StoreError::Io { source, .. } = error else {
        return false;
    };
    matches!(
        source.kind(),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
    ) && fs::read_dir(layout.repositories()).is_ok()
}

fn in_use(layout: &FolderLayout) -> StoreError {
    StoreError::Damaged {
        what: layout.root().display().to_string(),
        why: "another process has it open; stop that one first".to_owned(),
    }
}

fn prepare(layout: &FolderLayout) -> io::Result<File> {
    durable::create_folder(&layout.temporary_dir())?;
    durable::create_folder(&layout.repositories())?;
    durable::create_folder(&layout.blobs())?;
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

/// Whether changes succeed.
#[derive(Debug, Default)]
pub(super) struct WriteSide(Mutex<Option<Broken>>);

/// Cause of failing changes.
#[derive(Debug, Clone)]
pub(super) struct Broken {
    pub(super) is_full: bool,
    pub(super) why: String,
}

impl WriteSide {
    /// Records the outcome of the last commit or recovery; logs the begin and the end of an outage.
    pub(super) fn note(&self, outcome: &Result<()>) {
        let broken = outcome.as_ref().err().map(|error| Broken {
            is_full: error.is_full(),
            why: model::error::chain(error),
        });
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*state, &broken) {
            (None, Some(Broken { why, .. })) => {
                tracing::error!(
                    error = why,
                    "the storage folder takes no changes; retrying until it does"
                );
            }
            (Some(_), None) => tracing::info!("the storage folder takes changes again"),
            _ => {}
        }
        *state = broken;
    }

    /// The cause, if changes fail.
    pub(super) fn broken(&self) -> Option<Broken> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.clone()
    }
}

impl From<Broken> for StoreError {
    fn from(broken: Broken) -> Self {
        let kind = if broken.is_full {
            io::ErrorKind::StorageFull
        } else {
            io::ErrorKind::Other
        };
        Self::io("changing the storage folder")(io::Error::new(kind, broken.why))
    }
}
