//! The file that a download writes, within its bounds, and its progress.

use std::fmt;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};

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

    /// Bytes of an earlier attempt that may be of an image of `size` bytes.
    pub(super) async fn held(&self, size: u64) -> u64 {
        let found = tokio::fs::metadata(self.path).await;
        let held = found.map_or(0, |metadata| metadata.len());
        if held > size { 0 } else { held }
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
    /// Writes a body that begins with the first byte of the image. Bytes that the file holds are compared, and written again
    /// from the first difference on.
    ///
    /// Errors: as [`Self::receive`].
    pub(super) async fn receive_again(
        &mut self,
        chunks: impl Stream<Item = Result<Bytes, DownloadError>>,
    ) -> Result<(), DownloadError> {
        let mut chunks = pin!(chunks);
        let rest = self.compare(&mut chunks).await?;
        let rest = stream::iter(rest.map(Ok));
        self.receive(rest.chain(chunks)).await
    }

    /// Compares the held bytes with the first chunks, and truncates the file at the first difference. Returns the part of the
    /// last chunk that the file does not have.
    async fn compare(
        &mut self,
        chunks: &mut (impl Stream<Item = Result<Bytes, DownloadError>> + Unpin),
    ) -> Result<Option<Bytes>, DownloadError> {
        let (target, mut left) = (self.target, self.target.progress.received());
        if left == 0 {
            return Ok(None);
        }
        let disk = |error| target.disk(error);
        let mut held =
            BufReader::with_capacity(PIECE, File::open(target.path).await.map_err(disk)?);
        let mut buffer = Vec::new();
        while let Some(chunk) = chunks.try_next().await? {
            let length = usize::try_from(left).map_or(chunk.len(), |left| left.min(chunk.len()));
            buffer.resize(length, 0);
            held.read_exact(&mut buffer).await.map_err(disk)?;
            let equal = common_prefix(&buffer, &chunk[..length]);
            left -= equal as u64;
            if equal < length {
                let length = target.progress.received() - left;
                self.file.set_len(length).await.map_err(disk)?;
                target.progress.received.store(length, Relaxed);
            }
            if equal < chunk.len() || left == 0 {
                return Ok(Some(chunk.slice(equal..)));
            }
        }
        Ok(None)
    }

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

/// Length of the equal start of two slices of one length.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    // Compared as a whole first, which is several times faster.
    if one == other {
        return one.len();
    }
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Larger than one piece, and without repetition.
    fn image() -> Bytes {
        let bytes = (0..700_000_u32).flat_map(u32::to_le_bytes);
        bytes.collect::<Vec<u8>>().into()
    }

    fn chunks(image: &Bytes) -> Vec<Bytes> {
        let starts = (0..image.len()).step_by(64 << 10);
        starts
            .map(|start| image.slice(start..image.len().min(start + (64 << 10))))
            .collect()
    }

    async fn received(
        path: &Path,
        progress: &DownloadProgress,
        chunks: impl Stream<Item = Result<Bytes, DownloadError>>,
    ) -> Result<(), DownloadError> {
        let target = ImageTarget {
            path,
            progress,
            limits: DownloadLimits {
                image_bytes: 1 << 30,
                reserve_bytes: 0,
            },
        };
        let size = image().len() as u64;
        let mut file = target.open(target.held(size).await, Some(size)).await?;
        file.receive_again(chunks).await
    }

    #[tokio::test]
    async fn equal_bytes_are_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("partial");
        let image = image();
        std::fs::write(&path, &image[..200_000]).unwrap();
        let progress = DownloadProgress::default();
        // Once the first chunk is compared, its bytes in the file change: written again, they would be those of the image.
        let all = chunks(&image).into_iter().enumerate();
        let all = stream::iter(all).map(|(index, chunk)| {
            if index == 3 {
                use std::os::unix::fs::FileExt as _;
                let file = std::fs::File::options().write(true).open(&path).unwrap();
                file.write_all_at(b"mark", 100).unwrap();
            }
            Ok(chunk)
        });
        received(&path, &progress, all).await.unwrap();
        let found = std::fs::read(&path).unwrap();
        assert_eq!(&found[100..104], b"mark");
        assert!(found[..100] == image[..100] && found[104..] == image[104..]);
        assert_eq!(progress.received(), image.len() as u64);
    }

    #[tokio::test]
    async fn a_file_is_kept_up_to_the_first_difference() {
        let image = image();
        for held in [
            [&image[..100_000], &[1; 7]].concat(),
            vec![1; 50],
            image[..65_536].to_vec(),
            image.to_vec(),
            vec![0; image.len() + 1],
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("partial");
            std::fs::write(&path, held).unwrap();
            let progress = DownloadProgress::default();
            let all = stream::iter(chunks(&image).into_iter().map(Ok));
            received(&path, &progress, all).await.unwrap();
            assert!(std::fs::read(&path).unwrap() == image);
            assert_eq!(progress.received(), image.len() as u64);
        }
    }

    #[tokio::test]
    async fn bytes_before_an_error_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("partial");
        let (image, progress) = (image(), DownloadProgress::default());
        let mut first: Vec<_> = chunks(&image).into_iter().take(20).map(Ok).collect();
        first.push(Err(DownloadError::Artifact("broken off".to_owned())));
        let broken = received(&path, &progress, stream::iter(first)).await;
        broken.unwrap_err();
        assert_eq!(progress.received(), 20 * (64 << 10));
        assert!(std::fs::read(&path).unwrap() == image[..20 * (64 << 10)]);
    }
}
