//! The installers that are kept for the next preparation, and which of them give way.
//!
//! Who uses one holds a shared lock of its file, so that other processes on the same folder see that too and a
//! process that dies lets go of it. The time of its last use is its file's time of modification.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use uuid::Uuid;

use super::registry::Scratch;
use crate::files::sync_folder;

/// What a kept program is called, in a folder of its own.
pub(super) const KEPT_NAME: &str = "openshift-install";

/// No extraction takes as long.
const LEFT_BEHIND_AFTER: Duration = Duration::from_hours(24);

/// An installer that stays while this lives.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    /// Holds the shared lock.
    _in_use: File,
}

impl Kept {
    /// The program.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// The program kept in `folder`, used at `now`; none when there is none.
pub(super) fn take(folder: &Path, now: SystemTime) -> io::Result<Option<Kept>> {
    let path = folder.join(KEPT_NAME);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome?,
    };
    file.lock_shared()?;
    // While this waited for the lock, the program may have given way.
    let locked = file.metadata()?;
    if !is_program(&locked) || !is_same(&path, &locked) {
        return Ok(None);
    }
    file.set_modified(now)?;
    Ok(Some(Kept {
        path,
        _in_use: file,
    }))
}

fn is_program(found: &fs::Metadata) -> bool {
    found.is_file() && found.len() > 0
}

fn is_same(path: &Path, known: &fs::Metadata) -> bool {
    fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (known.dev(), known.ino()))
}

/// Moves the program in `scratch` to `folder`, whole and executable.
pub(super) fn keep(scratch: &Scratch, folder: &Path) -> io::Result<()> {
    let program = scratch.0.join(KEPT_NAME);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o500))?;
    File::open(&program)?.sync_all()?;
    match fs::rename(&scratch.0, folder) {
        // Another process on the same folder was faster; its program is the same, by digest.
        Err(_) if fs::metadata(folder.join(KEPT_NAME)).is_ok_and(|found| is_program(&found)) => {}
        outcome => outcome?,
    }
    sync_folder(folder.parent().unwrap_or(folder))
}

/// A kept program, as it was found.
struct Entry {
    folder: PathBuf,
    size_bytes: u64,
    used_at: SystemTime,
}

/// Removes kept programs until they take no more than `capacity_bytes`: unused ones, the longest unused first; 0
/// means no limit. Removes what killed processes left behind, too.
pub(super) fn shrink(cache: &Path, capacity_bytes: u64, now: SystemTime) -> io::Result<()> {
    let mut entries = Vec::new();
    for found in fs::read_dir(cache)? {
        let found = found?;
        if found.file_name().as_encoded_bytes().starts_with(b".") {
            remove_left_behind(found.path(), now);
        } else if let Ok(program) = fs::metadata(found.path().join(KEPT_NAME)) {
            entries.push(Entry {
                folder: found.path(),
                size_bytes: program.len(),
                used_at: program.modified()?,
            });
        }
    }
    if capacity_bytes == 0 {
        return Ok(());
    }
    entries.sort_by_key(|entry| entry.used_at);
    let mut total: u64 = entries.iter().map(|entry| entry.size_bytes).sum();
    for entry in entries {
        if total <= capacity_bytes {
            break;
        }
        if give_way(cache, &entry.folder)? {
            total -= entry.size_bytes;
            tracing::info!(folder = %entry.folder.display(), size_bytes = entry.size_bytes, "a kept installer gave way");
        }
    }
    Ok(())
}

/// Removes a folder on its way in or out when it is too old for anybody to be at it.
fn remove_left_behind(folder: PathBuf, now: SystemTime) {
    let changed_at = fs::metadata(&folder).and_then(|metadata| metadata.modified());
    let is_old = changed_at.is_ok_and(|changed_at| {
        now.duration_since(changed_at)
            .is_ok_and(|age| age > LEFT_BEHIND_AFTER)
    });
    if is_old {
        drop(Scratch(folder));
    }
}

/// Removes the program in `folder` unless somebody uses it.
fn give_way(cache: &Path, folder: &Path) -> io::Result<bool> {
    let file = match File::open(folder.join(KEPT_NAME)) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        outcome => outcome?,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Gone at once for whoever looks, whatever becomes of removing it.
    let leaving = Scratch(cache.join(format!(".old-{}", Uuid::new_v4().simple())));
    fs::rename(folder, &leaving.0)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_hours(24 * number)
    }

    /// Keeps a program of 100 bytes in `cache/name`, used on day `used`.
    fn put(cache: &Path, name: &str, used: u64) {
        let scratch = Scratch(cache.join(format!(".new-{name}")));
        fs::create_dir_all(&scratch.0).unwrap();
        fs::write(scratch.0.join(KEPT_NAME), [b'x'; 100]).unwrap();
        keep(&scratch, &cache.join(name)).unwrap();
        take(&cache.join(name), day(used)).unwrap().unwrap();
    }

    fn names(cache: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(cache)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_longest_unused_give_way() {
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path();
        for (name, used) in [("a", 3), ("b", 1), ("c", 2)] {
            put(cache, name, used);
        }
        shrink(cache, 0, SystemTime::UNIX_EPOCH).unwrap();
        shrink(cache, 300, SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(names(cache), ["a", "b", "c"]);
        drop(take(&cache.join("b"), day(4)).unwrap());
        shrink(cache, 299, SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(names(cache), ["a", "b"]);
        shrink(cache, 1, SystemTime::UNIX_EPOCH).unwrap();
        assert!(names(cache).is_empty());
    }

    #[test]
    fn one_in_use_stays() {
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path();
        put(cache, "a", 1);
        put(cache, "b", 2);
        let first = take(&cache.join("a"), day(1)).unwrap().unwrap();
        let second = take(&cache.join("a"), day(1)).unwrap().unwrap();
        drop(first);
        shrink(cache, 1, SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(names(cache), ["a"]);
        assert!(second.path().is_file());
        drop(second);
        shrink(cache, 1, SystemTime::UNIX_EPOCH).unwrap();
        assert!(names(cache).is_empty());
    }

    #[test]
    fn what_a_killed_process_left_goes_after_a_day() {
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path();
        put(cache, "a", 1);
        let left = cache.join(".new-b");
        fs::create_dir(&left).unwrap();
        let made = fs::metadata(&left).unwrap().modified().unwrap();
        shrink(cache, 0, made + LEFT_BEHIND_AFTER).unwrap();
        assert_eq!(names(cache), [".new-b", "a"]);
        shrink(cache, 0, made + LEFT_BEHIND_AFTER * 2).unwrap();
        assert_eq!(names(cache), ["a"]);
    }

    #[test]
    fn what_is_not_whole_is_not_taken() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("a");
        assert!(take(&folder, day(1)).unwrap().is_none());
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(KEPT_NAME), "").unwrap();
        assert!(take(&folder, day(1)).unwrap().is_none());
    }

    #[test]
    fn a_second_copy_changes_nothing() {
        let cache = tempfile::tempdir().unwrap();
        put(cache.path(), "a", 1);
        let first = take(&cache.path().join("a"), day(1)).unwrap().unwrap();
        put(cache.path(), "a", 2);
        assert_eq!(names(cache.path()), ["a"]);
        assert_eq!(fs::read(first.path()).unwrap(), [b'x'; 100]);
    }
}
