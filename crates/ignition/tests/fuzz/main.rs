//! Mutations of the corpus of the fuzz targets.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod bodies;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Tokens with a meaning in configurations.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u",
    "\\ud83d",
    "\n",
    "\r\n",
    "\t",
    " ",
    "---\n",
    "- ",
    "  ",
    "with_mount_unit: true\n",
    "inline: ",
    "variant: openshift\n",
    ": ",
    "&a ",
    "*a",
    "<<: ",
    "!!int ",
    "|\n",
    "null",
    "true",
    "0",
    "-1",
    "1e400",
    "9223372036854775808",
    "3.0.0",
    "3.5.0",
    "\"path\":\"/a\",",
    "\"storage\":{\"files\":[{}]},",
    "\"ignition\":{\"version\":\"3.4.0\"},",
    "Path",
    "ſ",
    "/../",
    "%41",
    "data:,",
    "@",
    "\u{feff}",
    "\u{2028}",
    "é",
];
/// Mutations of the long run; some minutes.
const LONG: u32 = 300_000;

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

fn edit() -> impl Strategy<Value = Edit> {
    let word = prop_oneof![
        4 => select(WORDS).prop_map(|word| word.as_bytes().to_vec()),
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

fn corpus(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    assert!(files.len() > 10, "the corpus is missing");
    files
        .into_iter()
        .map(|path| fs::read(path).unwrap())
        .collect()
}

/// Runs `body` on the corpus and on `cases` mutations of it.
fn run(folder: &str, body: fn(&[u8]), cases: u32) {
    let corpus = corpus(folder);
    for data in &corpus {
        body(data);
    }
    let broken =
        (select(corpus), prop::collection::vec(edit(), 1..8)).prop_map(|(mut data, edits)| {
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

const CONFIGS: &str = "fixtures/corpus";
const YAML: &str = "fuzz/corpus/yaml";
const BUTANE: &str = "fixtures/butane/inputs";

#[test]
fn broken_configurations_end_well() {
    run(CONFIGS, bodies::config, 1000);
}

#[test]
#[ignore = "takes minutes"]
fn very_many_broken_configurations_end_well() {
    run(CONFIGS, bodies::config, LONG);
}

#[test]
fn broken_yaml_ends_well() {
    run(YAML, bodies::yaml, 1000);
}

#[test]
#[ignore = "takes minutes"]
fn very_much_broken_yaml_ends_well() {
    run(YAML, bodies::yaml, LONG);
}

#[test]
fn broken_butane_documents_end_well() {
    run(BUTANE, bodies::butane, 1000);
}

#[test]
#[ignore = "takes minutes"]
fn very_many_broken_butane_documents_end_well() {
    run(BUTANE, bodies::butane, LONG);
}
