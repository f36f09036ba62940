//! ISO images with files left out and replaced, as pieces of the original: nothing is unpacked, and nothing is copied.
//!
//! A replacement that fits into its file's sectors stays there; a longer one is appended. Sector numbers are adapted
//! ([`super::iso_map`]), and so are partition tables.

use std::ops::Range;

use super::iso_map::{IsoMap, Moves, SECTOR};
use super::partition_table::{self, BlockMoves, SECTOR_BLOCKS};
use crate::content::{ContentPieces, Overlap, Overlay, Piece};

/// Headers with the offsets of the embed areas in images before 2021: start, first bytes, length. They would be wrong; tools
/// find the ignition by its file, too.
const AREA_HEADERS: [(u64, &[u8; 8], usize); 2] =
    [(32_672, b"coreKarg", 72), (32_744, b"coreiso+", 24)];

/// Reason why an image's files cannot be moved.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The image shares sectors between files, or its end is past the format's limit.
    #[error("the layout of the image does not allow it: {0}")]
    Layout(&'static str),
    /// Parts of the image overlap.
    #[error("parts of the image overlap")]
    Overlap(#[from] Overlap),
}

/// New content of a file.
#[derive(Debug)]
pub(super) struct Replacement {
    /// The file. Units: bytes.
    pub(super) file: Range<u64>,
    pub(super) content: ContentPieces,
}

/// Changes of an image.
#[derive(Debug, Default)]
pub(super) struct IsoEdit {
    /// A file that is left out. Units: bytes.
    pub(super) removed: Option<Range<u64>>,
    pub(super) replacements: Vec<Replacement>,
    /// Bytes that are replaced where they are.
    pub(super) overlays: Vec<Overlay>,
}

/// The image with the changes.
pub(super) fn edited(
    map: &IsoMap,
    image: &Piece,
    edit: IsoEdit,
) -> Result<ContentPieces, EditError> {
    let mut moves = Moves {
        cut: 0..0,
        files: Vec::new(),
        size: map.size,
    };
    if let Some(file) = &edit.removed {
        let (first, length) = place(file)?;
        let end = sector(file.end.div_ceil(SECTOR))?;
        moves.cut = first..end;
        if !map.is_apart(&moves.cut) || end > map.size {
            return Err(EditError::Layout("other parts share sectors with a file"));
        }
        moves.size -= end - first;
        moves.files.push(((first, length), (first, 0)));
    }
    let mut overlays = edit.overlays;
    let mut appended = ContentPieces::new();
    for Replacement { file, content } in edit.replacements {
        let before = place(&file)?;
        let room = (file.end - file.start).next_multiple_of(SECTOR);
        let length = content.length();
        let length_word =
            u32::try_from(length).map_err(|_| EditError::Layout("a file is too long"))?;
        let padding = Piece::Zeros(length.next_multiple_of(SECTOR).max(room) - length);
        if length <= room {
            overlays.extend(content.overlays(file.start));
            overlays.push(Overlay {
                start: file.start + length,
                piece: padding,
            });
            moves
                .files
                .push((before, (moves.sector(before.0), length_word)));
        } else {
            moves.files.push((before, (moves.size, length_word)));
            let padding = Piece::Zeros(length.next_multiple_of(SECTOR) - length);
            appended.append(content);
            appended.push(padding);
            moves.size = moves
                .size
                .checked_add(sector(length.div_ceil(SECTOR))?)
                .ok_or(EditError::Layout("the image is too long"))?;
        }
    }
    let mut sectors = map.moved(&moves);
    for (start, magic, length) in AREA_HEADERS {
        if sectors.read(start) == Some(*magic) {
            sectors.write(start, &vec![0; length]);
        }
    }
    let tail = adapt_partitions(&mut sectors, image, map.size, &moves);
    for (start, bytes) in sectors.runs() {
        let piece = Piece::Memory(bytes.into());
        overlays.push(Overlay { start, piece });
    }
    let mut whole = kept(image, map.size, &moves, overlays)?;
    whole.append(appended);
    whole.push(Piece::Memory(tail.into()));
    Ok(whole)
}

fn adapt_partitions(
    sectors: &mut super::iso_map::Sectors,
    image: &Piece,
    size: u32,
    moves: &Moves,
) -> Vec<u8> {
    let cut = u64::from(moves.cut.start) * SECTOR_BLOCKS..u64::from(moves.cut.end) * SECTOR_BLOCKS;
    let block = |block: u64| match block {
        kept if kept >= cut.end => kept - (cut.end - cut.start),
        kept => kept,
    };
    let moves = BlockMoves {
        block: &block,
        cut: cut.clone(),
        length_before: image.length() / 512,
        end_before: u64::from(size) * SECTOR_BLOCKS,
        end: u64::from(moves.size) * SECTOR_BLOCKS,
    };
    partition_table::adapt(sectors, &moves)
}

/// The image up to its last sector without the cut, with overlays of the parts beside it.
fn kept(
    image: &Piece,
    size: u32,
    moves: &Moves,
    overlays: Vec<Overlay>,
) -> Result<ContentPieces, EditError> {
    let bytes = |sector: u32| u64::from(sector) * SECTOR;
    let (cut_start, cut_end) = (bytes(moves.cut.start), bytes(moves.cut.end));
    let end = bytes(size).min(image.length());
    let (before, mut after): (Vec<_>, Vec<_>) = overlays
        .into_iter()
        .filter(|overlay| overlay.piece.length() > 0)
        .partition(|overlay| overlay.start < cut_start);
    for overlay in &mut after {
        overlay.start = overlay.start.checked_sub(cut_end).ok_or(EditError::Layout(
            "a part of the image is within a file that is left out",
        ))?;
    }
    let mut content = ContentPieces::overlaid(&image.part(0..cut_start), before)?;
    content.append(ContentPieces::overlaid(&image.part(cut_end..end), after)?);
    content.push(Piece::Zeros(bytes(size) - end));
    Ok(content)
}

/// First sector and length of a file.
fn place(file: &Range<u64>) -> Result<(u32, u32), EditError> {
    let length = u32::try_from(file.end - file.start);
    let length = length.map_err(|_| EditError::Layout("a file is too long"))?;
    Ok((sector(file.start / SECTOR)?, length))
}

fn sector(number: u64) -> Result<u32, EditError> {
    u32::try_from(number).map_err(|_| EditError::Layout("the image is too long"))
}
