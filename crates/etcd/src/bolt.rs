//! Superficial check of a bbolt database: its two meta pages, and the page of its buckets.
//!
//! Source: etcd-io/bbolt, internal/common/{meta,page}.go. Numbers are little-endian, as on all platforms of etcd.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
const PAGE_HEADER: usize = 16;
/// Length of the meta fields with their checksum.
const META: usize = 64;
const FLAG_BRANCH: u16 = 1;
const FLAG_LEAF: u16 = 2;
const FLAG_META: u16 = 4;
/// Length of an element of a leaf page: flags, position, length of its key, length of its value.
const ELEMENT: usize = 16;
/// Bucket of all keys.
const KEYS: &[u8] = b"key";
/// Page sizes of bbolt: that of the machine's memory.
const PAGE_SIZES: std::ops::RangeInclusive<usize> = 1024..=65536;

/// A file that is no usable bbolt database.
#[derive(Debug, thiserror::Error)]
pub enum BoltError {
    /// The file cannot be read.
    #[error("the database cannot be read")]
    Io(#[from] io::Error),
    /// A page differs from its format.
    #[error("page {page} of the database: {reason}")]
    Page {
        /// Number of the page.
        page: u64,
        /// The defect.
        reason: &'static str,
    },
}

struct Meta {
    page_size: usize,
    root: u64,
    /// Number of pages.
    pages: u64,
    transaction: u64,
}

/// Checks the database in the first `length` bytes of `file`.
///
/// Errors: Io; Page.
pub(super) fn check(file: &File, length: u64) -> Result<(), BoltError> {
    let first = read_meta(file, 0, 0)?;
    let second = read_meta(file, 1, first.page_size as u64)?;
    let wrong = |page, reason| BoltError::Page { page, reason };
    if second.page_size != first.page_size {
        return Err(wrong(1, "another page size than page 0"));
    }
    let newest = if first.transaction >= second.transaction {
        first
    } else {
        second
    };
    let is_complete = newest
        .pages
        .checked_mul(newest.page_size as u64)
        .is_some_and(|expected| expected <= length);
    if !is_complete {
        return Err(wrong(0, "the file is shorter than its pages"));
    }
    if newest.root < 2 || newest.root >= newest.pages {
        return Err(wrong(
            newest.root,
            "the page of the buckets is outside the file",
        ));
    }
    has_keys(file, &newest)
}

fn read_meta(file: &File, page: u64, offset: u64) -> Result<Meta, BoltError> {
    let wrong = |reason| BoltError::Page { page, reason };
    let mut bytes = [0; PAGE_HEADER + META];
    file.read_exact_at(&mut bytes, offset)?;
    let (header, meta) = bytes.split_at(PAGE_HEADER);
    if u64_at(header, 0) != page || u16_at(header, 8) != FLAG_META {
        return Err(wrong("no meta page"));
    }
    if u32_at(meta, 0) != MAGIC || u32_at(meta, 4) != VERSION {
        return Err(wrong("wrong magic number or version"));
    }
    if u64_at(meta, META - 8) != fnv1a(&meta[..META - 8]) {
        return Err(wrong("wrong checksum"));
    }
    let page_size = u32_at(meta, 8) as usize;
    if !PAGE_SIZES.contains(&page_size) || !page_size.is_power_of_two() {
        return Err(wrong("impossible page size"));
    }
    Ok(Meta {
        page_size,
        root: u64_at(meta, 16),
        pages: u64_at(meta, 40),
        transaction: u64_at(meta, 48),
    })
}

/// Whether the page of the buckets has that of the keys. With very many buckets it is a branch, and is not descended.
fn has_keys(file: &File, meta: &Meta) -> Result<(), BoltError> {
    let wrong = |reason| BoltError::Page {
        page: meta.root,
        reason,
    };
    let mut page = vec![0; meta.page_size];
    file.read_exact_at(&mut page, meta.root * meta.page_size as u64)?;
    if u64_at(&page, 0) != meta.root {
        return Err(wrong("another page is in its place"));
    }
    match u16_at(&page, 8) {
        FLAG_BRANCH => return Ok(()),
        FLAG_LEAF => {}
        _ => return Err(wrong("the buckets are in no branch or leaf")),
    }
    let elements = page[PAGE_HEADER..].chunks_exact(ELEMENT).enumerate();
    for (index, element) in elements.take(usize::from(u16_at(&page, 10))) {
        // Positions count from their element.
        let start = PAGE_HEADER + index * ELEMENT + u32_at(element, 4) as usize;
        let key = page.get(start..start.saturating_add(u32_at(element, 8) as usize));
        if key == Some(KEYS) {
            return Ok(());
        }
    }
    Err(wrong("no bucket of keys: this is no database of etcd"))
}

/// FNV-1a of 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    // All callers read within a page or header.
    if let Some(found) = bytes.get(at..at + N) {
        array.copy_from_slice(found);
    }
    array
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write as _;

