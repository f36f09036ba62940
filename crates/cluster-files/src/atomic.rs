//! Atomic replace of files, by temporary names; other replicas may delete their folders at the same time.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use durable::sync_folder;
use model::Error;
use uuid::Uuid;

/// Prefix of temporary files; object names never start with a dot.
pub(crate) const TEMPORARY: &str = ".new-";
/// Attempts of a write whose folder is deleted concurrently.
const ATTEMPTS: u32 = 5;

/// Creates `folder` and its parents, private to the service.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// As [`make_folder`], with each folder durable in its parent.
pub(crate) fn make_durable_folder(folder: &Path) -> io::Result<()> {
    durable::create_folder_with(DirBuilder::new().mode(0o700), folder)
}

/// Atomic replace: after a crash, `target` has the old content or the new one.
pub fn put_file(target: &Path, content: &[u8]) -> io::Result<()> {
    let folder = parent(target);
    retry_if_folder_deleted(|| {
        make_durable_folder(folder)?;
        let temporary = Temporary(temporary_in(folder));
        write_whole(&temporary.0, content)?;
        // Content is synced before it gets its name, and the name by the folder's sync.
        fs::rename(&temporary.0, target)?;
        sync_folder(folder)
    })
}

/// Retries `work` when its folder is deleted concurrently, by another replica that deletes the cluster.
pub(crate) fn retry_if_folder_deleted<T>(work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let mut attempts = 1;
    loop {
        match work() {
            Err(error) if has_vanished(&error) && attempts < ATTEMPTS => attempts += 1,
            outcome => return outcome,
        }
    }
}

/// Also AlreadyExists: `mkdir` reports it for a folder that is deleted right after.
fn has_vanished(error: &io::Error) -> bool {
    is_absent(error) || error.kind() == io::ErrorKind::AlreadyExists
}

/// Runs file work on the blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(
    doing: String,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(failure(doing, error)),
        Err(error) => Err(Error::internal(doing, error)),
    }
}

/// Maps a full disk to Unavailable: clients retry, and the text names the cause for the operator.
pub(crate) fn failure(doing: String, error: io::Error) -> Error {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    if matches!(error.kind(), StorageFull | QuotaExceeded) {
        return Error::unavailable("space on the disk of WORK_DIR", error);
    }
    Error::internal(doing, error)
}

/// A file that is removed unless it was renamed away.
pub(crate) struct Temporary(pub(crate) PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // Fails after the rename, when there is nothing to remove; the next start sweeps leftovers.
        let _ = fs::remove_file(&self.0);
    }
}

/// Whether that is the name of a temporary file.
pub(crate) fn is_temporary(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
}

pub(crate) fn temporary_in(folder: &Path) -> PathBuf {
    folder.join(format!("{TEMPORARY}{}", Uuid::new_v4().simple()))
}

pub(crate) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Ignores missing files: other replicas work on the same folder.
pub(crate) fn unless_absent(outcome: io::Result<()>) -> io::Result<()> {
    outcome.or_else(|error| {
        if is_absent(&error) {
            Ok(())
        } else {
            Err(error)
        }
    })
}
