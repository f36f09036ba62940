//! Private work folders of installer runs, and the file lock of a cluster's preparation.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::ids::ClusterId;
use uuid::Uuid;

use cluster_files::{is_same, is_stale, make_folder};

/// Extension of lock files.
const LOCK_EXTENSION: &str = "claim";
/// Attempts to lock, in races with processes that remove the file.
const ATTEMPTS: u32 = 10;

/// File lock of a cluster's preparation, among all processes on the same folder; released on drop or crash.
#[derive(Debug)]
pub struct PreparationLock {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl PreparationLock {
    /// Takes the lock of `cluster`; none while another process holds it.
    pub(crate) fn try_take(parent: &Path, cluster: ClusterId) -> io::Result<Option<Self>> {
        make_folder(parent)?;
        let path = parent.join(format!(".{cluster}.{LOCK_EXTENSION}"));
        for _ in 0..ATTEMPTS {
            let file = File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The previous holder may have removed the file before it was locked here.
            if is_same(&path, &file.metadata()?) {
                return Ok(Some(Self { path, _file: file }));
            }
        }
        Ok(None)
    }
}

impl Drop for PreparationLock {
    fn drop(&mut self) {
        // Removed while locked, so that no other process can hold it. A leftover file is reused.
        let _ = fs::remove_file(&self.path);
    }
}

/// A work folder, removed on drop; it contains the pull secret.
pub(crate) struct WorkFolder(PathBuf);

impl WorkFolder {
    /// Creates an empty folder for `cluster` below `parent`, and its temporary folder beside it.
    ///
    /// Removes leftovers of the same cluster, whose preparations are exclusive, and those of other clusters that are
    /// stale at `now`.
    pub(crate) fn make(parent: &Path, cluster: ClusterId, now: SystemTime) -> io::Result<Self> {
        make_folder(parent)?;
        let prefix = format!("{cluster}-");
        for entry in fs::read_dir(parent)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                fs::remove_dir_all(entry.path())?;
            } else if entry.metadata().is_ok_and(|found| is_stale(&found, now)) {
                remove_stale(&entry.path());
            }
        }
        let folder = Self(parent.join(format!("{prefix}{}", Uuid::new_v4().simple())));
        make_folder(&folder.0)?;
        make_folder(&temporary(&folder.0))?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        for folder in [&temporary(&self.0), &self.0] {
            if let Err(error) = fs::remove_dir_all(folder) {
                tracing::warn!(folder = %folder.display(), %error, "work folder not removed");
            }
        }
    }
}

/// Removes a stale entry. Failures are logged at debug: other processes do the same concurrently.
fn remove_stale(path: &Path) {
    let removed = if path.extension().is_some_and(|end| end == LOCK_EXTENSION) {
        remove_lock_file(path)
    } else {
        fs::remove_dir_all(path)
    };
    if let Err(error) = removed {
        tracing::debug!(path = %path.display(), %error, "stale entry not removed");
    }
}

/// Removes a lock file that is not held.
fn remove_lock_file(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // It may have been removed, and a new one locked, in between.
    if file.try_lock().is_ok() && is_same(path, &file.metadata()?) {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Temporary folder of the installer: beside its working folder, whose files it lists.
pub(crate) fn temporary(folder: &Path) -> PathBuf {
    folder.with_extension("tmp")
}

#[cfg(test)]
mod tests {
    use cluster_files::STALE_AFTER;

    use super::*;

    fn cluster(number: u128) -> ClusterId {
        ClusterId(Uuid::from_u128(number))
    }

    fn now() -> SystemTime {
        service::clock::now().into()
    }

    fn count(parent: &Path) -> usize {
        fs::read_dir(parent).unwrap().count()
    }

    #[test]
    fn leftovers_of_the_same_cluster_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path().join("work");
        let killed = WorkFolder::make(&parent, cluster(1), now()).unwrap();
        let left = killed.path().to_owned();
        fs::write(left.join("install-config.yaml"), "x").unwrap();
        std::mem::forget(killed);
        let folder = WorkFolder::make(&parent, cluster(1), now()).unwrap();
        assert!(!left.exists());
        drop(folder);
        assert_eq!(count(&parent), 0);
    }

    #[test]
    fn stale_leftovers_of_other_clusters_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let running = WorkFolder::make(parent, cluster(1), now()).unwrap();
        let locks = [
            PreparationLock::try_take(parent, cluster(1)),
            PreparationLock::try_take(parent, cluster(3)),
        ];
        let [held, left] = locks.map(|lock| lock.unwrap().unwrap());
        fs::create_dir(parent.join(".new-scratch")).unwrap();
        drop(WorkFolder::make(parent, cluster(2), now()).unwrap());
        assert_eq!(count(parent), 5);
        // As after a crash: the file exists without a lock.
        let path = left.path.clone();
        drop(left);
        fs::write(path, "").unwrap();
        let tomorrow = now() + STALE_AFTER * 2;
        let second = WorkFolder::make(parent, cluster(2), tomorrow).unwrap();
        drop(second);
        assert!(held.path.exists());
        assert_eq!(count(parent), 1);
        std::mem::forget(running);
    }

    /// File locks belong to open files, so threads contend like processes.
    #[test]
    fn preparation_lock_is_exclusive() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let first = PreparationLock::try_take(parent, cluster(1))
            .unwrap()
            .unwrap();
        assert!(
            PreparationLock::try_take(parent, cluster(1))
                .unwrap()
                .is_none()
        );
        assert!(
            PreparationLock::try_take(parent, cluster(2))
                .unwrap()
                .is_some()
        );
        drop(first);
        assert_eq!(count(parent), 0);
        let holders = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut had = 0;
                    while had < 100 {
                        let Some(_lock) = PreparationLock::try_take(parent, cluster(1)).unwrap()
                        else {
                            continue;
                        };
                        let order = std::sync::atomic::Ordering::SeqCst;
                        assert_eq!(holders.fetch_add(1, order), 0);
                        assert_eq!(holders.fetch_sub(1, order), 1);
                        had += 1;
                    }
                });
            }
        });
        assert_eq!(count(parent), 0);
    }
}
