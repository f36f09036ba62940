//! Reader of one file in a squashfs image: gzip and zstd, as live images are packed.
//!
//! Source: the kernel's Documentation/filesystems/squashfs.rst and fs/squashfs/squashfs_fs.h (version 4.0).

use std::cell::Cell;
use std::io::{self, Read};

const MAGIC: u32 = 0x7371_7368;
/// Units: bytes of a metadata block, unpacked.
const METADATA_BLOCK: usize = 8192;
/// Largest block of file contents. Units: bytes.
const MAX_BLOCK: u32 = 1 << 20;
/// Most blocks of a file.
const MAX_BLOCKS: u64 = 1 << 16;
/// Largest directory. Units: bytes.
const MAX_DIRECTORY: u32 = 16 << 20;
/// Most entries of a directory that are looked at for a `*`.
const MAX_ENTRIES: usize = 64;
/// Most blocks of metadata that a search unpacks: a live image takes some hundred. Directories that lead to each other, or
/// with very many entries, would take days otherwise.
const MAX_METADATA_BLOCKS: u32 = 1 << 14;
/// Marks a metadata block that is not compressed.
const PLAIN_METADATA: u16 = 1 << 15;
/// Marks a block of contents that is not compressed.
const PLAIN_BLOCK: u32 = 1 << 24;
/// Number of a missing fragment.
const NO_FRAGMENT: u32 = u32::MAX;
/// Entries of one metadata block of the fragment table.
const FRAGMENTS_PER_BLOCK: u32 = 512;

/// Random access to the bytes of an image.
pub(super) trait ReadAt {
    /// Fills `buffer` from `offset`.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

#[derive(Debug, Clone, Copy)]
enum Compression {
    Gzip,
    Zstd,
}

/// An open image.
pub(super) struct Squashfs<R> {
    source: R,
    compression: Compression,
    block_size: u32,
    root: u64,
    inodes: u64,
    directories: u64,
    fragments: u64,
    /// Blocks of metadata that may still be unpacked.
    budget: Cell<u32>,
}

/// A position in unpacked metadata: start of a packed block, offset in it.
#[derive(Debug, Clone, Copy)]
struct MetadataPosition {
    block: u64,
    offset: usize,
}

#[derive(Debug)]
enum Inode {
    Directory {
        content: MetadataPosition,
        /// Units: bytes.
        size: u32,
    },
    File(FileInode),
}

#[derive(Debug)]
struct FileInode {
    start: u64,
    size: u64,
    fragment: u32,
    fragment_offset: u32,
    blocks: Vec<u32>,
}

impl<R: ReadAt> Squashfs<R> {
    /// Errors: `InvalidData` – no squashfs 4.0, or another compression.
    pub(super) fn open(source: R) -> io::Result<Self> {
        let mut head = [0; 96];
        source.read_exact_at(&mut head, 0)?;
        let mut head = Fields(&head);
        if head.u32()? != MAGIC {
            return Err(invalid("it is no squashfs image"));
        }
        head.skip(8)?;
        let block_size = head.u32()?;
        head.skip(4)?;
        let compression = match head.u16()? {
            1 => Compression::Gzip,
            6 => Compression::Zstd,
            other => {
                return Err(invalid(&format!(
                    "its compression {other} is neither gzip nor zstd"
                )));
            }
        };
        head.skip(6)?;
        if head.u16()? != 4 || block_size == 0 || block_size > MAX_BLOCK {
            return Err(invalid("it is no squashfs of version 4"));
        }
        head.skip(2)?;
        let root = head.u64()?;
        head.skip(24)?;
        let (inodes, directories, fragments) = (head.u64()?, head.u64()?, head.u64()?);
        Ok(Self {
            source,
            compression,
            block_size,
            root,
            inodes,
            directories,
            fragments,
            budget: Cell::new(MAX_METADATA_BLOCKS),
        })
    }

    /// The contents of the first file at `path`, whose parts may be `*` for any name; none without such a file.
    ///
    /// Errors: `InvalidData` – the image is damaged, or the file is larger than `most` bytes.
    pub(super) fn find(&self, path: &[&str], most: u64) -> io::Result<Option<Vec<u8>>> {
        let root = MetadataPosition {
            block: self.inodes.saturating_add(self.root >> 16),
            offset: usize::from((self.root & 0xffff) as u16),
        };
        match self.find_below(root, path)? {
            Some(file) if file.size > most => Err(invalid("the file in it is too large")),
            Some(file) => self.contents(&file).map(Some),
            None => Ok(None),
        }
    }

