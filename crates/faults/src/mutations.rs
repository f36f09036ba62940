//! Broken input for parsers: mutations of a corpus.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Mutations of a long run; some minutes.
pub const LONG_RUN: u32 = 300_000;

#[derive(Debug, Clone)]
enum Edit {
    Insert(Index, Vec<u8>),
    Replace(Index, u8),
    Remove(Index, usize),
    Repeat(Index, usize, Index),
}

impl Edit {
    fn apply(&self, data: &mut Vec<u8>) {
        let size = data.len() + 1;
        let end = |from: usize, length: usize| data.len().min(from + length);
        match self {
            Self::Insert(at, bytes) => {
                drop(data.splice(at.index(size)..at.index(size), bytes.clone()));
            }
            Self::Replace(at, byte) => {
                if let Some(old) = data.get_mut(at.index(size)) {
                    *old = *byte;
                }
            }
            Self::Remove(at, length) => {
                let from = at.index(size);
                data.drain(from..end(from, *length));
            }
            Self::Repeat(at, length, to) => {
                let from = at.index(size);
                let copy = data[from..end(from, *length)].to_vec();
                data.splice(to.index(size)..to.index(size), copy);
            }
        }
    }
}

fn edit(words: &'static [&'static str]) -> impl Strategy<Value = Edit> {
    let word = prop_oneof![
        4 => select(words).prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ];
    prop_oneof![
        (any::<Index>(), word).prop_map(|(at, word)| Edit::Insert(at, word)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        (any::<Index>(), 1..20_usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        (any::<Index>(), 1..60_usize, any::<Index>())
            .prop_map(|(at, length, to)| Edit::Repeat(at, length, to)),
    ]
}

/// The files of a folder, sorted by name.
fn files(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 10, "{} is not complete", folder.display());
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Runs `body` on the files of a folder and on `cases` mutations of them. Mutations insert `words`, which have a meaning
/// for the parser, among others.
pub fn run_mutations(folder: &Path, words: &'static [&'static str], body: fn(&[u8]), cases: u32) {
    let corpus = files(folder);
    for data in &corpus {
        body(data);
    }
    let broken =
        (select(corpus), prop::collection::vec(edit(words), 1..8)).prop_map(|(mut data, edits)| {
            for edit in &edits {
                edit.apply(&mut data);
            }
            data
        });
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(data in broken)| body(&data));
}

/// Mutations between two looks at the clock.
const BATCH: u32 = 2000;
/// Numbers at which arithmetic of lengths and offsets goes wrong.
const NUMBERS: &[u64] = &[
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX.cast_unsigned(),
    u64::MAX,
];

/// A change of a file whose parts have fixed places.
#[derive(Debug, Clone)]
enum BinaryEdit {
    /// A number of so many bytes, with either end first.
    Number(Index, usize, u64, bool),
    /// A part over another one.
    Copy(Index, usize, Index),
    Truncate(Index),
}

impl BinaryEdit {
    fn apply(&self, data: &mut Vec<u8>) {
        if data.is_empty() {
            return;
        }
        let size = data.len();
        match self {
            Self::Number(at, width, number, is_little) => {
                let (at, width) = (at.index(size), *width);
                let bytes = number.to_le_bytes();
                for (offset, place) in data[at..size.min(at + width)].iter_mut().enumerate() {
                    *place = bytes[if *is_little {
                        offset
                    } else {
                        width - 1 - offset
                    }];
                }
            }
            Self::Copy(from, length, to) => {
                let from = from.index(size);
                let copy = data[from..size.min(from + length)].to_vec();
                let to = to.index(size);
                let end = size.min(to + copy.len());
                data[to..end].copy_from_slice(&copy[..end - to]);
            }
            Self::Truncate(at) => data.truncate(at.index(size)),
        }
    }
}

fn binary_edit() -> impl Strategy<Value = BinaryEdit> {
    let number = prop_oneof![
        3 => select(NUMBERS),
        1 => any::<u64>(),
        2 => 0..4096_u64,
    ];
    let width = select(&[1_usize, 2, 4, 8][..]);
    prop_oneof![
        12 => (any::<Index>(), width, number, any::<bool>())
            .prop_map(|(at, width, number, end)| BinaryEdit::Number(at, width, number, end)),
        2 => (any::<Index>(), 1..64_usize, any::<Index>())
            .prop_map(|(from, length, to)| BinaryEdit::Copy(from, length, to)),
        1 => any::<Index>().prop_map(BinaryEdit::Truncate),
    ]
}

/// Of the long runs of [`fuzz_tests`](crate::fuzz_tests).
pub const FUZZ_TIME: Duration = Duration::from_mins(30);

/// For each reader of binary files, a test of so many mutations of a corpus, and an ignored one of half an hour of them.
#[macro_export]
macro_rules! fuzz_tests {
    ($($body:ident: $corpus:expr, $cases:literal, $short:ident, $long:ident;)*) => {
        $(
            #[test]
            fn $short() {
                $crate::run_binary_mutations(&$corpus, $body, $cases);
            }

            #[test]
            #[ignore = "takes half an hour"]
            fn $long() {
                let count = $crate::run_binary_mutations_for(&$corpus, $body, $crate::FUZZ_TIME);
                println!("{count} mutations");
            }
        )*
    };
}

/// The files that once broke a reader, in a folder that there is with the first of them.
pub fn kept(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Units: bytes of a block of a tar archive.
const TAR_BLOCK: usize = 512;
/// Places in a header. Source: POSIX, "ustar Interchange Format".
const TAR_CHECKSUM: std::ops::Range<usize> = 148..156;
const TAR_MAGIC: std::ops::Range<usize> = 257..262;

/// A tar archive whose headers have the checksums of their bytes, so that a change in one is not refused for that alone.
pub fn with_tar_checksums(archive: &[u8]) -> Vec<u8> {
    let mut archive = archive.to_vec();
    for block in archive.chunks_exact_mut(TAR_BLOCK) {
        if &block[TAR_MAGIC] == b"ustar" {
            block[TAR_CHECKSUM].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[TAR_CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    archive
}

/// Runs `body` on binary files and on `cases` mutations of them: numbers in other places or of other values, parts over
/// other parts, ends before the end.
pub fn run_binary_mutations(corpus: &[Vec<u8>], body: impl Fn(&[u8]), cases: u32) {
    for data in corpus {
        body(data);
    }
    mutate(corpus, &body, cases);
}

/// Runs `body` on mutations, as [`run_binary_mutations`] does, until `time` is over; returns how many there were.
pub fn run_binary_mutations_for(corpus: &[Vec<u8>], body: impl Fn(&[u8]), time: Duration) -> u64 {
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < time {
        mutate(corpus, &body, BATCH);
        count += u64::from(BATCH);
    }
    count
}

fn mutate(corpus: &[Vec<u8>], body: &impl Fn(&[u8]), cases: u32) {
    let broken = (
        select(corpus.to_vec()),
        prop::collection::vec(binary_edit(), 1..6),
    )
        .prop_map(|(mut data, edits)| {
            for edit in &edits {
                edit.apply(&mut data);
            }
            data
        });
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    };
    proptest!(config, |(data in broken)| body(&data));
}
