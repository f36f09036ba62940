//! The memory-mapped file; each block is verified before any byte of it is handed out.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use memmap2::Mmap;

use super::header;
use super::record::{ByteRange, TableRow as _};
use super::writer::BLOCK;

/// Checksum mismatch in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cache is damaged")]
pub struct Damaged;

/// The mapped file.
#[derive(Debug)]
pub(super) struct Map {
    bytes: Bytes,
    /// Checksums by block.
    checksums: Bytes,
    /// End of the checksummed blocks.
    end: u64,
    /// Verified blocks, one bit each.
    compared: Vec<AtomicU64>,
    is_damaged: AtomicBool,
}

/// Maps all of `file`.
///
/// Errors: it cannot be mapped.
pub(super) fn map(file: &File) -> io::Result<Bytes> {
    #[expect(
        unsafe_code,
        reason = "Caches are replaced atomically and never written in place."
    )]
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}

impl Map {
    /// A file whose `checksums` cover everything between the header and `end`.
    pub(super) fn new(bytes: Bytes, checksums: Bytes, end: u64) -> Self {
        let words = (checksums.len() / u32::WIDTH).div_ceil(64);
        let compared = std::iter::repeat_with(AtomicU64::default)
            .take(words)
            .collect();
        Self {
            bytes,
            checksums,
            end,
            compared,
            is_damaged: AtomicBool::new(false),
        }
    }

    /// Whether a checksum mismatch was found.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// The bytes of `span`, zero-copy.
    ///
    /// Errors: checksum mismatch.
    pub(super) fn slice(&self, span: ByteRange) -> Result<Bytes, Damaged> {
        let base = header::LENGTH as u64;
        if span.length == 0 {
            return Ok(Bytes::new());
        }
        if span.offset < base || span.end() > self.end {
            return Err(Damaged);
        }
        for block in (span.offset - base) / BLOCK..=(span.end() - 1 - base) / BLOCK {
            self.compare(block)?;
        }
        let first = usize::try_from(span.offset).map_err(|_| Damaged)?;
        let end = usize::try_from(span.end()).map_err(|_| Damaged)?;
        Ok(self.bytes.slice(first..end))
    }

    fn compare(&self, block: u64) -> Result<(), Damaged> {
        let index = usize::try_from(block).map_err(|_| Damaged)?;
        let word = self.compared.get(index / 64).ok_or(Damaged)?;
        let bit = 1 << (index % 64);
        if word.load(Ordering::Relaxed) & bit != 0 {
            return Ok(());
        }
        let first = header::LENGTH as u64 + block * BLOCK;
        let range = first..self.end.min(first + BLOCK);
        let range = usize::try_from(range.start)
            .ok()
            .zip(usize::try_from(range.end).ok());
        let bytes = range.and_then(|(first, end)| self.bytes.get(first..end));
        let wanted = self
            .checksums
            .get(index * u32::WIDTH..(index + 1) * u32::WIDTH);
        let (Some(bytes), Some(mut wanted)) = (bytes, wanted) else {
            return Err(Damaged);
        };
        if crc32fast::hash(bytes) != u32::take(&mut wanted) {
            self.is_damaged.store(true, Ordering::Relaxed);
            return Err(Damaged);
        }
        word.fetch_or(bit, Ordering::Relaxed);
        Ok(())
    }
}
