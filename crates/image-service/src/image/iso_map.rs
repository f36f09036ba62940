//! Every place of an ISO image that holds a sector number: enough to move its files without unpacking it.
//!
//! Sources: ECMA-119 (descriptors, path tables, directories), SUSP 1.12 (continuation areas), El Torito 1.0; for the boot
//! information tables mkisofs(8), isohybrid(1) and GRUB's `--grub2-boot-info`.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Units: bytes.
pub(super) const SECTOR: u64 = 2048;
/// The same, for buffers.
pub(super) const SECTOR_LENGTH: usize = 2048;
/// Sectors before the first volume descriptor: partition tables and the code of a hybrid image.
pub(super) const SYSTEM_SECTORS: u32 = 16;
/// Most sectors of metadata. A live image has some fifty.
const MAX_SECTORS: usize = 2048;
/// Most volume descriptors.
const MAX_DESCRIPTORS: u32 = 64;

const DIRECTORY: u8 = 2;
/// Offset of the loader's sector in the code of a hybrid image.
const HYBRID_LOADER: u64 = 432;
/// Offset of GRUB's own sector in its loader.
const GRUB_LOADER: u64 = 2548;

/// Copies of sectors, addressed by their offsets in the image.
#[derive(Debug, Clone, Default)]
pub(super) struct Sectors(BTreeMap<u32, Box<[u8; SECTOR_LENGTH]>>);

impl Sectors {
    /// The sectors from the first one on.
    #[cfg(test)]
    pub(super) fn of(bytes: &[u8]) -> Self {
        let chunks = bytes
            .chunks_exact(SECTOR_LENGTH)
            .map(|chunk| Box::new(chunk.try_into().unwrap()));
        Self((0..).zip(chunks).collect())
    }

    fn place(at: u64) -> Option<(u32, usize)> {
        let sector = u32::try_from(at / SECTOR).ok()?;
        Some((sector, usize::try_from(at % SECTOR).ok()?))
    }

    /// Bytes of the image; none outside of the copied sectors.
    pub(super) fn read<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        for (byte, at) in bytes.iter_mut().zip(at..) {
            let (sector, offset) = Self::place(at)?;
            *byte = self.0.get(&sector)?[offset];
        }
        Some(bytes)
    }

    /// Replaces bytes of copied sectors.
    pub(super) fn write(&mut self, at: u64, bytes: &[u8]) {
        for (byte, at) in bytes.iter().zip(at..) {
            let sector = Self::place(at);
            if let Some((sector, offset)) = sector
                && let Some(sector) = self.0.get_mut(&sector)
            {
                sector[offset] = *byte;
            }
        }
    }

    /// Runs of adjacent sectors: the offset of each, and its bytes.
    pub(super) fn runs(&self) -> Vec<(u64, Vec<u8>)> {
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for (sector, bytes) in &self.0 {
            let start = u64::from(*sector) * SECTOR;
            match runs.last_mut() {
                Some((first, run)) if *first + run.len() as u64 == start => {
                    run.extend_from_slice(bytes.as_slice());
                }
                _ => runs.push((start, bytes.to_vec())),
            }
        }
        runs
    }

    fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }
}

/// Form of a sector number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Little,
    Big,
    /// Little-endian, then big-endian.
    Both,
    /// Little-endian, in blocks of 512 bytes.
    Blocks,
}

/// A sector number in the metadata.
#[derive(Debug, Clone, Copy)]
struct SectorField {
    /// Offset in the image.
    at: u64,
    form: Form,
}

/// The directory record of a file.
#[derive(Debug, Clone, Copy)]
struct FileRecord {
    /// Offset in the image.
    at: u64,
    sector: u32,
    /// Units: bytes.
    length: u32,
}

/// Sectors of an image's descriptors, directories and boot tables, and the sector numbers in them.
#[derive(Debug)]
pub(super) struct IsoMap {
    pub(super) sectors: Sectors,
    fields: Vec<SectorField>,
    files: Vec<FileRecord>,
    /// Offsets of the volume's size in each descriptor.
    sizes: Vec<u64>,
    /// Size by the descriptors. Units: sectors.
    pub(super) size: u32,
}

