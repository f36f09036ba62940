//! The first bytes of a cache: whose it is, and where what is.

use super::key::CacheKey;
use super::record::{ByteRange, TableRow as _};

const MAGIC: [u8; 8] = *b"atollcat";
/// To be raised whenever anything in the file means something else than before, also what replies say.
const VERSION: u32 = 2;
/// Units: bytes. Of the header, so that what follows begins with a page.
pub(super) const LENGTH: usize = 4096;
/// Tables, in the order of [`TableId`].
pub(super) const TABLES: usize = 10;

/// Which table.
#[derive(Debug, Clone, Copy)]
pub(super) enum TableId {
    Texts,
    Packages,
    Channels,
    Entries,
    Replaced,
    Provided,
    /// Rows of entries, that other tables have stretches of.
    Lists,
    Customs,
    Lines,
    /// Checksums of what is not a table, block by block.
    Blocks,
}

/// What the header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CacheHeader {
    /// Of what it was built from.
    pub(super) key: CacheKey,
    /// Units: bytes. Of the whole file.
    pub(super) length: u64,
    /// Documents, one a line.
    pub(super) json: ByteRange,
    /// Framed `PackageName`s.
    pub(super) packages: ByteRange,
    /// Framed `Bundle`s, as lists have them.
    pub(super) bundles: ByteRange,
    /// One behind the other, up to the end of the file.
    pub(super) tables: [ByteRange; TABLES],
    /// Of all tables.
    pub(super) checksum: u32,
}

/// Why a header is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderError {
    /// Another program's file.
    Foreign,
    /// Written by another version of this one.
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

    /// Errors: bytes that are no header of this version.
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

    /// All of them; where they begin, what is sent ends.
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
    fn a_header_comes_back_as_it_went() {
        let bytes = header().encode();
        assert_eq!(bytes.len(), LENGTH);
        assert_eq!(CacheHeader::decode(&bytes), Ok(header()));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = header().encode();
        for index in 0..LENGTH {
            let mut bytes = bytes.clone();
            bytes[index] ^= 1 << (index % 8);
            assert!(CacheHeader::decode(&bytes).is_err(), "{index}");
        }
    }

    #[test]
    fn other_files_and_other_versions_are_told_apart() {
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
