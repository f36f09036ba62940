//! Mutations of the corpus of the fuzz targets.

mod bodies;

use std::path::Path;

use faults::{LONG_RUN, run_mutations};

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
/// Runs `body` on the corpus below the crate's folder and on mutations of it.
fn run(folder: &str, body: fn(&[u8]), cases: u32) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    run_mutations(&folder, WORDS, body, cases);
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
    run(CONFIGS, bodies::config, LONG_RUN);
}

#[test]
fn broken_yaml_ends_well() {
    run(YAML, bodies::yaml, 1000);
}

#[test]
#[ignore = "takes minutes"]
fn very_much_broken_yaml_ends_well() {
    run(YAML, bodies::yaml, LONG_RUN);
}

#[test]
fn broken_butane_documents_end_well() {
    run(BUTANE, bodies::butane, 1000);
}

#[test]
#[ignore = "takes minutes"]
fn very_many_broken_butane_documents_end_well() {
    run(BUTANE, bodies::butane, LONG_RUN);
}
