//! Broken input for parsers: mutations of a corpus.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::path::Path;

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