/// New places of files.
#[derive(Debug)]
pub(super) struct Moves {
    /// Sectors that are left out: of one file, and of no other.
    pub(super) cut: std::ops::Range<u32>,
    /// Files that get a new place or length: sector and length before, then after.
    pub(super) files: Vec<((u32, u32), (u32, u32))>,
    /// New size. Units: sectors.
    pub(super) size: u32,
}

impl Moves {
    /// The new number of a sector.
    pub(super) fn sector(&self, sector: u32) -> u32 {
        if sector >= self.cut.end {
            sector - (self.cut.end - self.cut.start)
        } else {
            sector
        }
    }
}

impl IsoMap {
    /// Reads the metadata.
    ///
    /// Errors: `InvalidData` when it contradicts itself.
    pub(super) fn read(file: &File) -> io::Result<Self> {
        let mut reader = MapReader {
            file,
            map: Self {
                sectors: Sectors::default(),
                fields: Vec::new(),
                files: Vec::new(),
                sizes: Vec::new(),
                size: 0,
            },
            seen: HashSet::new(),
            pending: Vec::new(),
        };
        reader.read()?;
        reader.map.forget_others();
        Ok(reader.map)
    }

    /// Keeps only sectors that a move changes: others may be parts of files.
    fn forget_others(&mut self) {
        let fields = self.fields.iter().map(|field| {
            let length = if field.form == Form::Both { 8 } else { 4 };
            field.at..field.at + length
        });
        let files = self.files.iter().map(|file| file.at + 2..file.at + 18);
        let sizes = self.sizes.iter().map(|at| *at..at + 8);
        let changed: HashSet<u64> = fields
            .chain(files)
            .chain(sizes)
            .flat_map(|range| [range.start / SECTOR, (range.end - 1) / SECTOR])
            .collect();
        self.sectors
            .0
            .retain(|sector, _| *sector < SYSTEM_SECTORS || changed.contains(&u64::from(*sector)));
    }

    /// Whether only the file at `cut` has sectors there.
    pub(super) fn is_apart(&self, cut: &std::ops::Range<u32>) -> bool {
        let inside = |sector: u32| cut.start <= sector && sector < cut.end;
        let is_other = |file: &&FileRecord| file.sector != cut.start && file.length > 0;
        let overlaps = |file: &FileRecord| {
            let end = u64::from(file.sector) + u64::from(file.length).div_ceil(SECTOR);
            file.sector < cut.end && end > cut.start.into()
        };
        !self.sectors.numbers().any(inside)
            && !self.fields.iter().any(|field| inside(self.value(field)))
            && !self.files.iter().filter(is_other).any(overlaps)
    }

    /// The metadata with new sector numbers.
    pub(super) fn moved(&self, moves: &Moves) -> Sectors {
        let mut sectors = self.sectors.clone();
        for field in &self.fields {
            let old = self.value(field);
            let new = moves.sector(old);
            match field.form {
                Form::Little => sectors.write(field.at, &new.to_le_bytes()),
                Form::Big => sectors.write(field.at, &new.to_be_bytes()),
                Form::Both => sectors.write(field.at, &both(new)),
                Form::Blocks => {
                    let blocks = self.word(field.at).wrapping_sub((old - new) * 4);
                    sectors.write(field.at, &blocks.to_le_bytes());
                }
            }
        }
        for file in &self.files {
            let place = (file.sector, file.length);
            let moved = moves.files.iter().find(|(before, _)| *before == place);
            let (sector, length) = match moved {
                Some((_, after)) => *after,
                None => (moves.sector(file.sector), file.length),
            };
            sectors.write(file.at + 2, &both(sector));
            sectors.write(file.at + 10, &both(length));
        }
        for at in &self.sizes {
            sectors.write(*at, &both(moves.size));
        }
        sectors
    }

    /// Sector and length of each file, tree by tree.
    #[cfg(test)]
    pub(super) fn places(&self) -> Vec<(u32, u32)> {
        let files = self.files.iter();
        files.map(|file| (file.sector, file.length)).collect()
    }

