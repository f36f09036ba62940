//! The folder opened for changes, and whether changes can be made: what readiness says.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::journal::Journal;
use super::layout::Layout;
use crate::{Result, StoreError};

/// What is needed to change the folder. One process at a time has it.
#[derive(Debug)]
pub(super) struct Writable {
    pub(super) journal: Journal,
    /// Files of the journal of earlier processes, oldest first.
    pub(super) old: Vec<PathBuf>,
    /// Changes in these files may not be in the folder.
    pub(super) may_miss: bool,
    /// Locked.
    exclusive: File,
}

impl Writable {
    /// Errors: Damaged – another process has the folder open; Io.
    pub(super) fn open(layout: &Layout) -> Result<Self> {
        let exclusive = prepare(layout).map_err(StoreError::io("opening the storage folder"))?;
        match exclusive.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(in_use(layout)),
            // Some network filesystems have no locks: then the operator sees to it.
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, "the storage folder cannot be locked");
            }
            Ok(()) => {}
        }
        clear(&layout.temporary_dir()).map_err(StoreError::io("clearing unfinished writes"))?;
        let (journal, old, may_miss) =
            Journal::open(&layout.journal()).map_err(StoreError::io("opening the journal"))?;
        Ok(Self {
            journal,
            old,
            may_miss,
            exclusive,
        })
    }

    /// Splits what the journal needs from the lock, which is held as long as the file is open.
    pub(super) fn into_parts(self) -> (Journal, Vec<PathBuf>, bool, File) {
        (self.journal, self.old, self.may_miss, self.exclusive)
    }
}

/// Locks a folder that is only read against processes that change it. Nothing: there is no lock, or none can be had.
///
/// Errors: Damaged – another process may change it.
pub(super) fn lock_shared(layout: &Layout) -> Result<Option<File>> {
    let Ok(file) = File::open(layout.lock()) else {
        return Ok(None);
    };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Err(in_use(layout)),
        Err(TryLockError::Error(_)) => Ok(None),
        Ok(()) => Ok(Some(file)),
    }
}

/// Whether a folder with content can be read and its medium, or its permissions, let nobody change it.
pub(super) fn is_read_only(layout: &Layout, error: &StoreError) -> bool {
    let StoreError::Io { source, .. } = error else {
        return false;
    };
    matches!(
        source.kind(),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
    ) && fs::read_dir(layout.repositories()).is_ok()
}

fn in_use(layout: &Layout) -> StoreError {
    StoreError::Damaged {
        what: layout.root().display().to_string(),
        why: "another process has it open; stop that one first".to_owned(),
    }
}

fn prepare(layout: &Layout) -> io::Result<File> {
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

/// Whether changes can be made.
#[derive(Debug, Default)]
pub(super) struct WriteSide(Mutex<Option<Broken>>);

/// Why no change can be made now.
#[derive(Debug, Clone)]
pub(super) struct Broken {
    pub(super) is_full: bool,
    pub(super) why: String,
}

impl WriteSide {
    /// Notes the outcome of the last change, or of the last attempt to recover; logs each outage once.
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

    /// Why no change can be made; nothing when all is well.
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
