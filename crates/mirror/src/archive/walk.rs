//! The members of a file, found by its headers alone.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::rc::Rc;

use model::Error;
use tar::{Archive, EntryType};

use super::header::{self, BLOCK_BYTES};
use super::read::{FilePlace, truncated, unreadable};
use super::set::locate::SetFile;

/// Headers of one member, long names and attributes included, which are read into memory. Units: bytes.
const HEADERS_LIMIT_BYTES: u64 = 1 << 20;
/// Magic number of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A member that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundMember {
    /// Relative; that of a folder ends with a slash.
    pub(super) path: String,
    /// Start of the content in the archive. Units: bytes.
    pub(super) offset: u64,
    /// Size of the content. Units: bytes.
    pub(super) size: u64,
    /// Target of a symbolic link.
    pub(super) target: Option<String>,
}

/// Calls `each` for every member until it answers false. Only after the last one is known whether the file has its end.
///
/// Blocking. Errors: Invalid – no tar, damaged, or without its end; NotFound; Internal – it cannot be read; those of
/// `each`.
pub(super) fn walk(
    set_file: &SetFile,
    mut each: impl FnMut(FoundMember) -> Result<bool, Error>,
) -> Result<(), Error> {
    let path = &*set_file.path;
    let place = &set_file.place;
    let file = File::open(&place.file).map_err(|e| unreadable(path, e))?;
    refuse_gzip(path, &file, place.offset)?;
    let budget = Rc::new(Cell::new(HEADERS_LIMIT_BYTES));
    let mut archive = Archive::new(Headers {
        file: &file,
        start: place.offset,
        size: place.size,
        at: 0,
        budget: budget.clone(),
    });
    let mut end = 0;
    for entry in archive.entries_with_seek().map_err(|e| damaged(path, &e))? {
        let entry = entry.map_err(|e| damaged(path, &e))?;
        budget.set(HEADERS_LIMIT_BYTES);
        let (offset, size) = (entry.raw_file_position(), entry.size());
        end = offset.saturating_add(header::padded(size));
        if end > place.size {
            return Err(truncated(path));
        }
        if let Some(found) = found(&entry, path)?
            && !each(found)?
        {
            return Ok(());
        }
    }
    let mut block = Vec::new();
    let read = FilePlace {
        offset: place.offset + end,
        size: (place.size - end).min(BLOCK_BYTES),
        ..place.clone()
    }
    .open()?
    .read_to_end(&mut block);
    read.map_err(|e| unreadable(path, e))?;
    let is_end = block.len() as u64 == BLOCK_BYTES && block.iter().all(|byte| *byte == 0);
    if is_end { Ok(()) } else { Err(truncated(path)) }
}

/// All members.
///
/// Blocking. Errors: as [`walk`].
pub(super) fn members(file: &SetFile) -> Result<Vec<FoundMember>, Error> {
    let mut all = Vec::new();
    walk(file, |found| {
        all.push(found);
        Ok(true)
    })?;
    Ok(all)
}

fn refuse_gzip(path: &Path, file: &File, start: u64) -> Result<(), Error> {
    let mut magic = [0; 2];
    if file.read_exact_at(&mut magic, start).is_ok() && magic == GZIP {
        let reason = "it is compressed by gzip, archives are not: `gunzip` it first";
        return Err(Error::invalid(path.display().to_string(), reason));
    }
    Ok(())
}

fn found<R: Read>(entry: &tar::Entry<'_, R>, path: &Path) -> Result<Option<FoundMember>, Error> {
    let is_folder = match entry.header().entry_type() {
        EntryType::Directory => true,
        EntryType::Regular | EntryType::Continuous | EntryType::Symlink => false,
        // Nothing that an archive of images has.
        _ => return Ok(None),
    };
    let wrong = |reason: &str| Error::invalid(path.display().to_string(), reason);
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).map_err(|_| wrong("a member's name is no text"))
    };
    let named = text(&entry.path_bytes())?;
    let parts: Vec<&str> = named
        .split('/')
        .filter(|part| !["", "."].contains(part))
        .collect();
    if parts.contains(&"..") || named.starts_with('/') {
        return Err(wrong(&format!("member {named:?} leads out of the archive")));
    }
    let mut member = parts.join("/");
    if is_folder {
        member.push('/');
    }
    let target = entry
        .link_name_bytes()
        .map(|bytes| text(&bytes))
        .transpose()?;
    Ok(Some(FoundMember {
        path: member,
        offset: entry.raw_file_position(),
        size: entry.size(),
        target: target.filter(|_| entry.header().entry_type() == EntryType::Symlink),
    }))
}

fn damaged(path: &Path, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return truncated(path);
    }
    let reason = format!("it is no tar archive, or damaged: {error}");
    Error::invalid(path.display().to_string(), reason)
}

/// A file of which only headers are read: content is skipped by seeking.
struct Headers<'a> {
    file: &'a File,
    /// First byte of the archive in the file.
    start: u64,
    /// Units: bytes.
    size: u64,
    /// Relative to the start.
    at: u64,
    /// Budget until the next member. Units: bytes.
    budget: Rc<Cell<u64>>,
}

impl Read for Headers<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let length = buffer.len().min(left);
        let count = self
            .file
            .read_at(&mut buffer[..length], self.start.saturating_add(self.at))?;
        self.at += count as u64;
        let left = self.budget.get().checked_sub(count as u64);
        self.budget
            .set(left.ok_or_else(|| io::Error::other("the headers of a member are too long"))?);
        Ok(count)
    }
}

impl Seek for Headers<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(change) => self.at.checked_add_signed(change),
            SeekFrom::End(change) => self.size.checked_add_signed(change),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