    fn value(&self, field: &SectorField) -> u32 {
        let bytes = self.sectors.read(field.at).unwrap_or_default();
        match field.form {
            Form::Little | Form::Both => u32::from_le_bytes(bytes),
            Form::Big => u32::from_be_bytes(bytes),
            Form::Blocks => u32::from_le_bytes(bytes) / 4,
        }
    }

    fn word(&self, at: u64) -> u32 {
        u32::from_le_bytes(self.sectors.read(at).unwrap_or_default())
    }

    fn byte(&self, at: u64) -> u8 {
        self.sectors.read::<1>(at).map_or(0, |[byte]| byte)
    }
}

fn both(value: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&value.to_le_bytes());
    bytes[4..].copy_from_slice(&value.to_be_bytes());
    bytes
}

struct MapReader<'a> {
    file: &'a File,
    map: IsoMap,
    /// Directories that were found.
    seen: HashSet<u32>,
    /// Those that are still to be read: sector and length.
    pending: Vec<(u32, u32)>,
}

impl MapReader<'_> {
    fn read(&mut self) -> io::Result<()> {
        self.load(0, u64::from(SYSTEM_SECTORS) * SECTOR)?;
        for sector in SYSTEM_SECTORS..SYSTEM_SECTORS + MAX_DESCRIPTORS {
            self.load(sector, SECTOR)?;
            let at = u64::from(sector) * SECTOR;
            if self.map.sectors.read(at + 1) != Some(*b"CD001") {
                return Err(invalid("a volume descriptor is missing"));
            }
            match self.map.byte(at) {
                0 => self.boot_record(at)?,
                1 | 2 => self.volume(at)?,
                255 => return Ok(()),
                _ => {}
            }
        }
        Err(invalid("there are too many volume descriptors"))
    }

    /// Copies the sectors of `length` bytes.
    fn load(&mut self, first: u32, length: u64) -> io::Result<()> {
        let count = u32::try_from(length.div_ceil(SECTOR)).map_err(io::Error::other)?;
        let end = first
            .checked_add(count)
            .ok_or_else(|| invalid("a part is past the end"))?;
        for sector in first..end {
            if self.map.sectors.0.contains_key(&sector) {
                continue;
            }
            if self.map.sectors.0.len() >= MAX_SECTORS {
                return Err(invalid("its directories are too large"));
            }
            let mut bytes = Box::new([0; SECTOR_LENGTH]);
            self.file
                .read_exact_at(bytes.as_mut_slice(), u64::from(sector) * SECTOR)?;
            self.map.sectors.0.insert(sector, bytes);
        }
        Ok(())
    }

    fn field(&mut self, at: u64, form: Form) {
        self.map.fields.push(SectorField { at, form });
    }

    /// A primary or supplementary descriptor: its path tables and directories.
    fn volume(&mut self, at: u64) -> io::Result<()> {
        self.map.sizes.push(at + 80);
        self.map.size = self.map.size.max(self.map.word(at + 80));
        let table_length = self.map.word(at + 132);
        for (place, form) in [
            (140, Form::Little),
            (144, Form::Little),
            (148, Form::Big),
            (152, Form::Big),
        ] {
            let field = SectorField {
                at: at + place,
                form,
            };
            let sector = self.map.value(&field);
            if sector > 0 {
                self.map.fields.push(field);
                self.path_table(sector, table_length, form)?;
            }
        }
        self.record(at + 156);
        while let Some((sector, length)) = self.pending.pop() {
            self.directory(sector, length)?;
        }
        Ok(())
    }

    fn path_table(&mut self, sector: u32, length: u32, form: Form) -> io::Result<()> {
        self.load(sector, length.into())?;
        let start = u64::from(sector) * SECTOR;
        let end = start + u64::from(length);
        let mut at = start;
        while at < end {
            let name = u64::from(self.map.byte(at));
            if name == 0 {
                return Err(invalid("a broken path table"));
            }
            self.field(at + 2, form);
            at += 8 + name + name % 2;
        }
        Ok(())
    }

    /// A directory record.
    fn record(&mut self, at: u64) {
        let (sector, length) = (self.map.word(at + 2), self.map.word(at + 10));
        if self.map.byte(at + 25) & DIRECTORY == 0 {
            self.map.files.push(FileRecord { at, sector, length });
            return;
        }
        self.field(at + 2, Form::Both);
        if self.seen.insert(sector) {
            self.pending.push((sector, length));
        }
    }

    fn directory(&mut self, sector: u32, length: u32) -> io::Result<()> {
        self.load(sector, length.into())?;
        let start = u64::from(sector) * SECTOR;
        let end = start + u64::from(length);
        let mut at = start;
        while at < end {
            let length = u64::from(self.map.byte(at));
            let room = SECTOR - at % SECTOR;
            if length == 0 {
                at += room;
                continue;
            }
            let name = u64::from(self.map.byte(at + 32));
            let use_start = 33 + name + (1 - name % 2);
            if length < 34 || length > room || 33 + name > length {
                return Err(invalid("a broken directory record"));
            }
            self.record(at);
            self.system_use(at + use_start, at + length)?;
            at += length;
        }
        Ok(())
    }

    /// Entries of a directory record beside its own members: one of them leads to more.
    fn system_use(&mut self, mut at: u64, mut end: u64) -> io::Result<()> {
        // Each turn follows one continuation; a record has one or two.
        for _ in 0..8 {
            let mut next = None;
            while at + 4 <= end {
                let entry = u64::from(self.map.byte(at + 2));
                if entry < 4 || at + entry > end {
                    break;
                }
                if self.map.sectors.read(at) == Some(*b"CE") && entry >= 28 {
                    let sector = self.map.word(at + 4);
                    let (offset, length) = (self.map.word(at + 12), self.map.word(at + 20));
                    self.field(at + 4, Form::Both);
                    let start = u64::from(sector) * SECTOR + u64::from(offset);
                    self.load(sector, u64::from(offset) + u64::from(length))?;
                    next = Some((start, start + u64::from(length)));
                }
                at += entry;
            }
            let Some(continued) = next else { return Ok(()) };
            (at, end) = continued;
        }
        Err(invalid("a directory record without an end"))
    }

    /// The boot catalog and the images that it starts.
    fn boot_record(&mut self, at: u64) -> io::Result<()> {
        if self.map.sectors.read(at + 7) != Some(*b"EL TORITO SPECIFICATION") {
            return Ok(());
        }
        self.field(at + 71, Form::Little);
        let catalog = self.map.word(at + 71);
        self.load(catalog, SECTOR)?;
        let start = u64::from(catalog) * SECTOR;
        // After the validation entry: the default one, then sections.
        for entry in (start + 32..start + SECTOR).step_by(32) {
            match self.map.byte(entry) {
                0x88 | 0x00 if self.map.word(entry + 8) > 0 => self.boot_image(entry + 8)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// A boot image, with the tables in it and in the code of a hybrid image that name its own sector.
    fn boot_image(&mut self, at: u64) -> io::Result<()> {
        self.field(at, Form::Little);
        let sector = self.map.word(at);
        let start = u64::from(sector) * SECTOR;
        self.load(sector, 2 * SECTOR)?;
        let has_table = self.map.word(start + 8) == SYSTEM_SECTORS;
        if has_table && self.map.word(start + 12) == sector {
            self.field(start + 12, Form::Little);
        }
        let blocks = sector
            .checked_mul(4)
            .ok_or_else(|| invalid("a boot image is past the end"))?;
        if self.map.word(start + GRUB_LOADER) == blocks.wrapping_add(5) {
            self.field(start + GRUB_LOADER, Form::Blocks);
        }
        // isohybrid names the loader's first block, xorriso with GRUB the one after its first sector.
        if [blocks, blocks.wrapping_add(4)].contains(&self.map.word(HYBRID_LOADER)) {
            self.field(HYBRID_LOADER, Form::Blocks);
        }
        Ok(())
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