    fn find_below(&self, inode: MetadataPosition, path: &[&str]) -> io::Result<Option<FileInode>> {
        match (self.inode(inode)?, path) {
            (Inode::File(file), []) => Ok(Some(file)),
            (Inode::Directory { content, size }, [name, rest @ ..]) => {
                for inode in self.entries(content, size, name)? {
                    if let Some(file) = self.find_below(inode, rest)? {
                        return Ok(Some(file));
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn inode(&self, at: MetadataPosition) -> io::Result<Inode> {
        let mut reader = self.metadata(at);
        let kind = reader.u16()?;
        reader.skip(14)?;
        match kind {
            1 => {
                let start = reader.u32()?;
                reader.skip(4)?;
                let (size, offset) = (reader.u16()?, reader.u16()?);
                Ok(self.directory(start, offset, size.into()))
            }
            8 => {
                reader.skip(4)?;
                let (size, start) = (reader.u32()?, reader.u32()?);
                reader.skip(6)?;
                let offset = reader.u16()?;
                Ok(self.directory(start, offset, size))
            }
            2 => {
                let start = reader.u32()?.into();
                let (fragment, fragment_offset) = (reader.u32()?, reader.u32()?);
                let size = reader.u32()?.into();
                self.file(&mut reader, start, size, fragment, fragment_offset)
            }
            9 => {
                let (start, size) = (reader.u64()?, reader.u64()?);
                reader.skip(12)?;
                let (fragment, fragment_offset) = (reader.u32()?, reader.u32()?);
                reader.skip(4)?;
                self.file(&mut reader, start, size, fragment, fragment_offset)
            }
            // Links and devices: neither is on the way to a program.
            _ => Ok(self.directory(0, 0, 0)),
        }
    }

    /// The size counts the entries `.` and `..`, which are not stored.
    fn directory(&self, start: u32, offset: u16, size: u32) -> Inode {
        Inode::Directory {
            content: MetadataPosition {
                block: self.directories.saturating_add(start.into()),
                offset: offset.into(),
            },
            size: size.saturating_sub(3),
        }
    }

    fn file(
        &self,
        reader: &mut Metadata<'_, R>,
        start: u64,
        size: u64,
        fragment: u32,
        fragment_offset: u32,
    ) -> io::Result<Inode> {
        let block_size = u64::from(self.block_size);
        let count = if fragment == NO_FRAGMENT {
            size.div_ceil(block_size)
        } else {
            size / block_size
        };
        if count > MAX_BLOCKS {
            return Err(invalid("a file in it is too large"));
        }
        let blocks = (0..count)
            .map(|_| reader.u32())
            .collect::<io::Result<_>>()?;
        Ok(Inode::File(FileInode {
            start,
            size,
            fragment,
            fragment_offset,
            blocks,
        }))
    }

    /// Inodes of the entries of a directory that have this name, or of any for `*`.
    fn entries(
        &self,
        content: MetadataPosition,
        size: u32,
        wanted: &str,
    ) -> io::Result<Vec<MetadataPosition>> {
        if size > MAX_DIRECTORY {
            return Err(invalid("a directory in it is too large"));
        }
        let mut bytes = vec![0; size as usize];
        self.metadata(content).read_exact(&mut bytes)?;
        let mut fields = Fields(&bytes);
        let mut entries = Vec::new();
        while !fields.0.is_empty() {
            let count = fields.u32()?;
            let block = self.inodes.saturating_add(fields.u32()?.into());
            fields.skip(4)?;
            for _ in 0..=count {
                let offset = usize::from(fields.u16()?);
                fields.skip(4)?;
                let length = usize::from(fields.u16()?) + 1;
                let name = fields.take(length)?;
                let is_wanted = wanted == "*" || name == wanted.as_bytes();
                if is_wanted && entries.len() < MAX_ENTRIES {
                    entries.push(MetadataPosition { block, offset });
                }
            }
        }
        Ok(entries)
    }

    fn contents(&self, file: &FileInode) -> io::Result<Vec<u8>> {
        let size = usize::try_from(file.size).map_err(|_| invalid("the file is too large"))?;
        let mut bytes = Vec::new();
        let mut at = file.start;
        for block in &file.blocks {
            let expected = (self.block_size as usize).min(size - bytes.len());
            let packed = block & !PLAIN_BLOCK;
            if packed == 0 {
                // A hole.
                bytes.resize(bytes.len() + expected, 0);
                continue;
            }
            let content = self.block(at, *block)?;
            if content.len() != expected {
                return Err(invalid(
                    "a block in it has another length than its file says",
                ));
            }
            bytes.extend(content);
            at = at.saturating_add(packed.into());
        }
        if file.fragment != NO_FRAGMENT {
            let (start, block) = self.fragment(file.fragment)?;
            let content = self.block(start, block)?;
            let offset = file.fragment_offset as usize;
            let tail = content
                .get(offset..)
                .and_then(|tail| tail.get(..size - bytes.len()));
            bytes.extend(tail.ok_or_else(|| invalid("a fragment in it is too short"))?);
        }
        Ok(bytes)
    }

    /// Start and packed size of a fragment.
    fn fragment(&self, index: u32) -> io::Result<(u64, u32)> {
        let mut pointer = [0; 8];
        let table = u64::from(index / FRAGMENTS_PER_BLOCK) * 8;
        self.source
            .read_exact_at(&mut pointer, self.fragments.saturating_add(table))?;
        let mut reader = self.metadata(MetadataPosition {
            block: u64::from_le_bytes(pointer),
            offset: (index % FRAGMENTS_PER_BLOCK) as usize * 16,
        });
        Ok((reader.u64()?, reader.u32()?))
    }

    fn block(&self, at: u64, size: u32) -> io::Result<Vec<u8>> {
        let packed = size & !PLAIN_BLOCK;
        if packed > MAX_BLOCK {
            return Err(invalid("a block in it is too large"));
        }
        let is_plain = size & PLAIN_BLOCK != 0;
        self.unpacked(at, packed as usize, is_plain, self.block_size as usize)
    }

    fn unpacked(&self, at: u64, packed: usize, is_plain: bool, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; packed];
        self.source.read_exact_at(&mut bytes, at)?;
        if is_plain {
            return Ok(bytes);
        }
        let mut unpacked = Vec::with_capacity(most);
        let limit = most as u64 + 1;
        match self.compression {
            Compression::Gzip => {
                let decoder = flate2::bufread::ZlibDecoder::new(&bytes[..]);
                decoder.take(limit).read_to_end(&mut unpacked)?;
            }
            Compression::Zstd => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(&bytes[..])
                    .map_err(|error| invalid(&error.to_string()))?;
                decoder.take(limit).read_to_end(&mut unpacked)?;
            }
        }
        if unpacked.len() > most {
            return Err(invalid("a block in it unpacks to more than its size"));
        }
        Ok(unpacked)
    }

    fn metadata(&self, at: MetadataPosition) -> Metadata<'_, R> {
        Metadata {
            image: self,
            next: at.block,
            skip: at.offset,
            block: Vec::new(),
            read: 0,
        }
    }
}

/// Unpacked metadata from a position on.
struct Metadata<'a, R> {
    image: &'a Squashfs<R>,
    /// Start of the next packed block.
    next: u64,
    /// Bytes of the next block to leave out.
    skip: usize,
    block: Vec<u8>,
    read: usize,
}

impl<R: ReadAt> Metadata<'_, R> {
    fn read_exact(&mut self, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            if self.read == self.block.len() {
                self.advance()?;
            }
            let length = buffer.len().min(self.block.len() - self.read);
            buffer[..length].copy_from_slice(&self.block[self.read..][..length]);
            self.read += length;
            buffer = &mut buffer[length..];
        }
        Ok(())
    }

