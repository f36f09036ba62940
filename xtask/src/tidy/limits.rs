//! Rule about limits: each has a test, and so has each share of one.

use std::collections::BTreeSet;
use std::fs;

use super::finding::TidyFinding;
use super::source::WorkspaceSources;
use crate::cargo::root;
use crate::codegen::LIMITS;

/// Precedes the name of a limit in the comment of its test.
const LIMIT_MARK: &str = "// limit: ";
/// The same for the share of one client, owner or user.
const SHARE_MARK: &str = "// share: ";

/// Finds the documented limits and shares that no test names.
pub(super) fn tested(sources: &WorkspaceSources) -> Vec<TidyFinding> {
    let Ok(documented) = fs::read_to_string(root().join(LIMITS)) else {
        return vec![TidyFinding {
            place: LIMITS.to_owned(),
            remedy: "run cargo xtask codegen".to_owned(),
        }];
    };
    let texts = || sources.files.iter().map(|file| file.text.as_str());
    let limits = rows(&documented).map(|(name, _)| name);
    let shares = rows(&documented).filter(|(_, share)| has_bound(share));
    let shares = shares.map(|(name, _)| name);
    let mut found = untested(LIMIT_MARK, &limits.collect(), texts());
    found.extend(untested(SHARE_MARK, &shares.collect(), texts()));
    found
}

/// Name and share of each documented limit.
fn rows(documented: &str) -> impl Iterator<Item = (&str, &str)> {
    let rows = documented
        .lines()
        .filter_map(|line| line.strip_prefix("| "));
    let named = rows.filter_map(|row| {
        let share = row.trim_end_matches('|').rsplit(" | ").next()?;
        Some((row.split(" | ").next()?, share.trim()))
    });
    named.filter(|(name, _)| *name != "Limit")
}

/// Whether a share is a bound: neither absent nor explained.
fn has_bound(share: &str) -> bool {
    !share.is_empty() && !share.starts_with("none")
}

fn untested<'a>(
    mark: &str,
    documented: &BTreeSet<&str>,
    texts: impl Iterator<Item = &'a str>,
) -> Vec<TidyFinding> {
    let tested: BTreeSet<&str> = texts
        .flat_map(str::lines)
        .filter_map(|line| line.trim().strip_prefix(mark))
        .collect();
    let untested = documented.difference(&tested);
    let finding = |name: &&str| TidyFinding {
        place: format!("{LIMITS}: {name}"),
        remedy: format!("test the bound and one above, below the comment `{mark}{name}`"),
    };
    untested.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_or_share_without_a_test_is_found() {
        let documented = "| Limit | Value | Share |\n|---|---|---|\n| a head | 1 |  |\n| a body | 2 | 1 per owner: 409 |\n\
                          | a list | 2 | none: derived |\n";
        let names: BTreeSet<_> = rows(documented).map(|(name, _)| name).collect();
        let text = "    // limit: a head\n    // limit: a list\n    #[test]\n";
        let found = untested(LIMIT_MARK, &names, [text].into_iter());
        assert_eq!(found.len(), 1);
        assert!(found[0].place.ends_with(": a body"), "{found:?}");
        let shares: Vec<_> = rows(documented).filter(|(_, it)| has_bound(it)).collect();
        assert_eq!(shares, [("a body", "1 per owner: 409")]);
    }
}
