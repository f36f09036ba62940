//! The folder in which a run works.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use model::Error;

/// Lock file of the running process.
const LOCK: &str = ".lock";
/// Prefixes of temporary folders: those of runs, of results, and all others.
const TEMPORARY: [&str; 3] = ["run-", ".results-", ".tmp"];

/// A workspace, locked until this is dropped.
#[derive(Debug)]
pub struct Workspace(#[expect(dead_code, reason = "it is held, not used")] File);

impl Workspace {
    /// Creates the folder if it is missing, locks it, and removes temporary folders of killed runs.
    ///
    /// Blocking. Errors: Conflict – another run works there; Internal – it cannot be created.
    pub fn enter(folder: &Path) -> Result<Self, Error> {
        let failed = |e: io::Error| Error::internal(format!("preparing {}", folder.display()), e);
        durable::create_folder(folder).map_err(failed)?;
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true);
        let lock = options.open(folder.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::conflict(format!(
                    "another run works in {}: wait for its end, or name another folder",
                    folder.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        clean(folder).map_err(failed)?;
        Ok(Self(lock))
    }
}

fn clean(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_left = TEMPORARY
            .iter()
            .any(|prefix| name.to_string_lossy().starts_with(prefix));
        if is_left && entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_works_there_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("workspace");
        let first = Workspace::enter(&folder).unwrap();
        let refused = Workspace::enter(&folder).unwrap_err();
        assert!(matches!(refused, Error::Conflict { .. }), "{refused}");
        drop(first);
        Workspace::enter(&folder).unwrap();
    }

    #[test]
    fn temporary_folders_are_removed_and_results_stay() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["run-x", ".results-x", "results-1"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("run-notes.txt"), "").unwrap();
        let _workspace = Workspace::enter(dir.path()).unwrap();
        let is_there = |name| dir.path().join(name).exists();
        let there = ["run-x", ".results-x", "results-1", "run-notes.txt"].map(is_there);
        assert_eq!(there, [false, false, true, true]);
    }
}
