//! Cache of installers on disk, with eviction of the least recently used.
//!
//! A user holds a shared lock on the program's file: it is visible to other processes on the same folder, and released
//! by a crash. The modification time of the file is the time of its last use.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cluster_files::{is_same, is_stale};
use durable::sync_folder;
use uuid::Uuid;

use crate::elf::ElfHeader;
use crate::launch::{LIBRARIES, Launch};
use crate::registry::ScratchFolder;

/// File name of a cached program, in its own folder.
pub(crate) const INSTALLER_NAME: &str = "openshift-install";

/// Attempts to rename into the cache, in races with other processes.
const ATTEMPTS: u32 = 10;
/// Depth of a cached folder: the libraries, and the providers in them.
const MAX_DEPTH: u32 = 2;

/// An event of the installer cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallerCacheEvent {
    /// An installer was looked up.
    LookedUp {
        /// Major and minor version of its release; empty if it has none.
        minor_version: String,
        /// Whether the cache had it.
        is_hit: bool,
    },
    /// An installer was to make room.
    Evicted {
        /// False if it is in use.
        is_success: bool,
    },
}

/// A cached installer, protected from eviction while this lives.
#[derive(Debug)]
pub(crate) struct CachedInstaller {
    launch: Launch,
    /// Holds the shared lock.
    _in_use: File,
}

impl CachedInstaller {
    /// How to start the program.
    pub(crate) fn launch(&self) -> &Launch {
        &self.launch
    }
}

/// Looks up the program in `folder`, and sets its last use; none if it is missing or incomplete.
pub(crate) fn get(folder: &Path, now: SystemTime) -> io::Result<Option<CachedInstaller>> {
    let path = folder.join(INSTALLER_NAME);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome?,
    };
    file.lock_shared()?;
    // The program may have been evicted before the lock was taken.
    if !is_same(&path, &file.metadata()?) {
        return Ok(None);
    }
    open(path, file, now)
}

/// Checks the program in `file` and sets its last use; none if it or its loader is incomplete.
fn open(path: PathBuf, mut file: File, now: SystemTime) -> io::Result<Option<CachedInstaller>> {
    let Ok(program) = ElfHeader::read(&mut file)? else {
        return Ok(None);
    };
    // A multi-platform image has one digest for all machines, and a volume may move between them.
    if program.check_machine().is_err() {
        return Ok(None);
    }
    let launch = Launch::new(path, program.interpreter.as_deref());
    if !launch.is_complete() {
        return Ok(None);
    }
    // Cached by a version that ran programs as its own user.
    if file.metadata()?.mode() & 0o005 != 0o005 {
        make_readable(&launch.folder())?;
    }
    file.set_modified(now)?;
    Ok(Some(CachedInstaller {
        launch,
        _in_use: file,
    }))
}

/// Moves the program in `scratch`, with its libraries, to `folder`, and sets its last use.
///
/// Locked before the rename makes it visible, so that it cannot be evicted in between.
pub(crate) fn insert(
    scratch: &ScratchFolder,
    folder: &Path,
    now: SystemTime,
) -> io::Result<CachedInstaller> {
    let program = scratch.0.join(INSTALLER_NAME);
    remove_leftovers(&scratch.0)?;
    make_readable(&scratch.0)?;
    // Synced before the rename: after a crash, a visible folder is complete.
    sync_below(&scratch.0, 0)?;
    let file = File::open(&program)?;
    file.lock_shared()?;
    let cache = folder.parent().unwrap_or(folder);
    let mut attempts = 0;
    loop {
        match fs::rename(&scratch.0, folder) {
            Ok(()) => break,
            Err(error) if attempts == ATTEMPTS => return Err(error),
            Err(_) => attempts += 1,
        }
        // Another process was faster; its program has the same digest.
        if let Some(cached) = get(folder, now)? {
            return Ok(cached);
        }
        // Or the folder is incomplete: truncated by a crash, or cached by a version without libraries.
        clear(cache, folder)?;
    }
    sync_folder(cache)?;
    let cached = open(folder.join(INSTALLER_NAME), file, now)?;
    cached.ok_or_else(|| io::Error::other("the extracted installer is incomplete"))
}

/// Removes leftovers of the extraction beside the program and its libraries.
fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == INSTALLER_NAME || name == LIBRARIES {
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

/// Removes `folder`, unless its program is in use.
fn clear(cache: &Path, folder: &Path) -> io::Result<()> {
    if folder.join(INSTALLER_NAME).exists() {
        return evict(cache, folder).map(drop);
    }
    match fs::rename(folder, &removal_folder(cache).0) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A hidden name for a folder before its removal: the rename is atomic, the removal is not.
fn removal_folder(cache: &Path) -> ScratchFolder {
    ScratchFolder(cache.join(format!(".old-{}", Uuid::new_v4().simple())))
}

/// Makes the files in `folder` readable and executable by others: programs run as another user.
pub(crate) fn make_readable(folder: &Path) -> io::Result<()> {
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

/// Size of the files below `folder`, hard links counted once. Units: bytes.
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

/// A cached program.
struct CacheEntry {
    folder: PathBuf,
    size_bytes: u64,
    used_at: SystemTime,
}

impl CacheEntry {
    /// The program in `folder`; none if it is missing.
    fn of(folder: PathBuf) -> Option<Self> {
        let used_at = fs::metadata(folder.join(INSTALLER_NAME)).and_then(|found| found.modified());
        Some(Self {
            used_at: used_at.ok()?,
            size_bytes: size_bytes(&folder).ok()?,
            folder,
        })
    }
}

/// Evicts programs, least recently used first and none in use, until the cache fits `capacity_bytes` (0: no limit).
/// Removes stale folders of crashed processes.
pub(crate) fn shrink(
    cache: &Path,
    capacity_bytes: u64,
    now: SystemTime,
    on_event: fn(&InstallerCacheEvent),
) -> io::Result<()> {
    let mut entries = Vec::new();
    for found in fs::read_dir(cache)? {
        let found = found?;
        if found.file_name().as_encoded_bytes().starts_with(b".") {
            // Being inserted or removed, unless it is stale.
            if found.metadata().is_ok_and(|found| is_stale(&found, now)) {
                drop(ScratchFolder(found.path()));
            }
        } else {
            entries.extend(CacheEntry::of(found.path()));
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
        let is_evicted = evict(cache, &entry.folder)?;
        on_event(&InstallerCacheEvent::Evicted {
            is_success: is_evicted,
        });
        if is_evicted {
            total -= entry.size_bytes;
            tracing::info!(folder = %entry.folder.display(), size_bytes = entry.size_bytes, "cached installer evicted");
        }
    }
    Ok(())
}

/// Evicts the program in `folder`; false if it is in use.
fn evict(cache: &Path, folder: &Path) -> io::Result<bool> {
    let path = folder.join(INSTALLER_NAME);
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
    // Another process may have evicted or replaced it before the lock was taken.
    if !is_same(&path, &file.metadata()?) {
        return Ok(true);
    }
    let removed = removal_folder(cache);
    fs::rename(folder, &removed.0)?;
    Ok(true)
}

#[cfg(test)]
#[path = "installer_cache_tests.rs"]
mod tests;
