//! Opening of a cache.

use std::cmp::Ordering;
use std::fs::File;
use std::path::Path;
use std::time::SystemTime;

use bytes::Bytes;

use super::build_report::BuildReport;
use super::header::{self, CacheHeader, HeaderError, TableId};
use super::key::CacheKey;
use super::mmap::{Damaged, Map, map};
use super::record::{ByteRange, Rows, TableRow, TextRef};
use super::string_table::text_at;

/// An open catalog cache. Lookups use tables; replies are ranges of the file.
#[derive(Debug)]
pub struct CatalogCache {
    header: CacheHeader,
    bytes: Bytes,
    map: Map,
    modified: SystemTime,
    report: BuildReport,
}

/// An unusable cache file. It can be rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("there is no cache yet")]
    Absent,
    #[error("it is not a catalog cache")]
    Foreign,
    #[error("it was written by another version of this program")]
    Version,
    #[error("it is truncated or damaged")]
    Damaged,
    #[error("it is stale: built from another catalog, or an earlier state of this one")]
    Stale,
    #[error("it cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

impl CatalogCache {
    /// Opens the cache at `path` if it was built under `key`.
    ///
    /// Errors: the cache is unusable.
    pub fn open(path: &Path, key: &CacheKey) -> Result<Self, Refused> {
        let cache = Self::open_any(path)?;
        if cache.header.key == *key {
            Ok(cache)
        } else {
            Err(Refused::Stale)
        }
    }

    /// Opens the cache at `path` under any key.
    ///
    /// Errors: the cache is unusable.
    pub fn open_any(path: &Path) -> Result<Self, Refused> {
        let file = match File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Refused::Absent);
            }
            file => file?,
        };
        let metadata = file.metadata()?;
        if metadata.len() == 0 {
            return Err(Refused::Damaged);
        }
        let bytes = map(&file)?;
        let header = CacheHeader::decode(&bytes).map_err(|unusable| match unusable {
            HeaderError::Foreign => Refused::Foreign,
            HeaderError::Version => Refused::Version,
            HeaderError::Damaged => Refused::Damaged,
        })?;
        if header.length != bytes.len() as u64 {
            return Err(Refused::Damaged);
        }
        let tables = part(&bytes, header.all_tables()).ok_or(Refused::Damaged)?;
        if crc32fast::hash(&tables) != header.checksum {
            return Err(Refused::Damaged);
        }
        let blocks = part(&bytes, header.table(TableId::Blocks)).ok_or(Refused::Damaged)?;
        let map = Map::new(bytes.clone(), blocks, header.all_tables().offset);
        let report = part(&bytes, header.table(TableId::Report)).ok_or(Refused::Damaged)?;
        let report = BuildReport::from_json(&report).ok_or(Refused::Damaged)?;
        Ok(Self {
            header,
            bytes,
            map,
            modified: metadata.modified()?,
            report,
        })
    }

    /// Key of its source.
    pub fn key(&self) -> &CacheKey {
        &self.header.key
    }

    /// The report of its build: packages that were left out, and warnings.
    pub fn report(&self) -> &BuildReport {
        &self.report
    }

    /// Time of the build.
    pub fn modified(&self) -> SystemTime {
        self.modified
    }

    pub(super) fn header(&self) -> &CacheHeader {
        &self.header
    }

    /// Size of the file. Units: bytes.
    pub fn length(&self) -> u64 {
        self.header.length
    }

    /// Whether a checksum mismatch was found; the file has to be rebuilt then.
    pub fn is_damaged(&self) -> bool {
        self.map.is_damaged()
    }

    /// The bytes of `span`, a slice of the mapping.
    ///
    /// Errors: checksum mismatch.
    pub fn slice(&self, span: ByteRange) -> Result<Bytes, Damaged> {
        self.map.slice(span)
    }

    /// All documents as JSON lines, in walk order.
    pub fn json(&self) -> ByteRange {
        self.header.json
    }

    pub(super) fn text(&self, text: TextRef) -> &str {
        text_at(self.table(TableId::Texts), text)
    }

    /// A row of a table.
    pub(super) fn row<R: TableRow>(&self, table: TableId, number: u32) -> Option<R> {
        let first = (number as usize).checked_mul(R::WIDTH)?;
        let bytes = self.table(table).get(first..)?.get(..R::WIDTH)?;
        Some(R::take(&mut &*bytes))
    }

    /// All rows of a table.
    pub(super) fn all<R: TableRow>(&self, table: TableId) -> Rows {
        let count = self.table(table).len() / R::WIDTH;
        Rows {
            first: 0,
            count: u32::try_from(count).unwrap_or(u32::MAX),
        }
    }

    /// Binary search: a row among `rows` for which `order` is [`Ordering::Equal`].
    pub(super) fn find<R: TableRow>(
        &self,
        table: TableId,
        rows: Rows,
        order: impl Fn(&R) -> Ordering,
    ) -> Option<(u32, R)> {
        let (mut low, mut high) = (rows.first, rows.first.saturating_add(rows.count));
        while low < high {
            let middle = low + (high - low) / 2;
            let row = self.row(table, middle)?;
            match order(&row) {
                Ordering::Equal => return Some((middle, row)),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn table(&self, table: TableId) -> &[u8] {
        let span = self.header.table(table);
        let range = usize::try_from(span.offset)
            .ok()
            .zip(usize::try_from(span.end()).ok());
        let bytes = range.and_then(|(first, end)| self.bytes.get(first..end));
        bytes.unwrap_or_default()
    }
}

fn part(bytes: &Bytes, span: ByteRange) -> Option<Bytes> {
    let first = usize::try_from(span.offset).ok()?;
    let end = usize::try_from(span.end()).ok()?;
    let is_inside = first >= header::LENGTH && first <= end && end <= bytes.len();
    is_inside.then(|| bytes.slice(first..end))
}
