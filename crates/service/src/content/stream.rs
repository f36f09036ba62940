//! Content as a streamed response body.
//!
//! On plain connections the kernel sends pieces of files (sendfile). Others need the bytes in memory: one chunk per client
//! at a time, read by a bounded number of threads.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::request::Parts;
use rustix::io::{ReadWriteFlags, preadv2};
use tokio::sync::Semaphore;

use super::{ContentPieces, Piece, index};
use crate::sendfile;

/// Chunk of copied bytes. Units: bytes. A slow client keeps one or two of them in memory, beside the buffers of hyper and
/// TLS.
pub const CHUNK: u64 = 32 * 1024;
/// Least length of a mapped piece. Units: bytes. Copying shorter ones is cheaper.
const SENDFILE_FROM: u64 = 64 * 1024;
/// Concurrent threads that read the disk. Each has a stack and a heap of its own.
const READERS: usize = 16;

/// One chunk of zeros.
const ZEROS: &[u8] = &[0; 32 * 1024];
const _: () = assert!(ZEROS.len() as u64 == CHUNK);

static READING: Semaphore = Semaphore::const_new(READERS);

/// How bytes of files reach the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Sent by the kernel.
    Sent,
    /// Read into memory: for TLS and HTTP/2, which encode them.
    Copied,
}

impl Transport {
    /// Transport of the response to a request.
    pub fn of(request: &Parts) -> Self {
        if sendfile::is_possible(request) {
            Self::Sent
        } else {
            Self::Copied
        }
    }
}

/// Bytes that hold `guard` until they have been sent.
struct Guarded<G> {
    bytes: Bytes,
    _guard: Arc<G>,
}

impl<G> AsRef<[u8]> for Guarded<G> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ContentPieces {
    /// Body of a response. One piece that needs no read of the disk is one buffer, which hyper writes together with the
    /// head of the response.
    pub fn body<G: Send + Sync + 'static>(self, transport: Transport, guard: G) -> Body {
        if self.pieces.is_empty() {
            return Body::empty();
        }
        if let [piece] = self.pieces.as_slice()
            && let Some(bytes) = at_once(piece, transport)
        {
            return Body::from(Bytes::from_owner(Guarded {
                bytes,
                _guard: Arc::new(guard),
            }));
        }
        Body::from_stream(self.stream(transport, guard))
    }

    /// The bytes in order. `guard` lives until the stream has ended and pieces that the kernel sends have been sent.
    ///
    /// Errors: the stream's – a file that was truncated, or cannot be read.
    pub fn stream<G: Send + Sync + 'static>(
        self,
        transport: Transport,
        guard: G,
    ) -> impl Stream<Item = io::Result<Bytes>> + Send {
        let (pieces, guard) = (VecDeque::from(self.pieces), Arc::new(guard));
        stream::try_unfold(
            (pieces, transport, guard),
            |(mut pieces, transport, guard)| async move {
                let Some(piece) = pieces.pop_front() else {
                    return Ok(None);
                };
                if transport == Transport::Sent
                    && let Some(bytes) = mapped(&piece)
                {
                    // The stream ends when hyper has taken the last piece, long before the client receives it.
                    let guard_of_piece = Arc::clone(&guard);
                    let bytes = Bytes::from_owner(Guarded {
                        bytes,
                        _guard: guard_of_piece,
                    });
                    return Ok(Some((bytes, (pieces, transport, guard))));
                }
                let (first, rest) = split(piece);
                if let Some(rest) = rest {
                    pieces.push_front(rest);
                }
                Ok(Some((read(first).await?, (pieces, transport, guard))))
            },
        )
    }
}

/// A whole piece, where that needs no read of the disk and no more memory than a chunk.
fn at_once(piece: &Piece, transport: Transport) -> Option<Bytes> {
    match piece {
        Piece::Memory(bytes) => Some(bytes.clone()),
        Piece::Zeros(_) => None,
        Piece::File { .. } if transport == Transport::Sent && piece.length() >= SENDFILE_FROM => {
            mapped(piece)
        }
        Piece::File { length, .. } if *length > CHUNK => None,
        Piece::File {
            file,
            start,
            length,
        } => {
            let mut chunk = vec![0; index(*length)];
            let cached = read_cached(file, &mut chunk, *start);
            (cached == chunk.len()).then(|| Bytes::from(chunk))
        }
    }
}

/// A long piece of a file for the kernel to send; none where it is short or cannot be mapped.
fn mapped(piece: &Piece) -> Option<Bytes> {
    let Piece::File {
        file,
        start,
        length: length @ SENDFILE_FROM..,
    } = piece
    else {
        return None;
    };
    let part = sendfile::part(Arc::clone(file), *start, *length);
    part.inspect_err(
        |error| tracing::warn!(%error, "a file cannot be mapped, its bytes are copied"),
    )
    .ok()
}

/// The first chunk of a piece, and the rest. Bytes in memory are not split.
fn split(piece: Piece) -> (Piece, Option<Piece>) {
    let length = piece.length();
    if matches!(piece, Piece::Memory(_)) || length <= CHUNK {
        return (piece, None);
    }
    (piece.cut(0..CHUNK), Some(piece.cut(CHUNK..length)))
}

async fn read(piece: Piece) -> io::Result<Bytes> {
    match piece {
        Piece::Memory(bytes) => Ok(bytes),
        Piece::Zeros(length) => Ok(Bytes::from_static(&ZEROS[..index(length)])),
        Piece::File {
            file,
            start,
            length,
        } => read_file(file, start, index(length)).await,
    }
}

async fn read_file(file: Arc<File>, start: u64, length: usize) -> io::Result<Bytes> {
    let mut chunk = vec![0; length];
    let cached = read_cached(&file, &mut chunk, start);
    if cached < length {
        let _permit = READING.acquire().await.map_err(io::Error::other)?;
        let reading = tokio::task::spawn_blocking(move || {
            file.read_exact_at(&mut chunk[cached..], start + cached as u64)?;
            Ok::<_, io::Error>(chunk)
        });
        chunk = reading.await.map_err(io::Error::other)??;
    }
    Ok(Bytes::from(chunk))
}

/// Number of bytes read from the page cache. Zero on file systems without `RWF_NOWAIT`.
fn read_cached(file: &File, chunk: &mut [u8], start: u64) -> usize {
    let mut slices = [IoSliceMut::new(chunk)];
    preadv2(file, &mut slices, start, ReadWriteFlags::NOWAIT).unwrap_or(0)
}
