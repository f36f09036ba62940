//! Partition tables of hybrid images, which boot from USB sticks, too.
//!
//! Sources: UEFI 2.10 section 5 (GPT), isohybrid(1): the first partition of the MBR is the whole image, and the backup of
//! the GPT ends it.

use super::iso_map::Sectors;

/// Units: bytes.
const BLOCK: u64 = 512;
const BLOCK_LENGTH: usize = 512;
/// Blocks before the first volume descriptor.
const SYSTEM_BLOCKS: u64 = 64;
/// Blocks of a sector.
pub(super) const SECTOR_BLOCKS: u64 = 4;
/// Blocks of a cylinder: 64 heads, 32 sectors.
const CYLINDER: u64 = 2048;
const MBR_ENTRIES: u64 = 446;
const GPT_SIGNATURE: &[u8; 8] = b"EFI PART";
const GPT_HEADER: usize = 92;
const GPT_ENTRY: usize = 128;
/// Blocks of 128 entries.
const GPT_BLOCKS: u64 = 32;

/// How blocks of 512 bytes move.
pub(super) struct BlockMoves<'a> {
    /// The new number of a block that is kept.
    pub(super) block: &'a dyn Fn(u64) -> u64,
    /// Blocks that are left out.
    pub(super) cut: std::ops::Range<u64>,
    /// Length of the image before, with everything after its last file. Units: blocks.
    pub(super) length_before: u64,
    /// End of the last file before. Units: blocks.
    pub(super) end_before: u64,
    /// End of the last file. Units: blocks.
    pub(super) end: u64,
}

impl BlockMoves<'_> {
    /// The new place of a partition, given its first block and the one after it, in an image of `total` blocks.
    fn partition(&self, first: u64, end: u64, total: u64) -> (u64, u64) {
        let new_first = (self.block)(first);
        // The whole image: with the padding at its end, or only its files.
        if first < SYSTEM_BLOCKS && end > self.end_before {
            return (
                new_first,
                total.saturating_sub(self.length_before.saturating_sub(end)),
            );
        }
        if first < SYSTEM_BLOCKS {
            return (new_first, self.end);
        }
        let cut = end
            .min(self.cut.end)
            .saturating_sub(first.max(self.cut.start));
        (new_first, new_first + (end - first).saturating_sub(cut))
    }
}

/// Adapts the tables in the first sectors. Returns the bytes after the last file: padding, and the backup table.
pub(super) fn adapt(sectors: &mut Sectors, moves: &BlockMoves<'_>) -> Vec<u8> {
    let is_mbr = sectors.read(510) == Some([0x55, 0xaa]);
    let is_gpt = sectors.read(BLOCK) == Some(*GPT_SIGNATURE);
    if !is_mbr && !is_gpt {
        return Vec::new();
    }
    let backup = if is_gpt { GPT_BLOCKS + 1 } else { 0 };
    // isohybrid pads to whole cylinders, other tools to sectors.
    let is_padded = moves.length_before.is_multiple_of(CYLINDER);
    let unit = if is_padded { CYLINDER } else { SECTOR_BLOCKS };
    let total = (moves.end + backup).next_multiple_of(unit);
    if is_mbr {
        adapt_mbr(sectors, moves, total);
    }
    let length = usize::try_from((total - moves.end) * BLOCK).unwrap_or(0);
    let mut tail = vec![0; length];
    if is_gpt && let Some(backup) = adapt_gpt(sectors, moves, total) {
        let start = length.saturating_sub(backup.len());
        tail[start..].copy_from_slice(&backup);
    }
    tail
}

fn adapt_mbr(sectors: &mut Sectors, moves: &BlockMoves<'_>, total: u64) {
    for number in 0..4 {
        let at = MBR_ENTRIES + number * 16;
        let word = |at| u64::from(u32::from_le_bytes(sectors.read(at).unwrap_or_default()));
        let (first, count) = (word(at + 8), word(at + 12));
        if count == 0 {
            continue;
        }
        let (new_first, new_end) = moves.partition(first, first + count, total);
        let new_count = new_end.saturating_sub(new_first);
        let words = [new_first, new_count].map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        sectors.write(at + 8, &words[0].to_le_bytes());
        sectors.write(at + 12, &words[1].to_le_bytes());
        if let Some(end) = last_cylinder(sectors.read(at + 5).unwrap_or_default(), first, total) {
            sectors.write(at + 5, &end);
        }
    }
}

