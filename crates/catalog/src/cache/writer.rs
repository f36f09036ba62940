//! Sequential writer of the cache file with a checksum per block.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;

use super::header;
use super::record::ByteRange;

/// Size of a checksummed block; each is verified before its first byte is sent. Units: bytes.
pub(super) const BLOCK: u64 = 64 << 10;
/// Write buffer. Units: bytes.
const BUFFER: usize = 1 << 20;

/// Writer of the part after the header.
#[derive(Debug)]
pub(super) struct CacheWriter {
    file: BufWriter<File>,
    position: u64,
    block: crc32fast::Hasher,
    /// Checksums of completed blocks.
    checksums: Vec<u32>,
}

impl CacheWriter {
    /// Reserves the header.
    ///
    /// Errors: the file cannot be written.
    pub(super) fn new(file: File) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(BUFFER, file);
        file.write_all(&[0; header::LENGTH])?;
        Ok(Self {
            file,
            position: header::LENGTH as u64,
            block: crc32fast::Hasher::new(),
            checksums: Vec::new(),
        })
    }

    /// Offset of the next byte.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Range from `first` to the current position.
    pub(super) fn since(&self, first: u64) -> ByteRange {
        ByteRange {
            offset: first,
            length: self.position - first,
        }
    }

    /// Errors: the file cannot be written.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<ByteRange> {
        let first = self.position;
        self.file.write_all(bytes)?;
        while !bytes.is_empty() {
            let written = self.position - header::LENGTH as u64;
            let room = BLOCK - written % BLOCK;
            let count = bytes
                .len()
                .min(usize::try_from(room).unwrap_or(bytes.len()));
            let (now, rest) = bytes.split_at(count);
            self.block.update(now);
            self.position += count as u64;
            if count as u64 == room {
                let full = std::mem::take(&mut self.block);
                self.checksums.push(full.finalize());
            }
            bytes = rest;
        }
        Ok(self.since(first))
    }

    /// A second handle for [`read`]; sees everything written before [`flush`](Self::flush).
    ///
    /// Errors: there are too many open files.
    pub(super) fn reader(&self) -> io::Result<File> {
        self.file.get_ref().try_clone()
    }

    /// Errors: the file cannot be written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Ends the checksummed blocks. Returns their checksums, and the file for the tables.
    pub(super) fn finish_blocks(mut self) -> (Vec<u32>, BufWriter<File>) {
        let written = self.position - header::LENGTH as u64;
        if !written.is_multiple_of(BLOCK) {
            self.checksums.push(self.block.finalize());
        }
        (self.checksums, self.file)
    }
}

/// Reads the bytes of `span` into `buffer`, replacing its content.
///
/// Errors: the file cannot be read.
pub(super) fn read(file: &File, span: ByteRange, buffer: &mut Vec<u8>) -> io::Result<()> {
    let length = usize::try_from(span.length).map_err(io::Error::other)?;
    buffer.resize(length, 0);
    file.read_exact_at(buffer, span.offset)
}
