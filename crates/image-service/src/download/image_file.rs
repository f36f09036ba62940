//! The file that a download writes, within its bounds, and its progress.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, TryStreamExt as _};
use tokio::fs::{File, OpenOptions};
use tokio::io::AsyncWriteExt as _;

use super::error::DownloadError;

/// Bytes of one write: the network delivers a few kilobytes at a time, and each write is a task on the blocking pool.
const PIECE: usize = 1 << 20;
/// Largest reserve, as a fraction of its file system.
const LARGEST_PART: u64 = 16;

/// Bounds of the file of a download.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DownloadLimits {
    /// Longest image. Units: bytes.
    pub(crate) image_bytes: u64,
    /// Free space that stays on the file system. Units: bytes.
    pub(crate) reserve_bytes: u64,
}

/// Progress of a download. Units: bytes.
#[derive(Debug, Default)]
pub(crate) struct DownloadProgress {
    received: AtomicU64,
    /// Zero when the server does not announce it.
    announced: AtomicU64,
}

impl DownloadProgress {
    fn begin(&self, received: u64, announced: Option<u64>) {
        self.received.store(received, Relaxed);
        self.announced.store(announced.unwrap_or(0), Relaxed);
    }

    /// Bytes in the file.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }
}

/// As in `: 512 of 1024 MiB`; empty before the first byte.
impl fmt::Display for DownloadProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes >> 20;
        let (received, announced) = (self.received(), self.announced.load(Relaxed));
        match (received, announced) {
            (0, 0) => Ok(()),
            (received, 0) => write!(f, ": {} MiB", mebibytes(received)),
            (received, all) => write!(f, ": {} of {} MiB", mebibytes(received), mebibytes(all)),
        }
    }
}

/// The target of a download.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImageTarget<'a> {
    pub(super) path: &'a Path,
    pub(super) progress: &'a DownloadProgress,
    pub(super) limits: DownloadLimits,
}

/// The open file of a download.
#[derive(Debug)]
pub(super) struct ImageFile<'a> {
    target: ImageTarget<'a>,
    file: File,
}

impl<'a> ImageTarget<'a> {
    /// Opens the file after `held` bytes of an earlier attempt, which stay. `announced` is the length of the whole image.
    ///
    /// Errors: TooLarge; NoSpace – for the announced length; Disk.
    pub(super) async fn open(
        self,
        held: u64,
        announced: Option<u64>,
    ) -> Result<ImageFile<'a>, DownloadError> {
        let length = announced.unwrap_or(held);
        if length > self.limits.image_bytes {
            return Err(self.too_large());
        }
        let mut options = OpenOptions::new();
        options.create(true).write(true);
        options.truncate(held == 0).append(held > 0);
        let file = options.open(self.path).await;
        let file = file.map_err(|error| self.disk(error))?;
        // Once the bytes of an image that is not resumed are gone.
        self.check_space(length.saturating_sub(held)).await?;
        self.progress.begin(held, announced);
        Ok(ImageFile { target: self, file })
    }

    /// Checks that `more` bytes leave the reserve free. A reserve of a small file system is a part of it.
    async fn check_space(&self, more: u64) -> Result<(), DownloadError> {
        let path = self.path.to_owned();
        let found = tokio::task::spawn_blocking(move || rustix::fs::statvfs(&path)).await;
        let found = found.map_err(|error| self.disk(io::Error::other(error)))?;
        let found = found.map_err(|error| self.disk(error.into()))?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        let reserve = self.limits.reserve_bytes;
        let reserve = reserve.min(bytes(found.f_blocks) / LARGEST_PART);
        match bytes(found.f_bavail).checked_sub(more) {
            Some(free) if free >= reserve => Ok(()),
            free => Err(DownloadError::NoSpace {
                path: self.path.display().to_string(),
                free: free.unwrap_or(0),
                reserve,
            }),
        }
    }

    fn too_large(&self) -> DownloadError {
        let limit = self.limits.image_bytes;
        DownloadError::TooLarge { limit }
    }

    pub(super) fn disk(&self, source: io::Error) -> DownloadError {
        let path = self.path.display().to_string();
        DownloadError::Disk { path, source }
    }
}

impl ImageFile<'_> {
    /// Writes the body to the file. The progress counts the bytes in the file, also after an error.
    ///
    /// Errors: those of `chunks`; TooLarge; NoSpace; Disk.
    pub(super) async fn receive(
        &mut self,
        chunks: impl Stream<Item = Result<Bytes, DownloadError>>,
    ) -> Result<(), DownloadError> {
        let mut chunks = pin!(chunks);
        let mut pending = BytesMut::with_capacity(PIECE);
        let outcome = loop {
            match chunks.try_next().await {
                Ok(Some(chunk)) => pending.extend_from_slice(&chunk),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
            while pending.len() >= PIECE {
                self.write(&pending.split_to(PIECE)).await?;
            }
        };
        // Also after an error: the next attempt resumes from there.
        self.write(&pending).await?;
        let flushed = self.file.flush().await;
        flushed.map_err(|error| self.target.disk(error))?;
        outcome
    }

    async fn write(&mut self, piece: &[u8]) -> Result<(), DownloadError> {
        let (target, length) = (self.target, piece.len() as u64);
        if target.progress.received() + length > target.limits.image_bytes {
            return Err(target.too_large());
        }
        // Others write to the same file system meanwhile.
        target.check_space(length).await?;
        let written = self.file.write_all(piece).await;
        written.map_err(|error| target.disk(error))?;
        target.progress.received.fetch_add(length, Relaxed);
        Ok(())
    }

    /// Syncs it before the caller renames it: after a crash, a file under its final name is whole.
    ///
    /// Errors: Disk.
    pub(super) async fn sync(self) -> Result<(), DownloadError> {
        let synced = self.file.sync_all().await;
        synced.map_err(|error| self.target.disk(error))
    }
}
