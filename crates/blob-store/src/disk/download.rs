//! Downloads: bytes of a blob from the disk to the network, with one chunk of read-ahead.
//!
//! The first read of a blob verifies its digest before the last chunk is sent, so that no client receives all of a
//! damaged blob.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use tokio::task::{JoinHandle, spawn_blocking};

use super::inner::DiskInner;
use oci::{Algorithm, Digest, Hasher};

/// Units: bytes. Large enough that switching threads does not count; a download holds two at most.
const PIECE_BYTES: u64 = 256 * 1024;

/// A range of a file, in chunks.
#[derive(Debug)]
pub struct Pieces {
    /// `None`: all bytes are in memory.
    file: Option<Arc<File>>,
    /// Units: bytes. Not requested yet.
    left: u64,
    /// Moves along with the reads.
    check: Option<DigestCheck>,
    next: Next,
}

#[derive(Debug)]
enum Next {
    Ready(Bytes),
    Reading(JoinHandle<io::Result<(Bytes, Option<DigestCheck>)>>),
    End,
}

/// Verification of content while it is read.
#[derive(Debug)]
pub(super) struct DigestCheck {
    inner: Arc<DiskInner>,
    canonical: Digest,
    hasher: Hasher,
}

impl DigestCheck {
    pub(super) fn new(inner: &Arc<DiskInner>, canonical: &Digest) -> Self {
        Self {
            inner: Arc::clone(inner),
            canonical: canonical.clone(),
            hasher: Hasher::new(Algorithm::Sha256),
        }
    }

    /// Errors: InvalidData – the digest differs after the last chunk.
    fn pass(mut self, piece: &[u8], is_last: bool) -> io::Result<Self> {
        self.hasher.update(piece);
        if is_last && self.hasher.clone().finish() != self.canonical {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if is_last {
            self.inner.shared.verified.mark(&self.canonical);
        }
        Ok(self)
    }
}

impl Pieces {
    /// `length` bytes of a file from `first` on; reads the first chunk. Blocks.
    pub(super) fn open(
        mut file: File,
        first: u64,
        length: u64,
        check: Option<DigestCheck>,
    ) -> io::Result<Self> {
        if first > 0 {
            file.seek(SeekFrom::Start(first))?;
        }
        let now = length.min(PIECE_BYTES);
        let (piece, check) = read(&file, now, check, now == length)?;
        Ok(Self {
            left: length - now,
            file: Some(Arc::new(file)),
            check,
            next: Next::Ready(piece),
        })
    }

    /// Bytes in memory.
    pub(super) fn in_memory(bytes: Bytes) -> Self {
        Self {
            file: None,
            left: 0,
            check: None,
            next: Next::Ready(bytes),
        }
    }

    /// All bytes, if they fit in one chunk that is not taken yet.
    pub(super) fn whole(&self) -> Option<&Bytes> {
        match &self.next {
            Next::Ready(bytes) if self.left == 0 => Some(bytes),
            _ => None,
        }
    }

    fn read_ahead(&mut self) -> Next {
        let (Some(file), length @ 1..) = (self.file.clone(), self.left.min(PIECE_BYTES)) else {
            return Next::End;
        };
        self.left -= length;
        let (check, is_last) = (self.check.take(), self.left == 0);
        Next::Reading(spawn_blocking(move || {
            let seen = check
                .as_ref()
                .map(|check| (Arc::clone(&check.inner), check.canonical.clone()));
            let read = read(&file, length, check, is_last);
            if let (Err(error), Some((inner, canonical))) = (&read, seen) {
                // The client notices the damage by the missing last chunk.
                inner.unreadable(&canonical, error.kind().into());
            }
            read
        }))
    }
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = match &mut self.next {
            Next::Ready(piece) => Ok(std::mem::take(piece)),
            Next::Reading(reading) => {
                let read = ready!(Pin::new(reading).poll(cx));
                read.unwrap_or_else(|error| Err(error.into()))
                    .map(|(piece, check)| {
                        self.check = check;
                        piece
                    })
            }
            Next::End => return Poll::Ready(None),
        };
        self.next = if piece.is_ok() {
            self.read_ahead()
        } else {
            Next::End
        };
        match piece {
            Ok(piece) if piece.is_empty() => Poll::Ready(None),
            piece => Poll::Ready(Some(piece)),
        }
    }
}

/// Reads exactly `length` bytes. Errors: UnexpectedEof – the file was truncated; as [`DigestCheck::pass`].
fn read(
    mut file: &File,
    length: u64,
    check: Option<DigestCheck>,
    is_last: bool,
) -> io::Result<(Bytes, Option<DigestCheck>)> {
    let mut piece = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.by_ref().take(length).read_to_end(&mut piece)?;
    if (piece.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let check = check.map(|check| check.pass(&piece, is_last)).transpose()?;
    Ok((piece.into(), check))
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;

    use super::*;

    #[tokio::test]
    async fn any_range_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let size = 3 * PIECE_BYTES + 7;
        let content: Vec<u8> = (0..size).map(|n| u8::try_from(n % 251).unwrap()).collect();
        std::fs::write(&path, &content).unwrap();
        for (first, length) in [
            (0, 0),
            (0, 1),
            (5, PIECE_BYTES),
            (0, size),
            (PIECE_BYTES - 1, 2),
            (size, 0),
            (8, size - 8),
        ] {
            let file = File::open(&path).unwrap();
            let pieces = Pieces::open(file, first, length, None).unwrap();
            let whole: Vec<Bytes> = pieces.try_collect().await.unwrap();
            let expected =
                &content[usize::try_from(first).unwrap()..][..usize::try_from(length).unwrap()];
            assert_eq!(whole.concat(), expected, "{length} from {first}");
            assert!(whole.iter().all(|piece| !piece.is_empty()));
        }
    }

    #[tokio::test]
    async fn a_truncated_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 300_000]).unwrap();
        let whole = Pieces::open(File::open(&path).unwrap(), 0, 600_000, None).unwrap();
        let read: io::Result<Vec<Bytes>> = whole.try_collect().await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
