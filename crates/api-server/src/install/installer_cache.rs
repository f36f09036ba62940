//! The installers that are kept for the next preparation, and which of them give way.
//!
//! Who uses one holds a shared lock of its file, so that other processes on the same folder see that too and a
//! process that dies lets go of it. The time of its last use is its file's time of modification.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use durable::sync_folder;
use uuid::Uuid;

use super::elf::Program;
use super::launch::{LIBRARIES, Launch};
use super::registry::Scratch;
use crate::files::{is_left_behind, is_same};

/// What a kept program is called, in a folder of its own.
pub(super) const KEPT_NAME: &str = "openshift-install";

/// How often a place in the cache is tried; each time another process was there first and left again.
const TRIES: u32 = 10;
/// Folders below a kept one: the libraries, and the providers in it.
const MAX_DEPTH: u32 = 2;

/// An installer that stays while this lives.
#[derive(Debug)]
pub(super) struct Kept {
    launch: Launch,
    /// Holds the shared lock.
    _in_use: File,
}

impl Kept {
    /// The program, as it is started.
    pub(super) fn launch(&self) -> &Launch {
        &self.launch
    }
}

/// The program kept in `folder`, used at `now`; none when there is none that is whole.
pub(super) fn take(folder: &Path, now: SystemTime) -> io::Result<Option<Kept>> {
    let path = folder.join(KEPT_NAME);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome?,
    };
    file.lock_shared()?;
    // While this waited for the lock, the program may have given way.
    if !is_same(&path, &file.metadata()?) {
        return Ok(None);
    }
    used(path, file, now)
}

/// The program in `file`, at `path`, used at `now`; nothing when it or what it needs is not whole.
fn used(path: PathBuf, mut file: File, now: SystemTime) -> io::Result<Option<Kept>> {
    let Ok(program) = Program::read(&mut file)? else {
        return Ok(None);
    };
    // An image may be for many machines under one digest, and a volume may move between them.
    if program.check_machine().is_err() {
        return Ok(None);
    }
    let launch = Launch::new(path, program.interpreter.as_deref());
    if !launch.is_whole() {
        return Ok(None);
    }
    // Kept by a version that ran programs as its own user.
    if file.metadata()?.mode() & 0o005 != 0o005 {
        make_readable(&launch.folder())?;
    }
    file.set_modified(now)?;
    Ok(Some(Kept {
        launch,
        _in_use: file,
    }))
}

/// Moves the program in `scratch` and what is beside it to `folder`, whole and executable; it is used at `now`.
///
/// It is in use before it is to be seen, so that it cannot give way at once.
pub(super) fn keep(scratch: &Scratch, folder: &Path, now: SystemTime) -> io::Result<Kept> {
    let program = scratch.0.join(KEPT_NAME);
    remove_leftovers(&scratch.0)?;
    make_readable(&scratch.0)?;
    sync_below(&scratch.0, 0)?;
    let file = File::open(&program)?;
    file.lock_shared()?;
    let cache = folder.parent().unwrap_or(folder);
    let mut tries = 0;
    loop {
        match fs::rename(&scratch.0, folder) {
            Ok(()) => break,
            Err(error) if tries == TRIES => return Err(error),
            Err(_) => tries += 1,
        }
        // Another process on the same folder was faster; its program is the same, by digest.
        if let Some(kept) = take(folder, now)? {
            return Ok(kept);
        }
        // Or what is there is of no use: cut off by a crash, or kept when libraries were not.
        clear(cache, folder)?;
    }
    sync_folder(cache)?;
    let kept = used(folder.join(KEPT_NAME), file, now)?;
    kept.ok_or_else(|| io::Error::other("what was just put there is not whole"))
}

/// Removes what failed removals left beside the program and its libraries: it would be kept with them.
fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == KEPT_NAME || name == LIBRARIES {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes what is in `folder` unless it is a program that somebody uses.
fn clear(cache: &Path, folder: &Path) -> io::Result<()> {
    if folder.join(KEPT_NAME).exists() {
        return give_way(cache, folder).map(drop);
    }
    match fs::rename(folder, &leaving(cache).0) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A new name for a folder on its way out; gone at once for whoever looks, whatever becomes of removing it.
fn leaving(cache: &Path) -> Scratch {
    Scratch(cache.join(format!(".old-{}", Uuid::new_v4().simple())))
}

/// Lets other users read and execute what is in `folder`, as far as they reach it: programs run as one.
pub(super) fn make_readable(folder: &Path) -> io::Result<()> {
    make_readable_below(folder, 0)
}

fn make_readable_below(folder: &Path, depth: u32) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH {
            make_readable_below(&entry.path(), depth + 1)?;
        } else if kind.is_file() {
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o555))?;
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

/// Makes the files below `folder` durable.
fn sync_below(folder: &Path, depth: u32) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() && depth < MAX_DEPTH {
            sync_below(&entry.path(), depth + 1)?;
        } else if kind.is_file() {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder)
}

/// What the files below `folder` take, each counted once however many names it has.
fn size_bytes(folder: &Path) -> io::Result<u64> {
    let mut files = BTreeSet::new();
    collect(folder, 0, &mut files)?;
    Ok(files.into_iter().map(|(_, size_bytes)| size_bytes).sum())
}

fn collect(folder: &Path, depth: u32, files: &mut BTreeSet<(u64, u64)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        if found.is_dir() && depth < MAX_DEPTH {
            collect(&entry.path(), depth + 1, files)?;
        } else if found.is_file() {
            files.insert((found.ino(), found.len()));
        }
    }
    Ok(())
}

/// A kept program, as it was found.
struct Entry {
    folder: PathBuf,
    size_bytes: u64,
    used_at: SystemTime,
}

impl Entry {
    /// What is kept in `folder`; nothing when it is gone meanwhile, or no program.
    fn of(folder: PathBuf) -> Option<Self> {
        let used_at = fs::metadata(folder.join(KEPT_NAME)).and_then(|found| found.modified());
        Some(Self {
            used_at: used_at.ok()?,
            size_bytes: size_bytes(&folder).ok()?,
            folder,
        })
    }
}

/// Removes kept programs until they take no more than `capacity_bytes`: unused ones, the longest unused first; 0
/// means no limit. Removes what killed processes left behind, too.
pub(super) fn shrink(cache: &Path, capacity_bytes: u64, now: SystemTime) -> io::Result<()> {
    let mut entries = Vec::new();
    for found in fs::read_dir(cache)? {
        let found = found?;
        if found.file_name().as_encoded_bytes().starts_with(b".") {
            // On its way in or out, unless that was long ago.
            if found
                .metadata()
                .is_ok_and(|found| is_left_behind(&found, now))
            {
                drop(Scratch(found.path()));
            }
        } else {
            entries.extend(Entry::of(found.path()));
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

/// Removes the program in `folder` unless somebody uses it.
fn give_way(cache: &Path, folder: &Path) -> io::Result<bool> {
    let path = folder.join(KEPT_NAME);
    let file = match File::open(&path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        outcome => outcome?,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Another process may have removed this one before the lock was had, and even put a new one there.
    if !is_same(&path, &file.metadata()?) {
        return Ok(true);
    }
    let leaving = leaving(cache);
    fs::rename(folder, &leaving.0)?;
    Ok(true)
}

#[cfg(test)]
#[path = "installer_cache_tests.rs"]
mod tests;