/// The end of a partition from block 0 in cylinders, heads and sectors: firmware derives the geometry from it.
fn last_cylinder([head, sector, _]: [u8; 3], first: u64, total: u64) -> Option<[u8; 3]> {
    let track = u64::from(sector & 0x3f);
    let cylinder = (u64::from(head) + 1) * track;
    if first != 0 || cylinder == 0 || !total.is_multiple_of(cylinder) {
        return None;
    }
    let last = (total / cylinder).min(1024) - 1;
    let high = u8::try_from(last >> 8).ok()? << 6;
    Some([
        head,
        (sector & 0x3f) | high,
        u8::try_from(last & 0xff).ok()?,
    ])
}

/// Adapts the table and returns its backup: the entries, then the header. None if the entries are elsewhere.
fn adapt_gpt(sectors: &mut Sectors, moves: &BlockMoves<'_>, total: u64) -> Option<Vec<u8>> {
    let mut header: [u8; BLOCK_LENGTH] = sectors.read(BLOCK)?;
    let long = |header: &[u8], at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(header.get(at..at + 8)?.try_into().ok()?))
    };
    let word = |header: &[u8], at: usize| -> Option<u32> {
        Some(u32::from_le_bytes(header.get(at..at + 4)?.try_into().ok()?))
    };
    let entries_at = long(&header, 72)?;
    let (count, size) = (word(&header, 80)?, word(&header, 84)?);
    let length = usize::try_from(count)
        .ok()?
        .checked_mul(usize::try_from(size).ok()?)?;
    let blocks = length.div_ceil(BLOCK_LENGTH) as u64;
    let is_inside = entries_at
        .checked_add(blocks)
        .is_some_and(|end| end <= SYSTEM_BLOCKS);
    if !is_inside || blocks > GPT_BLOCKS || usize::try_from(size).ok()? < GPT_ENTRY {
        return None;
    }
    let mut entries = Vec::with_capacity(length);
    for at in (entries_at * BLOCK..).take(length) {
        entries.push(sectors.read::<1>(at)?[0]);
    }
    for entry in entries.chunks_exact_mut(usize::try_from(size).ok()?) {
        if entry[..16].iter().all(|byte| *byte == 0) {
            continue;
        }
        let (first, last) = (long(entry, 32)?, long(entry, 40)?);
        let (new_first, new_end) = moves.partition(first, last.checked_add(1)?, total);
        entry[32..40].copy_from_slice(&new_first.to_le_bytes());
        entry[40..48].copy_from_slice(&new_end.saturating_sub(1).to_le_bytes());
    }
    header[32..40].copy_from_slice(&(total - 1).to_le_bytes());
    header[48..56].copy_from_slice(&(total - GPT_BLOCKS - 2).to_le_bytes());
    header[88..92].copy_from_slice(&crc32fast::hash(&entries).to_le_bytes());
    let mut backup = header;
    sign(&mut header);
    backup[24..32].copy_from_slice(&(total - 1).to_le_bytes());
    backup[32..40].copy_from_slice(&1_u64.to_le_bytes());
    backup[72..80].copy_from_slice(&(total - 1 - blocks).to_le_bytes());
    sign(&mut backup);
    sectors.write(BLOCK, &header);
    sectors.write(entries_at * BLOCK, &entries);
    entries.resize(usize::try_from(blocks).ok()? * BLOCK_LENGTH, 0);
    entries.extend(backup);
    Some(entries)
}

