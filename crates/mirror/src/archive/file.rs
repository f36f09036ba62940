//! A file of a set: of this machine, or of a web server.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Take};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf as _, Bytes};
use model::Error;
use net::web::{self, WebFile, WebRange};
use oci_client::client::{BlobSource, WebPart};
use tokio::runtime::Handle;
use url::Url;

/// Bytes that are requested at least, for the small members after a small one. Units: bytes.
const WINDOW_BYTES: u64 = 32 * 1024;

/// A file of a set.
#[derive(Debug, Clone)]
pub enum ArchiveFile {
    Local(LocalArchive),
    Web(WebArchive),
}

/// A file of this machine, or a member of a bundle, which is read at its place in it.
#[derive(Debug, Clone)]
pub struct LocalArchive {
    /// Its path; that of a member is below the bundle's.
    pub path: Arc<Path>,
    /// The file with its bytes.
    pub file: Arc<Path>,
    /// Its first byte in that file.
    pub start: u64,
    /// Units: bytes.
    pub size: u64,
}

/// A file of a web server. Clones, and the other files of its set, share the last small read.
#[derive(Debug, Clone)]
pub struct WebArchive {
    file: Arc<WebFile>,
    name: Arc<str>,
    /// Drives the requests of blocking reads.
    runtime: Handle,
    recent: RecentRead,
}

/// The last small read of a set.
pub(super) type RecentRead = Arc<Mutex<Option<ReadWindow>>>;

/// Bytes of a file.
#[derive(Debug)]
pub(super) struct ReadWindow {
    url: Url,
    /// Units: bytes.
    offset: u64,
    bytes: Bytes,
}

impl ArchiveFile {
    /// Its name, without folders.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Local(local) => local.path.file_name()?.to_str(),
            Self::Web(file) => Some(&file.name),
        }
    }

    /// Its place, if it is of this machine.
    pub fn local(&self) -> Option<&LocalArchive> {
        match self {
            Self::Local(local) => Some(local),
            Self::Web(_) => None,
        }
    }

    /// Units: bytes.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Local(local) => local.size,
            Self::Web(file) => file.file.size(),
        }
    }

    /// A part of it, to be read from front to back.
    ///
    /// Blocking. Errors: NotFound; Internal – it cannot be read; those of the web server.
    pub(super) fn open(&self, offset: u64, size: u64) -> Result<ArchiveReader, Error> {
        match self {
            Self::Local(local) => {
                let opened = || {
                    let mut file = File::open(&local.file)?;
                    file.seek(SeekFrom::Start(local.start.saturating_add(offset)))?;
                    Ok(file.take(size))
                };
                let opened = opened().map_err(|e| unreadable(self, e));
                opened.map(ArchiveReader::Local)
            }
            Self::Web(file) if size <= WINDOW_BYTES => {
                let bytes = file.piece(offset, size)?;
                Ok(ArchiveReader::Memory(Cursor::new(bytes)))
            }
            Self::Web(file) => Ok(ArchiveReader::Web(Box::new(file.reader(offset, size)))),
        }
    }

    /// All of it, to be read at any positions.
    ///
    /// Blocking. Errors: as [`Self::open`].
    pub(super) fn seekable(&self) -> Result<SeekableArchive, Error> {
        match self {
            Self::Local(local) => {
                let file = File::open(&local.file).map_err(|e| unreadable(self, e));
                file.map(|file| SeekableArchive::Local(local.clone(), file, 0))
            }
            Self::Web(file) => Ok(SeekableArchive::Web(file.clone(), 0)),
        }
    }

    /// A part of it, to be sent.
    pub(super) fn source(&self, offset: u64, size: u64) -> BlobSource {
        match self {
            Self::Local(local) => BlobSource::Part {
                path: Arc::clone(&local.file),
                offset: local.start.saturating_add(offset),
                size,
            },
            Self::Web(file) => BlobSource::WebPart(Box::new(WebPart {
                file: WebFile::clone(&file.file),
                offset,
                size,
            })),
        }
    }
}

impl LocalArchive {
    /// A whole file.
    ///
    /// Errors: NotFound; Internal – its metadata cannot be read.
    pub(super) fn whole(path: &Path) -> Result<Self, Error> {
        let metadata = path.metadata();
        let metadata = metadata.map_err(|e| unreadable(path.display(), e))?;
        let path = Arc::<Path>::from(path);
        Ok(Self {
            file: Arc::clone(&path),
            path,
            start: 0,
            size: metadata.len(),
        })
    }

    /// A member of it, an archive again.
    pub(super) fn member(&self, name: &str, offset: u64, size: u64) -> Self {
        Self {
            path: self.path.join(name).into(),
            file: Arc::clone(&self.file),
            start: self.start.saturating_add(offset),
            size,
        }
    }
}

