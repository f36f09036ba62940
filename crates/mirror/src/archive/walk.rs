//! The members of a file, found by its headers alone.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Seek, SeekFrom};

use model::Error;
use tar::{Archive, EntryType};

use super::file::{ArchiveFile, unreadable};
use super::header::{self, BLOCK_BYTES};
use super::read::truncated;

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
/// Blocking. Errors: Invalid – no tar, damaged, or without its end; NotFound; Internal – it cannot be read; those of its
/// web server; those of `each`.
pub(super) fn walk(
    file: &ArchiveFile,
    mut each: impl FnMut(FoundMember) -> Result<bool, Error>,
) -> Result<(), Error> {
    let length = file.size();
    let headers = Headers {
        archive: RefCell::new(file.seekable()?),
        budget: Cell::new(HEADERS_LIMIT_BYTES),
        failure: Cell::new(None),
    };
    let failed = |e: io::Error| headers.failure.take().unwrap_or_else(|| damaged(file, &e));
    refuse_gzip(file)?;
    let mut archive = Archive::new(&headers);
    let mut end = 0;
    for entry in archive.entries_with_seek().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        headers.budget.set(HEADERS_LIMIT_BYTES);
        let (offset, size) = (entry.raw_file_position(), entry.size());
        end = offset.saturating_add(header::padded(size));
        if end > length {
            return Err(truncated(file));
        }
        if let Some(found) = found(&entry, file)?
            && !each(found)?
        {
            return Ok(());
        }
    }
    check_end(file, end)
}

/// Calls `each` for every member with its content, in one pass over the file from front to back: a web server sends it as one
/// response. Content that `each` leaves is skipped.
///
/// Blocking. Errors: as [`walk`].
pub(super) fn stream(
    file: &ArchiveFile,
    mut each: impl FnMut(FoundMember, &mut dyn Read) -> io::Result<()>,
) -> Result<(), Error> {
    let length = file.size();
    let bytes = Headers {
        archive: RefCell::new(file.open(0, length)?),
        budget: Cell::new(HEADERS_LIMIT_BYTES),
        failure: Cell::new(None),
    };
    let failed = |e: io::Error| bytes.failure.take().unwrap_or_else(|| damaged(file, &e));
    refuse_gzip(file)?;
    let mut archive = Archive::new(&bytes);
    let mut end = 0;
    for entry in archive.entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        let (offset, size) = (entry.raw_file_position(), entry.size());
        end = offset.saturating_add(header::padded(size));
        if end > length {
            return Err(truncated(file));
        }
        // Content is not bounded, and is not kept.
        bytes.budget.set(u64::MAX);
        if let Some(found) = found(&entry, file)? {
            each(found, &mut entry).map_err(failed)?;
        }
        io::copy(&mut entry, &mut io::sink()).map_err(failed)?;
        bytes.budget.set(HEADERS_LIMIT_BYTES);
    }
    check_end(file, end)
}

/// Whether the block of zeros at the end of an archive is at `end`.
///
/// Errors: Invalid – it is not; others as [`walk`].
fn check_end(file: &ArchiveFile, end: u64) -> Result<(), Error> {
    let mut block = Vec::new();
    file.open(end, BLOCK_BYTES)?
        .read_to_end(&mut block)
        .map_err(|e| unreadable(file, e))?;
    let is_end = block.len() as u64 == BLOCK_BYTES && block.iter().all(|byte| *byte == 0);
    if is_end { Ok(()) } else { Err(truncated(file)) }
}

/// All members.
///
/// Blocking. Errors: as [`walk`].
pub(super) fn members(file: &ArchiveFile) -> Result<Vec<FoundMember>, Error> {
    let mut all = Vec::new();
    walk(file, |found| {
        all.push(found);
        Ok(true)
    })?;
    Ok(all)
}

/// Errors: Invalid – it is compressed; others as [`walk`].
fn refuse_gzip(file: &ArchiveFile) -> Result<(), Error> {
    let mut magic = Vec::new();
    file.open(0, GZIP.len() as u64)?
        .read_to_end(&mut magic)
        .map_err(|e| unreadable(file, e))?;
    if magic == GZIP {
        let reason = "it is compressed by gzip, archives are not: `gunzip` it first";
        return Err(Error::invalid(file.to_string(), reason));
    }
    Ok(())
}

fn found<R: Read>(
    entry: &tar::Entry<'_, R>,
    file: &ArchiveFile,
) -> Result<Option<FoundMember>, Error> {
    let is_folder = match entry.header().entry_type() {
        EntryType::Directory => true,
        EntryType::Regular | EntryType::Continuous | EntryType::Symlink => false,
        // Nothing that an archive of images has.
        _ => return Ok(None),
    };
    let wrong = |reason: &str| Error::invalid(file.to_string(), reason);
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

fn damaged(file: &ArchiveFile, error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return truncated(file);
    }
    let reason = format!("it is no tar archive, or damaged: {error}");
    Error::invalid(file.to_string(), reason)
}

/// A file whose headers are bounded. Content is skipped by seeking, or read where it is not.
struct Headers<A> {
    archive: RefCell<A>,
    /// Budget until the next member. Units: bytes.
    budget: Cell<u64>,
    /// The error of a web server, which the reader of the archive would wrap.
    failure: Cell<Option<Error>>,
}

impl<A: Read> Read for &Headers<A> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.archive.borrow_mut().read(buffer);
        let count = read.map_err(|e| match e.downcast::<Error>() {
            Ok(failure) => {
                self.failure.set(Some(failure));
                io::Error::other("the web server failed")
            }
            Err(e) => e,
        })?;
        let left = self.budget.get().checked_sub(count as u64);
        self.budget
            .set(left.ok_or_else(|| io::Error::other("the headers of a member are too long"))?);
        Ok(count)
    }
}

impl<A: Seek> Seek for &Headers<A> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.archive.borrow_mut().seek(to)
    }
}
