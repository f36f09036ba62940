//! Content of a response: a sequence of pieces of files and of memory, of known length.
//!
//! Nothing here holds a file in memory: `stream` sends pieces of files from the page cache, or reads them by chunks.

mod stream;

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;

pub use stream::{CHUNK, Transport};

/// Bytes that are read at once for a checksum.
const HASHED_CHUNK: usize = 1 << 20;

/// One piece.
#[derive(Clone)]
pub enum Piece {
    /// Bytes `start..start + length` of a file.
    File {
        /// Read at positions, so that many streams share it.
        file: Arc<File>,
        /// Units: bytes.
        start: u64,
        /// Units: bytes.
        length: u64,
    },
    /// Bytes in memory.
    Memory(Bytes),
    /// That many zeros.
    Zeros(u64),
}

/// Bytes in memory may hold secrets, so only lengths are shown.
impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { start, length, .. } => write!(f, "File({length} from {start})"),
            Self::Memory(bytes) => write!(f, "Memory({})", bytes.len()),
            Self::Zeros(length) => write!(f, "Zeros({length})"),
        }
    }
}

impl Piece {
    /// Units: bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::File { length, .. } | Self::Zeros(length) => *length,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// The bytes `range` of this piece, as far as there are any.
    #[must_use]
    pub fn part(&self, range: Range<u64>) -> Self {
        let end = range.end.min(self.length());
        self.cut(range.start.min(end)..end)
    }

    /// The bytes `range` of this piece; `range` has to be within.
    fn cut(&self, range: Range<u64>) -> Self {
        let length = range.end - range.start;
        match self {
            Self::File { file, start, .. } => Self::File {
                file: Arc::clone(file),
                start: start + range.start,
                length,
            },
            Self::Memory(bytes) => Self::Memory(bytes.slice(index(range.start)..index(range.end))),
            Self::Zeros(_) => Self::Zeros(length),
        }
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset within a slice fits into an index")
}

/// Offset and length of each chunk of `length` bytes.
fn chunks(length: u64, mut each: impl FnMut(u64, usize) -> io::Result<()>) -> io::Result<()> {
    let mut offset = 0;
    while offset < length {
        let chunk = index((length - offset).min(HASHED_CHUNK as u64));
        each(offset, chunk)?;
        offset += chunk as u64;
    }
    Ok(())
}

/// Bytes that replace those of a file.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// Offset of the first replaced byte.
    pub start: u64,
    /// Replacement.
    pub piece: Piece,
}

/// An overlay that overlaps another one or the end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an overlay of {length} bytes at byte {start} overlaps the next one or the end")]
pub struct Overlap {
    start: u64,
    length: u64,
}

/// Pieces in order.
#[derive(Debug, Clone, Default)]
pub struct ContentPieces {
    pieces: Vec<Piece>,
    length: u64,
}

impl ContentPieces {
    /// Empty content.
    pub fn new() -> Self {
        Self::default()
    }

    /// A part of a file with overlays; as long as the part.
    ///
    /// Errors: when overlays overlap each other or the end.
    pub fn overlaid(base: &Piece, mut overlays: Vec<Overlay>) -> Result<Self, Overlap> {
        // An empty one precedes another at the same offset.
        overlays.sort_by_key(|overlay| (overlay.start, overlay.piece.length()));
        let mut content = Self::new();
        for Overlay { start, piece } in overlays {
            let length = piece.length();
            let fits = start
                .checked_add(length)
                .is_some_and(|end| end <= base.length());
            if start < content.length || !fits {
                return Err(Overlap { start, length });
            }
            content.push(base.cut(content.length..start));
            content.push(piece);
        }
        content.push(base.cut(content.length..base.length()));
        Ok(content)
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: Piece) {
        let length = piece.length();
        if length > 0 {
            self.length += length;
            self.pieces.push(piece);
        }
    }

    /// Appends `other`.
    pub fn append(&mut self, other: Self) {
        for piece in other.pieces {
            self.push(piece);
        }
    }

    /// Overlays that replace the bytes from `start` with this content.
    pub fn overlays(self, mut start: u64) -> impl Iterator<Item = Overlay> {
        self.pieces.into_iter().map(move |piece| {
            let overlay = Overlay { start, piece };
            start += overlay.piece.length();
            overlay
        })
    }

    /// Units: bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The bytes `range`, as far as there are any.
    #[must_use]
    pub fn slice(&self, range: Range<u64>) -> Self {
        let mut slice = Self::new();
        let mut start = 0;
        for piece in &self.pieces {
            let end = start + piece.length();
            let (low, high) = (range.start.max(start), range.end.min(end));
            if low < high {
                slice.push(piece.cut(low - start..high - start));
            }
            start = end;
        }
        slice
    }

    /// Gives all bytes to `sink`, chunk by chunk. It blocks.
    ///
    /// Errors: a file that was truncated, or cannot be read; those of `sink`.
    pub fn for_each_chunk(&self, mut sink: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut buffer = vec![0; HASHED_CHUNK];
        for piece in &self.pieces {
            match piece {
                Piece::Memory(bytes) => sink(bytes)?,
                Piece::Zeros(length) => {
                    buffer.fill(0);
                    chunks(*length, |_, length| sink(&buffer[..length]))?;
                }
                Piece::File {
                    file,
                    start,
                    length,
                } => chunks(*length, |offset, length| {
                    file.read_exact_at(&mut buffer[..length], start + offset)?;
                    sink(&buffer[..length])
                })?,
            }
        }
        Ok(())
    }

