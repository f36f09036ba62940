//! Working folder of a program, of which only plain files and folders are kept.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

/// Maximum number of files and folders.
const LIMIT_ENTRIES: u64 = 100_000;
/// Maximum depth of folders.
const LIMIT_DEPTH: u32 = 32;

/// Remaining bytes and entries.
struct Budget {
    bytes: u64,
    entries: u64,
}

impl Budget {
    fn take(&mut self, metadata: &Metadata, depth: u32) -> io::Result<()> {
        let bytes = if metadata.is_file() {
            metadata.len()
        } else {
            0
        };
        let left = self
            .bytes
            .checked_sub(bytes)
            .zip(self.entries.checked_sub(1));
        let (bytes, entries) = left
            .filter(|_| depth < LIMIT_DEPTH)
            .ok_or(io::ErrorKind::FileTooLarge)?;
        (self.bytes, self.entries) = (bytes, entries);
        Ok(())
    }

    fn new(bytes: u64) -> Self {
        Self {
            bytes,
            entries: LIMIT_ENTRIES,
        }
    }
}

/// Whether it is a regular file or folder. Following a link made by the program would access files that the program
/// cannot.
fn is_plain(metadata: &Metadata) -> bool {
    metadata.is_dir() || metadata.is_file()
}

/// Copies the plain files and folders in `from` to `to`, owned by `owner`.
///
/// Errors: FileTooLarge – more than `limit_bytes`, by apparent size; those of the files.
pub(super) fn copy(from: &Path, to: &Path, owner: Option<u32>, limit_bytes: u64) -> io::Result<()> {
    copy_into(from, to, owner, &mut Budget::new(limit_bytes), 0)
}

fn copy_into(
    from: &Path,
    to: &Path,
    owner: Option<u32>,
    budget: &mut Budget,
    depth: u32,
) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let (entry, path) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        let metadata = fs::symlink_metadata(&entry)?;
        if !is_plain(&metadata) {
            continue;
        }
        budget.take(&metadata, depth)?;
        // Readable and writable for the owner, without setuid bits.
        let (mine, mode) = (0o600, metadata.mode() & 0o777);
        if metadata.is_dir() {
            fs::create_dir(&path)?;
            copy_into(&entry, &path, owner, budget, depth + 1)?;
            fs::set_permissions(&path, Permissions::from_mode(mode | 0o100 | mine))?;
        } else {
            fs::copy(&entry, &path)?;
            fs::set_permissions(&path, Permissions::from_mode(mode | mine))?;
        }
        if let Some(owner) = owner {
            lchown(&path, Some(owner), Some(owner))?;
        }
    }
    Ok(())
}

/// Removes the content of `folder`.
pub(super) fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes from `folder` everything except folders and regular files with one link.
///
/// Errors: FileTooLarge – the rest exceeds `limit_bytes`; those of the files.
pub(super) fn clean(folder: &Path, limit_bytes: u64) -> io::Result<()> {
    clean_below(folder, &mut Budget::new(limit_bytes), 0)
}

fn clean_below(folder: &Path, budget: &mut Budget, depth: u32) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_file() && metadata.nlink() > 1 || !is_plain(&metadata) {
            fs::remove_file(&path)?;
            continue;
        }
        budget.take(&metadata, depth)?;
        if metadata.is_dir() {
            clean_below(&path, budget, depth + 1)?;
        }
    }
    Ok(())
}

/// Disk usage of the readable part of `folder`. Units: bytes.
pub(super) fn size(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            // st_blocks counts 512 bytes on every file system.
            bytes += metadata.blocks() * 512;
            if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    bytes
}
