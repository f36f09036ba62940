//! Each term of the glossary names the file that implements it.

use std::collections::BTreeSet;
use std::fs;

use super::finding::TidyFinding;
use super::source::WorkspaceSources;
use crate::cargo::root;

const GLOSSARY: &str = "docs/glossary.md";
/// The first cell of a table's head.
const HEAD: &str = "Term";

pub(super) fn places(_: &WorkspaceSources) -> Vec<TidyFinding> {
    let text = fs::read_to_string(root().join(GLOSSARY)).unwrap_or_default();
    findings(&text, |path| root().join(path).is_file())
}

fn findings(text: &str, is_file: impl Fn(&str) -> bool) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut terms = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [_, term, _, place, _] = cells.as_slice() else {
            continue;
        };
        if *term == HEAD || term.starts_with("---") {
            continue;
        }
        let path = place.trim_matches('`');
        let remedy = if !is_file(path) {
            format!("{path} is not a file: name the one that implements {term:?}")
        } else if !terms.insert(*term) {
            format!("{term:?} has a line already")
        } else {
            continue;
        };
        findings.push(TidyFinding {
            place: format!("{GLOSSARY}:{}", index + 1),
            remedy,
        });
    }
    if terms.is_empty() {
        findings.push(TidyFinding {
            place: GLOSSARY.to_owned(),
            remedy: "it has no terms".to_owned(),
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_have_one_line_and_a_file() {
        let table = "| Term | Meaning | Where |\n|---|---|---|\n";
        let places = |rows: &str| {
            let found = findings(&format!("{table}{rows}"), |path| path == "a.rs");
            found.into_iter().map(|it| it.place).collect::<Vec<_>>()
        };
        assert!(places("| blob | Content. | `a.rs` |\n").is_empty());
        assert_eq!(
            places("| blob | . | `a.rs` |\n| tag | . | `b.rs` |\n| blob | . | `a.rs` |\n"),
            [format!("{GLOSSARY}:4"), format!("{GLOSSARY}:5")]
        );
        assert_eq!(places(""), [GLOSSARY]);
    }
}