    /// The bytes in memory, for the entity tag; those of files are identified by the file.
    pub fn memory(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Memory(bytes) => Some(bytes),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;
    use proptest::prelude::*;

    use super::*;

    fn file(bytes: &[u8]) -> Piece {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, bytes).unwrap();
        let length = bytes.len() as u64;
        Piece::File {
            file: Arc::new(file),
            start: 0,
            length,
        }
    }

    fn collect(content: ContentPieces) -> Vec<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let chunks: Vec<Bytes> = runtime
            .block_on(content.stream(Transport::Copied, ()).try_collect())
            .unwrap();
        chunks.concat()
    }

    fn memory(bytes: &[u8]) -> Piece {
        Piece::Memory(Bytes::copy_from_slice(bytes))
    }

    // limit: image chunk
    #[test]
    fn chunks_are_bounded() {
        let bytes = vec![7; index(CHUNK) * 2 + 5];
        let content = ContentPieces::overlaid(&file(&bytes), Vec::new()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let chunks: Vec<Bytes> = runtime
            .block_on(content.stream(Transport::Copied, ()).try_collect())
            .unwrap();
        let lengths: Vec<_> = chunks.iter().map(|chunk| chunk.len() as u64).collect();
        assert_eq!(lengths, [CHUNK, CHUNK, 5]);
    }

    #[test]
    fn overlays_stay_apart_and_inside() {
        let base = file(b"0123456789");
        let lay = |overlays: &[(u64, &[u8])]| {
            let overlays = overlays
                .iter()
                .map(|(start, bytes)| Overlay {
                    start: *start,
                    piece: memory(bytes),
                })
                .collect();
            ContentPieces::overlaid(&base, overlays).map(collect)
        };
        assert_eq!(lay(&[(8, b"yz"), (0, b"ab")]).unwrap(), b"ab234567yz");
        assert_eq!(lay(&[(2, b"ab"), (4, b"cd")]).unwrap(), b"01abcd6789");
        assert!(lay(&[(2, b"abc"), (4, b"cd")]).is_err());
        assert!(lay(&[(9, b"ab")]).is_err());
        assert!(lay(&[(u64::MAX, b"ab")]).is_err());
    }

    #[test]
    fn chunks_add_up_to_the_content() {
        let base = file(&vec![7; HASHED_CHUNK + 5]);
        let mut content = ContentPieces::overlaid(&base, Vec::new()).unwrap();
        content.push(memory(b"abc"));
        content.push(Piece::Zeros(HASHED_CHUNK as u64 * 2 + 1));
        let mut found = Vec::new();
        content
            .for_each_chunk(|chunk| {
                found.extend_from_slice(chunk);
                Ok(())
            })
            .unwrap();
        assert!(found == collect(content));
    }

    #[test]
    fn a_file_that_shrank_is_an_error() {
        let base = Piece::File {
            file: Arc::new(tempfile::tempfile().unwrap()),
            start: 0,
            length: 10,
        };
        let content = ContentPieces::overlaid(&base, Vec::new()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let read: Result<Vec<Bytes>, _> =
            runtime.block_on(content.stream(Transport::Copied, ()).try_collect());
        assert!(read.is_err());
    }

    #[test]
    fn an_empty_overlay_may_share_an_offset() {
        let overlays = [b"xy".as_slice(), b""].map(|bytes| Overlay {
            start: 1,
            piece: memory(bytes),
        });
        let content = ContentPieces::overlaid(&memory(b"abcd"), overlays.to_vec()).unwrap();
        assert_eq!(collect(content), b"axyd");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn composing_equals_copying(
            base in proptest::collection::vec(any::<u8>(), 1..400),
            cuts in proptest::collection::vec((0..60_u64, 0..30_usize, any::<u8>()), 0..5),
            from in 0..500_u64,
            take in 0..500_u64,
        ) {
            let mut naive = base.clone();
            let mut overlays = Vec::new();
            let mut at = 0;
            for (gap, length, byte) in cuts {
                let start = at + gap;
                let end = start + length as u64;
                if end > base.len() as u64 {
                    break;
                }
                naive[index(start)..index(end)].fill(byte);
                let piece = if byte == 0 { Piece::Zeros(length as u64) } else { memory(&vec![byte; length]) };
                overlays.push(Overlay { start, piece });
                at = end;
            }
            overlays.reverse();
            let mut content = ContentPieces::overlaid(&file(&base), overlays).unwrap();
            content.push(memory(b"tail"));
            content.push(Piece::Zeros(3));
            naive.extend(b"tail\0\0\0");
            prop_assert_eq!(content.length(), naive.len() as u64);
            let low = index(from).min(naive.len());
            let high = index(from + take).min(naive.len());
            prop_assert_eq!(collect(content.slice(from..from + take)), &naive[low..high]);
            prop_assert_eq!(collect(content), naive);
        }
    }
}