    use super::*;

    const PAGE: usize = 4096;

    /// A database of three pages, with one bucket.
    pub(crate) fn database() -> Vec<u8> {
        let mut bytes = vec![0; 3 * PAGE];
        for (number, page) in (0..2_u64).zip(bytes.chunks_exact_mut(PAGE)) {
            page[..8].copy_from_slice(&number.to_le_bytes());
            page[8..10].copy_from_slice(&FLAG_META.to_le_bytes());
            let meta = &mut page[PAGE_HEADER..][..META];
            meta[..4].copy_from_slice(&MAGIC.to_le_bytes());
            meta[4..8].copy_from_slice(&VERSION.to_le_bytes());
            meta[8..12].copy_from_slice(&4096_u32.to_le_bytes());
            meta[16..24].copy_from_slice(&2_u64.to_le_bytes());
            meta[40..48].copy_from_slice(&3_u64.to_le_bytes());
            meta[48..56].copy_from_slice(&(10 - number).to_le_bytes());
            let sum = fnv1a(&meta[..56]).to_le_bytes();
            meta[56..].copy_from_slice(&sum);
        }
        let page = &mut bytes[2 * PAGE..];
        page[..8].copy_from_slice(&2_u64.to_le_bytes());
        page[8..10].copy_from_slice(&FLAG_LEAF.to_le_bytes());
        page[10..12].copy_from_slice(&1_u16.to_le_bytes());
        page[20..24].copy_from_slice(&16_u32.to_le_bytes());
        page[24..28].copy_from_slice(&3_u32.to_le_bytes());
        page[32..35].copy_from_slice(KEYS);
        bytes
    }

    fn checked(bytes: &[u8]) -> Result<(), BoltError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        check(&file, bytes.len() as u64)
    }

    #[test]
    fn each_defect_is_found() {
        let whole = database();
        checked(&whole).unwrap();
        let changed = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            checked(&bytes).unwrap_err().to_string()
        };
        let meta = PAGE_HEADER;
        for (at, reason) in [
            (0, "page 0 of the database: no meta page"),
            (
                meta,
                "page 0 of the database: wrong magic number or version",
            ),
            (meta + 48, "page 0 of the database: wrong checksum"),
            (PAGE + meta + 60, "page 1 of the database: wrong checksum"),
            (
                2 * PAGE,
                "page 2 of the database: another page is in its place",
            ),
            (
                2 * PAGE + 8,
                "page 2 of the database: the buckets are in no branch or leaf",
            ),
            (
                2 * PAGE + 32,
                "page 2 of the database: no bucket of keys: this is no database of etcd",
            ),
        ] {
            assert_eq!(changed(at), reason, "{at}");
        }
        let short = checked(&whole[..3 * PAGE - 1]).unwrap_err();
        assert_eq!(
            short.to_string(),
            "page 0 of the database: the file is shorter than its pages"
        );
        assert!(matches!(checked(&whole[..100]), Err(BoltError::Io(_))));
    }

    proptest::proptest! {
        #[test]
        fn any_changes_are_read_or_refused(changes: Vec<(u16, u8)>, fix: bool) {
            let mut bytes = database();
            for (at, byte) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = byte;
            }
            if fix {
                for number in 0..2 {
                    let meta = &mut bytes[number * PAGE + PAGE_HEADER..][..META];
                    let sum = fnv1a(&meta[..56]).to_le_bytes();
                    meta[56..].copy_from_slice(&sum);
                }
            }
            let _ = checked(&bytes);
        }
    }
}
