//! Response bodies in memory, in pieces that responses share.
//!
//! Content of files is no such body: `content` streams it.

use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use model::LargeText;

/// Smallest frame that holds the guard of a body until it is written: shorter ones end within a connection's buffer.
/// Units: bytes.
const MIN_GUARDED: usize = 4096;
/// Samples of a body that its fingerprint depends on: the whole text would take milliseconds.
const SAMPLES: usize = 64;
/// Longest sample. Units: bytes.
const SAMPLE_BYTES: usize = 64;

/// One piece of a body.
#[derive(Clone, PartialEq, Eq)]
pub enum BodyPiece {
    /// Bytes that are sent as they are.
    Plain(Bytes),
    /// A text that is decompressed when the client has room for it.
    Compressed(LargeText),
}

/// A body in pieces; its clones share them.
#[derive(Debug, Clone)]
pub struct SharedBody {
    pieces: Arc<[BodyPiece]>,
    /// Units: bytes.
    length: u64,
}

/// Memory of a piece: its address and its length.
pub(crate) type Allocation = (usize, usize);

/// Length of a body, and the hash of samples.
pub(crate) type Fingerprint = (u64, u64);

/// Bodies may hold secrets, so only lengths are shown.
impl fmt::Debug for BodyPiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(bytes) => write!(f, "Plain({})", bytes.len()),
            Self::Compressed(text) => write!(f, "Compressed({})", text.text_bytes()),
        }
    }
}

impl BodyPiece {
    /// Units: bytes.
    pub fn length(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Compressed(text) => text.text_bytes(),
        }
    }

    /// The bytes as they are kept.
    pub fn memory(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Compressed(text) => text.compressed(),
        }
    }

    /// The bytes as they are sent.
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Plain(bytes) => bytes.clone(),
            Self::Compressed(text) => text.text().into(),
        }
    }
}

impl From<Vec<u8>> for BodyPiece {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Plain(bytes.into())
    }
}

/// Equal bodies have equal pieces; those of the same memory are not compared.
impl PartialEq for SharedBody {
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.pieces.iter().zip(&*other.pieces);
        self.pieces.len() == other.pieces.len()
            && pairs.all(|(own, other)| {
                allocation(own.memory()) == allocation(other.memory()) || own == other
            })
    }
}

impl SharedBody {
    /// A body of `pieces`.
    pub fn new(pieces: Vec<BodyPiece>) -> Self {
        let length = pieces.iter().map(|piece| piece.length() as u64).sum();
        Self {
            pieces: pieces.into(),
            length,
        }
    }

    /// Units: bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Length, and hash of samples: bodies with different ones differ.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        let step = self.pieces.len().div_ceil(SAMPLES).max(1);
        let samples = SAMPLES / self.pieces.len().clamp(1, SAMPLES);
        for piece in self.pieces.iter().step_by(step) {
            let memory = piece.memory();
            for part in memory.chunks(memory.len().div_ceil(samples).max(1)) {
                hasher.write(&part[..part.len().min(SAMPLE_BYTES)]);
            }
        }
        (self.length, hasher.finish())
    }

    /// Whether both are clones of one body.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pieces, &other.pieces)
    }

    /// Memory that the body keeps: its table of pieces, and the pieces.
    pub(crate) fn allocations(&self) -> impl Iterator<Item = Allocation> {
        let table = (self.pieces.as_ptr().addr(), size_of_val(&*self.pieces));
        let pieces = self.pieces.iter().map(|piece| allocation(piece.memory()));
        std::iter::once(table).chain(pieces)
    }

    /// The body of a response; `guard` lives until its last byte is written.
    pub(crate) fn guarded<G: Send + Sync + 'static>(self, guard: G) -> Body {
        Body::new(SharedBodyReader {
            remaining: self.length,
            body: self,
            next: 0,
            guard: Arc::new(guard),
        })
    }
}

/// The body is an extension of its response, too: layers know the memory that it keeps.
impl IntoResponse for SharedBody {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.clone().guarded(()));
        response.extensions_mut().insert(self);
        response
    }
}

fn allocation(memory: &[u8]) -> Allocation {
    (memory.as_ptr().addr(), memory.len())
}

struct SharedBodyReader<G> {
    body: SharedBody,
    /// Index of the next piece.
    next: usize,
    /// Units: bytes.
    remaining: u64,
    guard: Arc<G>,
}

/// Bytes that hold a guard until they are written.
struct GuardedBytes<G> {
    bytes: Bytes,
    _guard: Arc<G>,
}

impl<G> AsRef<[u8]> for GuardedBytes<G> {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<G: Send + Sync + 'static> HttpBody for SharedBodyReader<G> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(piece) = self.body.pieces.get(self.next) else {
            return Poll::Ready(None);
        };
        let mut bytes = piece.bytes();
        if bytes.len() >= MIN_GUARDED {
            bytes = Bytes::from_owner(GuardedBytes {
                bytes,
                _guard: Arc::clone(&self.guard),
            });
        }
        self.next += 1;
        self.remaining -= bytes.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_its_pieces_in_order() {
        let long = "c".repeat(MIN_GUARDED);
        let pieces = vec![
            BodyPiece::from(b"a".to_vec()),
            BodyPiece::Plain(Bytes::new()),
            BodyPiece::Compressed("b".into()),
            BodyPiece::Compressed(long.as_str().into()),
        ];
        let body = SharedBody::new(pieces);
        let guard = Arc::new(());
        let mut read = body.clone().guarded(Arc::clone(&guard));
        assert_eq!(read.size_hint().exact(), Some(body.length()));
        let mut found = Vec::new();
        let mut context = Context::from_waker(std::task::Waker::noop());
        while !read.is_end_stream() {
            let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut read).poll_frame(&mut context) else {
                panic!("{} bytes are missing", read.size_hint().lower());
            };
            found.push(frame.into_data().unwrap());
        }
        drop(read);
        assert_eq!(found.concat(), format!("ab{long}").into_bytes());
        assert_eq!(
            Arc::strong_count(&guard),
            2,
            "until the last frame is written"
        );
        drop(found);
        assert_eq!(Arc::strong_count(&guard), 1);
    }

    #[test]
    fn equal_bodies_have_equal_pieces() {
        let body = |texts: &[&str]| {
            let pieces = texts
                .iter()
                .map(|text| BodyPiece::from(text.as_bytes().to_vec()));
            SharedBody::new(pieces.collect())
        };
        assert_eq!(body(&["a", "b"]), body(&["a", "b"]));
        assert_ne!(body(&["a", "b"]), body(&["a", "c"]));
        assert_ne!(body(&["a"]), body(&["a", "b"]));
        for texts in [
            &[][..],
            &["a", "b"],
            &["a"; 1000],
            &["ab".repeat(100_000).as_str()],
        ] {
            assert_eq!(body(texts).fingerprint(), body(texts).fingerprint());
        }
        assert_ne!(
            body(&["a", "b"]).fingerprint(),
            body(&["a", "c"]).fingerprint()
        );
    }
}
