//! Entries of a folder, with their kinds, sizes and times.
//!
//! Names that begin with a dot are left out, and so are FIFOs, sockets and devices, which are not served.

use std::mem::MaybeUninit;
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, RawDir, SeekFrom, Stat, seek, statat};
use rustix::io::Errno;

use super::path::RequestPath;
use super::root::{OpenedFile, StaticRoot};

/// One call of the kernel fills it with some hundred entries. Units: bytes.
const BUFFER: usize = 8 * 1024;

/// A folder that is read by batches.
#[derive(Debug)]
pub(super) struct FolderReader {
    folder: OpenedFile,
    path: Arc<RequestPath>,
    root: StaticRoot,
}

/// Entries that have been read.
#[derive(Debug, Default)]
pub(super) struct FolderEntries {
    /// One after the other.
    names: Vec<u8>,
    entries: Vec<FolderEntry>,
}

/// An entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FolderEntry {
    start: u32,
    length: u16,
    pub(super) is_folder: bool,
    /// Units: bytes; none for folders, and for links to nothing that is served.
    pub(super) size: Option<u64>,
    /// Units: seconds since 1970; none for links to nothing that is served.
    pub(super) modified: Option<i64>,
}

impl FolderEntries {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn all(&self) -> &[FolderEntry] {
        &self.entries
    }

    pub(super) fn name(&self, entry: &FolderEntry) -> &[u8] {
        let start = entry.start as usize;
        &self.names[start..start + usize::from(entry.length)]
    }

    /// The entries in an order of names and entries, folders first.
    pub(super) fn sort(
        &mut self,
        order: impl Fn((&[u8], &FolderEntry), (&[u8], &FolderEntry)) -> std::cmp::Ordering,
    ) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|one, other| {
            let folders_first = other.is_folder.cmp(&one.is_folder);
            folders_first.then_with(|| order((self.name(one), one), (self.name(other), other)))
        });
        self.entries = entries;
    }

    fn push(&mut self, name: &[u8], stat: Option<&Stat>) {
        // Neither is ever reached: batches are bounded, and so are names.
        let (Ok(start), Ok(length)) = (u32::try_from(self.names.len()), u16::try_from(name.len()))
        else {
            return;
        };
        self.names.extend_from_slice(name);
        let is_folder = stat.is_some_and(|stat| kind(stat) == FileType::Directory);
        let size = stat.filter(|_| !is_folder).map(|stat| stat.st_size);
        self.entries.push(FolderEntry {
            start,
            length,
            is_folder,
            size: size.and_then(|size| u64::try_from(size).ok()),
            modified: stat.map(|stat| stat.st_mtime),
        });
    }
}

impl FolderReader {
    pub(super) fn new(folder: OpenedFile, path: Arc<RequestPath>, root: StaticRoot) -> Self {
        Self { folder, path, root }
    }

    /// Reads the next batch. False at the end. It blocks.
    pub(super) fn read(&mut self, entries: &mut FolderEntries) -> rustix::io::Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut batch = RawDir::new(&self.folder.file, &mut buffer);
        loop {
            let Some(entry) = batch.next() else {
                return Ok(false);
            };
            let entry = entry?;
            let name = entry.file_name();
            if !name.to_bytes().starts_with(b".") {
                match self.stat(name, entry.file_type()) {
                    Ok(Some(stat)) if !is_served(&stat) => {}
                    Ok(stat) => entries.push(name.to_bytes(), stat.as_ref()),
                    // Removed since.
                    Err(Errno::NOENT) => {}
                    Err(error) => return Err(error),
                }
            }
            if batch.is_buffer_empty() {
                return Ok(true);
            }
        }
    }

    /// Begins again.
    pub(super) fn rewind(&mut self) -> rustix::io::Result<()> {
        seek(&self.folder.file, SeekFrom::Start(0)).map(drop)
    }

    /// Metadata of an entry, or of the target of a link; none where that is missing or outside.
    fn stat(
        &self,
        name: &std::ffi::CStr,
        kind_of_entry: FileType,
    ) -> rustix::io::Result<Option<Stat>> {
        if kind_of_entry != FileType::Symlink {
            let stat = statat(&self.folder.file, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if kind(&stat) != FileType::Symlink {
                return Ok(Some(stat));
            }
        }
        let target = self.path.child(name.to_bytes());
        Ok(self.root.target(target.relative()))
    }
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn is_served(stat: &Stat) -> bool {
    matches!(kind(stat), FileType::RegularFile | FileType::Directory)
}
