//! A private folder for one run of the installer, and who may run it for a cluster.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use model::ids::ClusterId;
use uuid::Uuid;

use super::installer::temporary;
use crate::files::{is_left_behind, is_same, make_folder};

/// What a claim's file ends in.
const CLAIM: &str = "claim";
/// How often a claim is tried; each time another process let go of it just then.
const TRIES: u32 = 10;

/// The right to prepare a cluster, among all processes that share the folder; it ends with this or the process.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Claim {
    /// Takes the right to prepare `cluster`; nothing while another process has it.
    pub(super) fn take(parent: &Path, cluster: ClusterId) -> io::Result<Option<Self>> {
        make_folder(parent)?;
        let path = parent.join(format!(".{cluster}.{CLAIM}"));
        for _ in 0..TRIES {
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
            // Who had it before may have removed the file that was just locked.
            if is_same(&path, &file.metadata()?) {
                return Ok(Some(Self { path, _file: file }));
            }
        }
        Ok(None)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Still locked: nobody can have taken it over. A file that stays is used again.
        let _ = fs::remove_file(&self.path);
    }
}

/// A folder that is removed when the run is over, however it ends; it holds the pull secret.
pub(super) struct WorkFolder(PathBuf);

impl WorkFolder {
    /// Makes an empty folder for `cluster` below `parent`, and its folder for scratch files beside it.
    ///
    /// What a killed run of the same cluster left is removed, as only one preparation of a cluster runs at a time;
    /// what others left, when it is too old for anybody to be at it at `now`.
    pub(super) fn make(parent: &Path, cluster: ClusterId, now: SystemTime) -> io::Result<Self> {
        make_folder(parent)?;
        let prefix = format!("{cluster}-");
        for entry in fs::read_dir(parent)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&prefix) {
                fs::remove_dir_all(entry.path())?;
            } else if entry
                .metadata()
                .is_ok_and(|found| is_left_behind(&found, now))
            {
                remove_left_behind(&entry.path());
            }
        }
        let folder = Self(parent.join(format!("{prefix}{}", Uuid::new_v4().simple())));
        make_folder(&folder.0)?;
        make_folder(&temporary(&folder.0))?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        for folder in [&temporary(&self.0), &self.0] {
            if let Err(error) = fs::remove_dir_all(folder) {
                tracing::warn!(folder = %folder.display(), %error, "a work folder is left behind");
            }
        }
    }
}

/// Other processes may be doing the same, so what fails is nobody's fault.
fn remove_left_behind(path: &Path) {
    let removed = if path.extension().is_some_and(|end| end == CLAIM) {
        remove_claim(path)
    } else {
        fs::remove_dir_all(path)
    };
    if let Err(error) = removed {
        tracing::debug!(path = %path.display(), %error, "what was left behind stays");
    }
}

/// Removes a claim that nobody holds.
fn remove_claim(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    // Meanwhile it may have gone, and a new one may be held.
    if file.try_lock().is_ok() && is_same(path, &file.metadata()?) {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::LEFT_BEHIND_AFTER;

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
    fn nothing_is_left_behind() {
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
    fn what_was_left_for_another_cluster_goes_after_a_day() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let running = WorkFolder::make(parent, cluster(1), now()).unwrap();
        let claims = [
            Claim::take(parent, cluster(1)),
            Claim::take(parent, cluster(3)),
        ];
        let [held, left] = claims.map(|claim| claim.unwrap().unwrap());
        fs::create_dir(parent.join(".new-scratch")).unwrap();
        drop(WorkFolder::make(parent, cluster(2), now()).unwrap());
        assert_eq!(count(parent), 5);
        // As a killed process leaves it: there, but not locked.
        let path = left.path.clone();
        drop(left);
        fs::write(path, "").unwrap();
        let tomorrow = now() + LEFT_BEHIND_AFTER * 2;
        let second = WorkFolder::make(parent, cluster(2), tomorrow).unwrap();
        drop(second);
        assert!(held.path.exists());
        assert_eq!(count(parent), 1);
        std::mem::forget(running);
    }

    /// Locks belong to open files, so threads meet as processes do.
    #[test]
    fn one_claim_at_a_time() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let first = Claim::take(parent, cluster(1)).unwrap().unwrap();
        assert!(Claim::take(parent, cluster(1)).unwrap().is_none());
        assert!(Claim::take(parent, cluster(2)).unwrap().is_some());
        drop(first);
        assert_eq!(count(parent), 0);
        let holders = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut had = 0;
                    while had < 100 {
                        let Some(_claim) = Claim::take(parent, cluster(1)).unwrap() else {
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
