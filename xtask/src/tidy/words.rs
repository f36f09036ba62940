//! Rule about words: those that docs/glossary.md replaces by terms become fewer in every crate.
//!
//! The patterns and the tests spell them so that this file does not match.

use std::sync::LazyLock;

use regex::Regex;

use super::finding::TidyFinding;
use super::record::{self, ClassCounts, CountClass, CrateCounts};
use super::source::WorkspaceSources;

/// In lines of Rust, also as parts of identifiers.
static VERBS: CountClass = CountClass {
    key: "verbs",
    noun: concat!("lines with `to", "ld`"),
    advice: concat!(
        "write `to",
        "ld` as report, state, print or output; see docs/glossary.md"
    ),
};
/// In lines of comments and docs.
static PRONOUNS: CountClass = CountClass {
    key: "pronouns",
    noun: "comment lines with `what` or `who`",
    advice: "write `what …` and `who …` as the field's noun; see docs/glossary.md",
};
static VERB: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i-u)(?:\b|_)t(?:old|ells?)(?:\b|_)").expect("the tests use this constant")
});
static PRONOUN: LazyLock<Regex> = LazyLock::new(|| {
    let words = "what|who|whom|whoever|whatever|nobody|somebody|everybody|goes on|is gone|lies";
    Regex::new(&format!(r"(?i-u)\b(?:{words})\b")).expect("the tests use this constant")
});

/// Finds the crates whose counts differ from their record.
pub(super) fn falling(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    record::check(&counts(sources), &[&VERBS, &PRONOUNS])
}

/// Counts of every crate, also those of zero.
pub(super) fn counts(sources: &WorkspaceSources) -> CrateCounts {
    let mut counts = CrateCounts::new();
    for file in &sources.files {
        let Some(owner) = owner(&file.path) else {
            continue;
        };
        let classes = counts.entry(owner.to_owned()).or_default();
        count(&file.text, classes);
    }
    counts
}

/// The crate of a file: its folder below `crates`, or `tests` and `xtask`.
fn owner(path: &str) -> Option<&str> {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    Some(path.split_once('/')?.0)
}

fn count(text: &str, classes: &mut ClassCounts) {
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let verbs = text.lines().filter(|line| VERB.is_match(line));
    let pronouns = text.lines().filter(is_comment);
    let pronouns = pronouns.filter(|line| PRONOUN.is_match(line));
    *classes.entry(VERBS.key.to_owned()).or_default() += verbs.count();
    *classes.entry(PRONOUNS.key.to_owned()).or_default() += pronouns.count();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::source::SourceFile;

    const PAST: &str = concat!("to", "ld");
    const PRESENT: &str = concat!("te", "lls");

    fn found(text: &str) -> (usize, usize) {
        let mut classes = ClassCounts::new();
        count(text, &mut classes);
        (classes[VERBS.key], classes[PRONOUNS.key])
    }

    #[test]
    fn verbs_count_in_prose_and_in_identifiers() {
        for text in [
            format!("// It {PRESENT} the client."),
            format!("let {PAST} = 1;"),
            format!("fn client_is_{PAST}_to_wait() {{}}"),
            format!("const {}_LINES: usize = 1;", PAST.to_uppercase()),
        ] {
            assert_eq!(found(&text), (1, 0), "{text}");
        }
        assert_eq!(found(&format!("{PAST}({PAST})\n{PAST}\n")), (2, 0));
        for text in ["fn satellites() {}", "// untold", "// retells", "let tall;"] {
            assert_eq!(found(text), (0, 0), "{text}");
        }
    }

    #[test]
    fn pronouns_count_in_comments_alone() {
        for text in [
            "/// What a client sends.",
            "//! the client who asks",
            "    // NOBODY",
            "// the upload goes on",
            "// the folder where it lies",
        ] {
            assert_eq!(found(text), (0, 1), "{text}");
        }
        for text in [
            "let what = \"who\"; // what",
            "/// Somewhat whole, with families.",
            "/// It goes away.",
        ] {
            assert_eq!(found(text), (0, 0), "{text}");
        }
    }

    #[test]
    fn counts_are_per_crate() {
        let file = |path: &str, text: &str| SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let sources = WorkspaceSources {
            files: vec![
                file("crates/registry/src/lib.rs", "//! What is here.\n"),
                file("crates/registry/tests/it/main.rs", "// who\n"),
                file("tests/src/lib.rs", ""),
            ],
            ..WorkspaceSources::default()
        };
        let counts = counts(&sources);
        assert_eq!(counts["registry"][PRONOUNS.key], 2);
        assert_eq!(counts["tests"][VERBS.key], 0);
        assert_eq!(counts.len(), 2);
    }
}
