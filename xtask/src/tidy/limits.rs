//! Rule about limits: each has a test.

use std::collections::BTreeSet;
use std::fs;

use super::finding::TidyFinding;
use super::source::WorkspaceSources;
use crate::cargo::root;
use crate::codegen::LIMITS;

/// Precedes the name of a limit in the comment of its test.
const MARK: &str = "// limit: ";

/// Finds the documented limits that no test names.
pub(super) fn tested(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    let Ok(documented) = fs::read_to_string(root().join(LIMITS)) else {
        return vec![TidyFinding {
            place: LIMITS.to_owned(),
            remedy: "run cargo xtask codegen".to_owned(),
        }];
    };
    let texts = sources.files.iter().map(|file| file.text.as_str());
    untested(&documented, texts)
}

fn untested<'a>(documented: &str, texts: impl Iterator<Item = &'a str>) -> Vec<TidyFinding> {
    let tested: BTreeSet<&str> = texts
        .flat_map(str::lines)
        .filter_map(|line| line.trim().strip_prefix(MARK))
        .collect();
    let documented: BTreeSet<&str> = documented
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .filter(|name| *name != "Limit")
        .collect();
    let untested = documented.difference(&tested);
    let finding = |name: &&str| TidyFinding {
        place: format!("{LIMITS}: {name}"),
        remedy: format!("test the bound and one above, below the comment `{MARK}{name}`"),
    };
    untested.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_without_a_test_is_found() {
        let documented = "| Limit | Value |\n|---|---|\n| a head | 1 |\n| a body | 2 |\n";
        let text = "    // limit: a head\n    #[test]\n";
        let found = untested(documented, [text].into_iter());
        assert_eq!(found.len(), 1);
        assert!(found[0].place.ends_with(": a body"), "{found:?}");
    }
}
