//! Bytes of a blob from the disk to the network: the next piece is read while one is sent.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use tokio::task::{JoinHandle, spawn_blocking};

/// Units: bytes. Large enough that switching threads does not count; a download holds two at the most.
const PIECE_BYTES: u64 = 256 * 1024;

/// A part of a file, in pieces.
#[derive(Debug)]
pub struct Pieces {
    file: Arc<File>,
    /// Units: bytes. What has not been asked for yet.
    left: u64,
    next: Next,
}

#[derive(Debug)]
enum Next {
    Here(Bytes),
    Coming(JoinHandle<io::Result<Bytes>>),
    End,
}

impl Pieces {
    /// `length` bytes of a file from `first` on; the first piece is read at once. Blocks.
    pub(super) fn open(path: &Path, first: u64, length: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        if first > 0 {
            file.seek(SeekFrom::Start(first))?;
        }
        let piece = read(&file, length.min(PIECE_BYTES))?;
        Ok(Self {
            left: length - piece.len() as u64,
            file: Arc::new(file),
            next: Next::Here(piece),
        })
    }

    fn ask(&mut self) -> Next {
        let length = self.left.min(PIECE_BYTES);
        if length == 0 {
            return Next::End;
        }
        self.left -= length;
        let file = Arc::clone(&self.file);
        Next::Coming(spawn_blocking(move || read(&file, length)))
    }
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = match &mut self.next {
            Next::Here(piece) => Ok(std::mem::take(piece)),
            Next::Coming(reading) => {
                ready!(Pin::new(reading).poll(cx)).unwrap_or_else(|error| Err(error.into()))
            }
            Next::End => return Poll::Ready(None),
        };
        self.next = if piece.is_ok() { self.ask() } else { Next::End };
        match piece {
            Ok(piece) if piece.is_empty() => Poll::Ready(None),
            piece => Poll::Ready(Some(piece)),
        }
    }
}

/// Exactly `length` bytes. Errors: UnexpectedEof – the file is shorter than it was.
fn read(mut file: &File, length: u64) -> io::Result<Bytes> {
    let mut piece = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.by_ref().take(length).read_to_end(&mut piece)?;
    if (piece.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(piece.into())
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;

    use super::*;

    #[tokio::test]
    async fn any_part_comes_whole() {
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
            let pieces = Pieces::open(&path, first, length).unwrap();
            let whole: Vec<Bytes> = pieces.try_collect().await.unwrap();
            let expected =
                &content[usize::try_from(first).unwrap()..][..usize::try_from(length).unwrap()];
            assert_eq!(whole.concat(), expected, "{length} from {first}");
            assert!(whole.iter().all(|piece| !piece.is_empty()));
        }
    }

    #[tokio::test]
    async fn a_file_that_became_shorter_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 300_000]).unwrap();
        let whole = Pieces::open(&path, 0, 600_000).unwrap();
        let read: io::Result<Vec<Bytes>> = whole.try_collect().await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