impl fmt::Display for ArchiveFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(local) => local.path.display().fmt(f),
            Self::Web(file) => f.write_str(&web::shown(file.file.url())),
        }
    }
}

impl PartialEq for ArchiveFile {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Local(one), Self::Local(other)) => {
                (&one.path, one.start) == (&other.path, other.start)
            }
            (Self::Web(one), Self::Web(other)) => one.file.url() == other.file.url(),
            (Self::Local(_), Self::Web(_)) | (Self::Web(_), Self::Local(_)) => false,
        }
    }
}

impl Eq for ArchiveFile {}

impl WebArchive {
    pub(super) fn new(file: WebFile, name: &str, runtime: &Handle, recent: &RecentRead) -> Self {
        Self {
            file: Arc::new(file),
            name: name.into(),
            runtime: runtime.clone(),
            recent: Arc::clone(recent),
        }
    }

    fn reader(&self, offset: u64, size: u64) -> WebReader {
        WebReader {
            range: self.file.range(offset, size),
            chunk: Bytes::new(),
            runtime: self.runtime.clone(),
        }
    }

    /// A small part, fewer bytes at the end of the file. Small members are next to each other: one request has many.
    fn piece(&self, offset: u64, size: u64) -> Result<Bytes, Error> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let end = offset.saturating_add(size).min(self.file.size());
        let known = recent.as_ref().filter(|it| it.url == *self.file.url());
        if let Some(known) = known.and_then(|it| it.part(offset, end)) {
            return Ok(known);
        }
        let mut bytes = Vec::new();
        let mut reader = self.reader(offset, size.max(WINDOW_BYTES));
        let read = reader.read_to_end(&mut bytes);
        read.map_err(|e| unreadable(web::shown(self.file.url()), e))?;
        let window = ReadWindow {
            url: self.file.url().clone(),
            offset,
            bytes: bytes.into(),
        };
        let part = window.part(offset, end).unwrap_or_default();
        *recent = Some(window);
        Ok(part)
    }
}

impl ReadWindow {
    fn part(&self, offset: u64, end: u64) -> Option<Bytes> {
        let at = |position: u64| usize::try_from(position.checked_sub(self.offset)?).ok();
        let (start, end) = (at(offset)?, at(end)?);
        (start <= end && end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }
}

/// A part of a file, which is read from front to back.
#[derive(Debug)]
pub enum ArchiveReader {
    Local(Take<File>),
    Memory(Cursor<Bytes>),
    Web(Box<WebReader>),
}

impl Read for ArchiveReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(file) => file.read(buffer),
            Self::Memory(bytes) => bytes.read(buffer),
            Self::Web(file) => file.read(buffer),
        }
    }
}

/// A range of a web server's file, which blocking code reads. Its errors hold those of the domain.
#[derive(Debug)]
pub struct WebReader {
    range: WebRange,
    /// Received, and not read yet.
    chunk: Bytes,
    runtime: Handle,
}

impl Read for WebReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() {
            let next = self.runtime.block_on(self.range.next());
            self.chunk = next.map_err(io::Error::other)?.unwrap_or_default();
        }
        let count = buffer.len().min(self.chunk.len());
        self.chunk.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

/// A file that is read at any positions, little at each.
#[derive(Debug)]
pub(super) enum SeekableArchive {
    /// With the position. Units: bytes.
    Local(LocalArchive, File, u64),
    Web(WebArchive, u64),
}

impl Read for SeekableArchive {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Local(local, file, position) => {
                let left = local.size.saturating_sub(*position);
                let length = buffer
                    .len()
                    .min(usize::try_from(left).unwrap_or(usize::MAX));
                let offset = local.start.saturating_add(*position);
                let count = file.read_at(&mut buffer[..length], offset)?;
                *position += count as u64;
                Ok(count)
            }
            Self::Web(file, position) => {
                let size = (buffer.len() as u64).min(WINDOW_BYTES);
                let piece = file.piece(*position, size).map_err(io::Error::other)?;
                buffer[..piece.len()].copy_from_slice(&piece);
                *position += piece.len() as u64;
                Ok(piece.len())
            }
        }
    }
}

impl Seek for SeekableArchive {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (size, position) = match self {
            Self::Local(local, _, position) => (local.size, position),
            Self::Web(file, position) => (file.file.size(), position),
        };
        let next = match to {
            SeekFrom::Start(next) => Some(next),
            SeekFrom::Current(by) => position.checked_add_signed(by),
            SeekFrom::End(by) => size.checked_add_signed(by),
        };
        *position = next.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(*position)
    }
}

pub(super) fn unreadable(file: impl Display, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::not_found("archive", file);
    }
    failed(format!("reading {file}"), error)
}

/// The error of a web server inside of `error`, or else an internal one.
pub(crate) fn failed(doing: String, error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::internal(doing, error),
    }
}
