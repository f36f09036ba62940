//! Header of the cache file: key, ranges and checksums.

use super::key::CacheKey;
use super::record::{ByteRange, TableRow as _};

const MAGIC: [u8; 8] = *b"atollcat";
/// Format version. Raise it with every change of layout or of reply content.
const VERSION: u32 = 3;
/// Size of the header: one page. Units: bytes.
pub(super) const LENGTH: usize = 4096;
/// Number of tables, in the order of [`TableId`].
pub(super) const TABLES: usize = 11;

/// A table of the cache.
#[derive(Debug, Clone, Copy)]
pub(super) enum TableId {
    Texts,
    Packages,
    Channels,
    Entries,
    Replaced,
    Provided,
    /// Entry numbers; other tables refer to ranges of it.
    Lists,
    Customs,
    Lines,
    /// The [`BuildReport`](super::BuildReport) as JSON: no rows.
    Report,
    /// Checksums of the blocks before the tables.
    Blocks,
}

/// Decoded header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CacheHeader {
    /// Key of the source.
    pub(super) key: CacheKey,
    /// Size of the file. Units: bytes.
    pub(super) length: u64,
    /// Documents as JSON lines.
    pub(super) json: ByteRange,
    /// Framed `PackageName`s.
    pub(super) packages: ByteRange,
    /// Framed `Bundle`s of `ListBundles`.
    pub(super) bundles: ByteRange,
    /// Consecutive tables up to the end of the file.
    pub(super) tables: [ByteRange; TABLES],
    /// Checksum of all tables.
    pub(super) checksum: u32,
}

/// Invalid header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// A file of another program.
    Foreign,
    /// Another format version.
    Version,
    Damaged,
}

impl CacheHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend(MAGIC);
        VERSION.put(&mut bytes);
        bytes.extend(self.key.bytes());
        self.length.put(&mut bytes);
        for span in [self.json, self.packages, self.bundles]
            .iter()
            .chain(&self.tables)
        {
            span.put(&mut bytes);
        }
        self.checksum.put(&mut bytes);
        bytes.resize(LENGTH - u32::WIDTH, 0);
        crc32fast::hash(&bytes).put(&mut bytes);
        bytes
    }

    /// Errors: not a header of this format version.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let mut rest = bytes.strip_prefix(&MAGIC).ok_or(HeaderError::Foreign)?;
        if bytes.len() < LENGTH {
            return Err(HeaderError::Damaged);
        }
        if u32::take(&mut rest) != VERSION {
            return Err(HeaderError::Version);
        }
        let (body, mut sum) = bytes[..LENGTH].split_at(LENGTH - u32::WIDTH);
        if crc32fast::hash(body) != u32::take(&mut sum) {
            return Err(HeaderError::Damaged);
        }
        let rest = &mut rest;
        Ok(Self {
            key: CacheKey::take(rest),
            length: u64::take(rest),
            json: ByteRange::take(rest),
            packages: ByteRange::take(rest),
            bundles: ByteRange::take(rest),
            tables: std::array::from_fn(|_| ByteRange::take(rest)),
            checksum: u32::take(rest),
        })
    }

    pub(super) fn table(&self, table: TableId) -> ByteRange {
        self.tables[table as usize]
    }

    /// Range of all tables; reply data ends where it begins.
    pub(super) fn all_tables(&self) -> ByteRange {
        let offset = self.tables[0].offset;
        let length = self.length.saturating_sub(offset);
        ByteRange { offset, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> CacheHeader {
        let span = |offset| ByteRange { offset, length: 3 };
        CacheHeader {
            key: CacheKey::of_text("a"),
            length: 1 << 33,
            json: span(1),
            packages: span(2),
            bundles: span(3),
            tables: std::array::from_fn(|index| span(10 + index as u64)),
            checksum: 77,
        }
    }

    #[test]
    fn headers_round_trip() {
        let bytes = header().encode();
        assert_eq!(bytes.len(), LENGTH);
        assert_eq!(CacheHeader::decode(&bytes), Ok(header()));
    }

    #[test]
    fn every_changed_byte_is_detected() {
        let bytes = header().encode();
        for index in 0..LENGTH {
            let mut bytes = bytes.clone();
            bytes[index] ^= 1 << (index % 8);
            assert!(CacheHeader::decode(&bytes).is_err(), "{index}");
        }
    }

    #[test]
    fn foreign_files_and_other_versions_are_refused() {
        let mut bytes = header().encode();
        assert_eq!(
            CacheHeader::decode(b"SQLite format 3"),
            Err(HeaderError::Foreign)
        );
        assert_eq!(CacheHeader::decode(b""), Err(HeaderError::Foreign));
        assert_eq!(
            CacheHeader::decode(&bytes[..100]),
            Err(HeaderError::Damaged)
        );
        bytes[8] += 1;
        assert_eq!(CacheHeader::decode(&bytes), Err(HeaderError::Version));
    }
}