fn sign(header: &mut [u8; BLOCK_LENGTH]) {
    header[16..20].fill(0);
    let sum = crc32fast::hash(&header[..GPT_HEADER]);
    header[16..20].copy_from_slice(&sum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD_TOTAL: u64 = 8192;
    const OLD_END: u64 = 8100;
    const CUT: std::ops::Range<u64> = 1000..5000;

    fn adapted(table: &[(u64, Vec<u8>)], end: u64) -> (Sectors, Vec<u8>) {
        let mut sectors = Sectors::of(&vec![0; 32768]);
        for (at, bytes) in table {
            sectors.write(*at, bytes);
        }
        let block = |block: u64| {
            if block >= CUT.end {
                block - 4000
            } else {
                block
            }
        };
        let moves = BlockMoves {
            block: &block,
            cut: CUT,
            length_before: OLD_TOTAL,
            end_before: OLD_END,
            end,
        };
        let tail = adapt(&mut sectors, &moves);
        (sectors, tail)
    }

    fn mbr_entry(number: u64, first: u32, count: u32) -> (u64, Vec<u8>) {
        let chs = [0x80, 0, 1, 0, 0x17, 63, 32, 3];
        let numbers = [first.to_le_bytes(), count.to_le_bytes()].concat();
        (446 + number * 16, [chs.to_vec(), numbers].concat())
    }

    fn gpt_entry(first: u64, last: u64) -> Vec<u8> {
        let mut entry = vec![1; 32];
        entry.extend(first.to_le_bytes());
        entry.extend(last.to_le_bytes());
        entry.resize(GPT_ENTRY, 0);
        entry
    }

    fn gpt(entries: &[Vec<u8>]) -> Vec<(u64, Vec<u8>)> {
        let mut header = GPT_SIGNATURE.to_vec();
        header.extend([0, 0, 1, 0, 92, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for number in [1, OLD_TOTAL - 1, 34, OLD_TOTAL - 34] {
            header.extend(number.to_le_bytes());
        }
        header.extend([7; 16]);
        header.extend(2_u64.to_le_bytes());
        header.extend(128_u32.to_le_bytes());
        header.extend(128_u32.to_le_bytes());
        header.extend([0; 4]);
        vec![
            (512, header),
            (1024, entries.concat()),
            (510, vec![0x55, 0xaa]),
        ]
    }

    fn word(sectors: &Sectors, at: u64) -> u32 {
        u32::from_le_bytes(sectors.read(at).unwrap())
    }

    #[test]
    fn partitions_follow_their_files() {
        let mut table = vec![(510, vec![0x55, 0xaa])];
        table.extend([
            mbr_entry(0, 0, 8192),
            mbr_entry(1, 180, 100),
            mbr_entry(2, 6000, 100),
            mbr_entry(3, 900, 5000),
        ]);
        let (sectors, tail) = adapted(&table, 4100);
        let places: Vec<_> = (0..4)
            .map(|number| 446 + number * 16)
            .map(|at| (word(&sectors, at + 8), word(&sectors, at + 12)))
            .collect();
        // Padded to whole cylinders, as before.
        assert_eq!(places, [(0, 6144), (180, 100), (2000, 100), (900, 1000)]);
        assert_eq!(tail.len() as u64, (6144 - 4100) * BLOCK);
        assert_eq!(
            sectors.read(446 + 5),
            Some([63, 32, 2]),
            "the last of three cylinders"
        );
    }

    #[test]
    fn both_copies_of_a_gpt_agree() {
        let table = gpt(&[gpt_entry(0, OLD_END - 1), gpt_entry(6000, 6099)]);
        let (sectors, tail) = adapted(&table, 4120);
        let total = 6144_u64;
        let header: [u8; 512] = sectors.read(512).unwrap();
        let backup = &tail[tail.len() - 512..];
        let entries = &tail[tail.len() - 33 * 512..tail.len() - 512];
        for (header, own, other, entries_at) in [
            (&header[..], 1, total - 1, 2),
            (backup, total - 1, 1, total - 33),
        ] {
            let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
            assert_eq!((long(24), long(32), long(72)), (own, other, entries_at));
            assert_eq!(long(48), total - 34);
            assert_eq!(header[88..92], crc32fast::hash(entries).to_le_bytes());
            let mut unsigned = header[..92].to_vec();
            unsigned[16..20].fill(0);
            assert_eq!(header[16..20], crc32fast::hash(&unsigned).to_le_bytes());
        }
        let place = |at: usize| {
            let long = |at: usize| u64::from_le_bytes(entries[at..at + 8].try_into().unwrap());
            (long(at + 32), long(at + 40))
        };
        assert_eq!(place(0), (0, 4119), "the files without the padding");
        assert_eq!(place(128), (2000, 2099));
        let mut first = Vec::new();
        for at in 1024..1024 + 128 * 128 {
            first.extend(sectors.read::<1>(at).unwrap());
        }
        assert_eq!(first, entries);
    }

    #[test]
    fn images_without_tables_end_with_their_files() {
        let (_, tail) = adapted(&[], 4100);
        assert_eq!(tail.len(), 0);
        let mut broken = gpt(&[]);
        broken[0].1[72..80].copy_from_slice(&u64::MAX.to_le_bytes());
        let (_, tail) = adapted(&broken, 4100);
        assert!(
            tail.iter().all(|byte| *byte == 0),
            "no backup of a table that is elsewhere"
        );
    }
}