    fn advance(&mut self) -> io::Result<()> {
        let budget = self.image.budget.get().checked_sub(1);
        let budget = budget.ok_or_else(|| invalid("its directories are too large"))?;
        self.image.budget.set(budget);
        let mut head = [0; 2];
        self.image.source.read_exact_at(&mut head, self.next)?;
        let head = u16::from_le_bytes(head);
        let packed = usize::from(head & !PLAIN_METADATA);
        let is_plain = head & PLAIN_METADATA != 0;
        let start = self.next.saturating_add(2);
        self.block = self
            .image
            .unpacked(start, packed, is_plain, METADATA_BLOCK)?;
        self.next = start.saturating_add(packed as u64);
        self.read = std::mem::take(&mut self.skip);
        if self.read >= self.block.len() {
            return Err(invalid("its metadata ends early"));
        }
        Ok(())
    }

    fn skip(&mut self, length: usize) -> io::Result<()> {
        self.read_exact(&mut vec![0; length])
    }

    fn u16(&mut self) -> io::Result<u16> {
        let mut bytes = [0; 2];
        self.read_exact(&mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }

    fn u32(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Little-endian fields one after the other.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| invalid("a directory in it ends early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn skip(&mut self, length: usize) -> io::Result<()> {
        self.take(length).map(drop)
    }

    fn number<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?
            .try_into()
            .map_err(|_| invalid("a number in it ends early"))
    }

    fn u16(&mut self) -> io::Result<u16> {
        self.number().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.number().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.number().map(u64::from_le_bytes)
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made by mksquashfs 4.5.1 with blocks of 64 KiB: 300 small programs, and one of several blocks with a hole.
    const GZIP: &[u8] = include_bytes!("../../tests/data/gzip.squashfs");
    const ZSTD: &[u8] = include_bytes!("../../tests/data/zstd.squashfs");
    const DEPLOYED: &[&str] = &[
        "ostree",
        "deploy",
        "*",
        "deploy",
        "*",
        "usr",
        "bin",
        "nmstatectl",
    ];

    impl ReadAt for &[u8] {
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            let bytes = usize::try_from(offset)
                .ok()
                .and_then(|offset| self.get(offset..)?.get(..buffer.len()))
                .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
            buffer.copy_from_slice(bytes);
            Ok(())
        }
    }

    pub(in super::super) fn program() -> Vec<u8> {
        let lines = (0..4000).map(|line| format!("nmstatectl line {line:06}\n"));
        let mut program = format!("\x7fELF{}", lines.collect::<String>()).into_bytes();
        program.resize(program.len() + 70_000, 0);
        program.extend(b"the end");
        program
    }

    #[test]
    fn files_of_either_compression_are_found() {
        for image in [GZIP, ZSTD] {
            let image = Squashfs::open(image).unwrap();
            let found = image.find(DEPLOYED, 1 << 20).unwrap().unwrap();
            assert!(found == program());
            let mut path = DEPLOYED.to_vec();
            path[7] = "program-217";
            assert_eq!(image.find(&path, 100).unwrap().unwrap(), b"program 217\n");
            path[7] = "program-301";
            assert!(image.find(&path, 100).unwrap().is_none());
            assert!(image.find(&DEPLOYED[..7], 100).unwrap().is_none());
            assert!(image.find(DEPLOYED, 1000).is_err());
        }
    }

    /// An image of one directory, of the largest size, each of whose entries is the directory itself.
    struct Endless {
        head: Vec<u8>,
        inode: Vec<u8>,
        entries: Vec<u8>,
    }

    /// Units: bytes of a block that is not compressed, with its head.
    const PLAIN: u64 = 8192;

    impl Endless {
        fn new() -> Self {
            let mut head = GZIP[..96].to_vec();
            head[32..40].fill(0);
            head[64..72].copy_from_slice(&PLAIN.to_le_bytes());
            head[72..80].copy_from_slice(&(2 * PLAIN).to_le_bytes());
            let block = || (PLAIN_METADATA | 0x1ffe).to_le_bytes().to_vec();
            let mut inode = block();
            inode.extend(8_u16.to_le_bytes());
            inode.extend([0; 18]);
            // Whole blocks, and three bytes that are not stored.
            inode.extend((MAX_DIRECTORY / 8192 * 8190 + 3).to_le_bytes());
            inode.resize(8192, 0);
            let mut entries = block();
            for count in [255, 255, 255, 139_u32] {
                entries.extend((count - 1).to_le_bytes());
                entries.extend([0; 8]);
                for _ in 0..count {
                    entries.extend([0, 0, 0, 0, 0, 0, 0, 0, b'a']);
                }
            }
            // The last name is longer, so that the block is full.
            let length = entries.len() - 3;
            entries[length] = 6;
            entries.resize(8192, b'a');
            Self {
                head,
                inode,
                entries,
            }
        }
    }

    impl ReadAt for &Endless {
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            let block = match offset / PLAIN {
                0 => &self.head,
                1 => &self.inode,
                _ => &self.entries,
            };
            let start = usize::try_from(offset % PLAIN).unwrap();
            buffer.copy_from_slice(&block[start..start + buffer.len()]);
            Ok(())
        }
    }

    #[test]
    fn a_search_without_end_is_given_up() {
        let image = Endless::new();
        let image = Squashfs::open(&image).unwrap();
        let error = image.find(&["*"; 8], 100).unwrap_err();
        assert!(error.to_string().contains("too large"), "{error}");
    }

    #[test]
    fn other_images_are_refused() {
        let mut other = GZIP.to_vec();
        other[20] = 4;
        let refused = |bytes: &[u8]| Squashfs::open(bytes).err().unwrap().to_string();
        assert!(refused(&other).contains("compression 4"));
        other[0] = 0;
        assert!(refused(&other).contains("no squashfs"));
    }

    proptest! {
        #[test]
        fn damage_is_an_error(at in 0..GZIP.len(), value: u8, zstd: bool) {
            let mut bytes = if zstd { ZSTD.to_vec() } else { GZIP.to_vec() };
            let at = at % bytes.len();
            bytes[at] = value;
            if let Ok(image) = Squashfs::open(&bytes[..]) {
                let _ = image.find(DEPLOYED, 1 << 20);
            }
        }
    }
}
