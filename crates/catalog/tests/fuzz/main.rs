//! Mutations of the corpus of the fuzz targets.

mod bodies;

use std::path::Path;

use faults::{LONG_RUN, run_mutations};

/// Tokens with a meaning in catalog files.
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
    "...\n",
    "# ",
    "- ",
    "? ",
    ": ",
    "&a ",
    "*a",
    "<<: ",
    "!!binary ",
    "!!int ",
    "!",
    "|\n",
    ">-\n",
    "'",
    "%",
    "~",
    "null",
    "true",
    "1e400",
    "-0",
    "0x1f",
    ".inf",
    "\u{feff}",
    "\u{2028}",
    "\u{85}",
    "é",
    "{\"schema\":\"a\"}",
    "schema: a\n",
    "schema",
    "Package",
    "NAME",
    "||",
    ">=",
    "1.x",
];
/// Runs `body` on the corpus below the crate's folder and on mutations of it.
fn run(folder: &str, body: fn(&[u8]), cases: u32) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    run_mutations(&folder, WORDS, body, cases);
}

macro_rules! targets {
    ($($target:ident = $short:ident, $long:ident;)*) => {
        $(
            #[test]
            fn $short() {
                run(concat!("fuzz/corpus/", stringify!($target)), bodies::$target, 1000);
            }

            #[test]
            #[ignore = "takes minutes"]
            fn $long() {
                run(concat!("fuzz/corpus/", stringify!($target)), bodies::$target, LONG_RUN);
            }
        )*
    };
}

targets! {
    read = broken_files_end_well, very_many_broken_files_end_well;
    package = broken_packages_end_well, very_many_broken_packages_end_well;
    normal = broken_texts_end_well, very_many_broken_texts_end_well;
    range = broken_ranges_end_well, very_many_broken_ranges_end_well;
}
