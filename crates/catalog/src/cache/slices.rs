//! Replies as a sequence of byte slices.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::header::TableId;
use super::mmap::Damaged;
use super::open::CatalogCache;
use super::record::{ByteRange, Entry, Rows};

/// Largest piece: the bytes that a connection buffers before it waits for its client. Units: bytes.
const PIECE: u64 = 64 << 10;
/// Shorter ranges are coalesced by copying: a piece costs the connection more than copying that much. Units: bytes.
const SHORT: u64 = 32 << 10;

/// Bytes of a cache in pieces: long ones are slices of the mapping, short ones are coalesced. Keeps the cache mapped.
#[derive(Debug)]
pub struct Slices {
    cache: Arc<CatalogCache>,
    spans: Spans,
    /// Rest of the current range.
    rest: ByteRange,
}

/// Ranges of a reply.
#[derive(Debug, Clone)]
pub(super) enum Spans {
    One(Option<ByteRange>),
    Three([ByteRange; 3]),
    /// A part of each entry in a range of the lists.
    Entries(Rows, EntryPart),
}

/// Part of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) enum EntryPart {
    Itself,
    Provides,
    Latest,
}

impl CatalogCache {
    /// The bytes of `span` in pieces.
    pub fn slices(self: &Arc<Self>, span: ByteRange) -> Slices {
        Slices::new(self, Spans::One(Some(span)))
    }
}

impl Slices {
    pub(super) fn new(cache: &Arc<CatalogCache>, spans: Spans) -> Self {
        Self {
            cache: Arc::clone(cache),
            spans,
            rest: ByteRange::default(),
        }
    }

    /// The current range, or the next one.
    fn ahead(&mut self) -> Result<Option<ByteRange>, Damaged> {
        while self.rest.length == 0 {
            match self.spans.next(&self.cache)? {
                Some(span) => self.rest = span,
                None => return Ok(None),
            }
        }
        Ok(Some(self.rest))
    }

    fn take(&mut self, length: u64) -> Result<Bytes, Damaged> {
        let now = ByteRange {
            length,
            ..self.rest
        };
        self.rest = ByteRange {
            offset: self.rest.offset + length,
            length: self.rest.length - length,
        };
        self.cache.slice(now)
    }

    fn piece(&mut self) -> Result<Option<Bytes>, Damaged> {
        let mut gathered = BytesMut::new();
        while let Some(span) = self.ahead()? {
            let is_short = span.length <= SHORT;
            if gathered.is_empty() && !is_short {
                return self.take(span.length.min(PIECE)).map(Some);
            }
            if !is_short || gathered.len() as u64 + span.length > PIECE {
                break;
            }
            gathered.extend_from_slice(&self.take(span.length)?);
        }
        Ok((!gathered.is_empty()).then(|| gathered.freeze()))
    }
}

/// Ends after the first error.
impl Iterator for Slices {
    type Item = Result<Bytes, Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        let piece = self.piece().transpose();
        if let Some(Err(_)) = piece {
            (self.spans, self.rest) = (Spans::One(None), ByteRange::default());
        }
        piece
    }
}

impl Spans {
    fn next(&mut self, cache: &CatalogCache) -> Result<Option<ByteRange>, Damaged> {
        Ok(match self {
            Self::One(span) => span.take(),
            Self::Three(spans) => {
                let next = spans.iter_mut().find(|span| span.length > 0);
                next.map(std::mem::take)
            }
            Self::Entries(Rows { count: 0, .. }, _) => None,
            Self::Entries(rows, which) => {
                let number = cache.row(TableId::Lists, rows.first).ok_or(Damaged)?;
                *rows = Rows {
                    first: rows.first + 1,
                    count: rows.count - 1,
                };
                let entry: Entry = cache.row(TableId::Entries, number).ok_or(Damaged)?;
                Some(which.of(&entry))
            }
        })
    }
}

impl EntryPart {
    fn of(self, entry: &Entry) -> ByteRange {
        match self {
            Self::Itself => ByteRange {
                length: entry.itself,
                ..entry.provides
            },
            Self::Provides => entry.provides,
            Self::Latest => entry.latest,
        }
    }
}
