//! A program's working folder, of which only plain files and folders count.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::Path;

/// Files and folders that a program may leave.
const LIMIT_ENTRIES: u64 = 100_000;
/// Folders within each other that a program may leave.
const LIMIT_DEPTH: u32 = 32;

/// What is left to copy.
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

/// Whether it is a file with one name, or a folder. Whoever follows a link that a program has made reads or writes
/// where the program may not.
fn is_plain(metadata: &Metadata) -> bool {
    metadata.is_dir() || metadata.is_file()
}

/// Copies the files and folders in `from` to the folder `to`, and gives them to `owner`.
///
/// Errors: FileTooLarge – more than `limit_bytes`, sparse files as long as they say they are; those of the files.
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
        // The owner can read and write it, and nothing is setuid.
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

/// Removes what is in `folder`.
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

/// Removes from `folder` what is neither a file with one name nor a folder.
///
/// Errors: FileTooLarge – the rest is more than `limit_bytes`; those of the files.
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

/// What is in `folder`, as far as it can be read. Units: bytes.
pub(super) fn size(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            // Units of st_blocks: 512 bytes, whatever the file system's are.
            bytes += metadata.blocks() * 512;
            if metadata.is_dir() {
                open.push(entry.path());
            }
        }
    }
    bytes
}
