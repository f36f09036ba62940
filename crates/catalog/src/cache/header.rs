//! The first bytes of a cache: whose it is, and where what is.

use super::key::Key;
use super::record::{Row as _, Span};

const MAGIC: [u8; 8] = *b"atollcat";
/// To be raised whenever anything in the file means something else than before, also what replies say.
const VERSION: u32 = 2;
/// Units: bytes. Of the header, so that what follows begins with a page.
pub(super) const LENGTH: usize = 4096;
/// Tables, in the order of [`Table`].
pub(super) const TABLES: usize = 10;

/// Which table.
#[derive(Debug, Clone, Copy)]
pub(super) enum Table {
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
pub(super) struct Header {
    /// Of what it was built from.
    pub(super) key: Key,
    /// Units: bytes. Of the whole file.
    pub(super) length: u64,
    /// Documents, one a line.
    pub(super) json: Span,
    /// Framed `PackageName`s.
    pub(super) packages: Span,
    /// Framed `Bundle`s, as lists have them.
    pub(super) bundles: Span,
    /// One behind the other, up to the end of the file.
    pub(super) tables: [Span; TABLES],
    /// Of all tables.
    pub(super) checksum: u32,
}

/// Why a header is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusable {
    /// Another program's file.
    Foreign,
    /// Written by another version of this one.
    Version,
    Damaged,
}

impl Header {
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
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Unusable> {
        let mut rest = bytes.strip_prefix(&MAGIC).ok_or(Unusable::Foreign)?;
        if bytes.len() < LENGTH {
            return Err(Unusable::Damaged);
        }
        if u32::take(&mut rest) != VERSION {
            return Err(Unusable::Version);
        }
        let (body, mut sum) = bytes[..LENGTH].split_at(LENGTH - u32::WIDTH);
        if crc32fast::hash(body) != u32::take(&mut sum) {
            return Err(Unusable::Damaged);
        }
        let rest = &mut rest;
        Ok(Self {
            key: Key::take(rest),
            length: u64::take(rest),
            json: Span::take(rest),
            packages: Span::take(rest),
            bundles: Span::take(rest),
            tables: std::array::from_fn(|_| Span::take(rest)),
            checksum: u32::take(rest),
        })
    }

    pub(super) fn table(&self, table: Table) -> Span {
        self.tables[table as usize]
    }

    /// All of them; where they begin, what is sent ends.
    pub(super) fn all_tables(&self) -> Span {
        let offset = self.tables[0].offset;
        let length = self.length.saturating_sub(offset);
        Span { offset, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let span = |offset| Span { offset, length: 3 };
        Header {
            key: Key::of_text("a"),
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
        assert_eq!(Header::decode(&bytes), Ok(header()));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = header().encode();
        for index in 0..LENGTH {
            let mut bytes = bytes.clone();
            bytes[index] ^= 1 << (index % 8);
            assert!(Header::decode(&bytes).is_err(), "{index}");
        }
    }

    #[test]
    fn other_files_and_other_versions_are_told_apart() {
        let mut bytes = header().encode();
        assert_eq!(Header::decode(b"SQLite format 3"), Err(Unusable::Foreign));
        assert_eq!(Header::decode(b""), Err(Unusable::Foreign));
        assert_eq!(Header::decode(&bytes[..100]), Err(Unusable::Damaged));
        bytes[8] += 1;
        assert_eq!(Header::decode(&bytes), Err(Unusable::Version));
    }
}
