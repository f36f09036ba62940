//! Counts that may only fall, and the checked-in file that records them.
//!
//! One line per crate, sorted. Blank lines keep changes of neighbours apart, so that merges do not conflict. After a
//! conflict keep either side and run `cargo xtask tidy --record`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result, bail};

use super::finding::TidyFinding;
use crate::cargo::root;

const RECORD: &str = "xtask/tidy-record.txt";
const HEAD: &str = "# Counts that may only fall. Written by `cargo xtask tidy --record`.\n";

/// Counts of one crate, or of the workspace, by class.
pub(super) type ClassCounts = BTreeMap<String, usize>;
/// Counts of all crates, and those of the workspace as a whole.
pub(super) type CrateCounts = BTreeMap<String, ClassCounts>;

/// A counted class of violations.
pub(super) struct CountClass {
    /// Its key in the record.
    pub(super) key: &'static str,
    /// The counted violations, as a plural noun.
    pub(super) noun: &'static str,
    /// The remedy.
    pub(super) advice: &'static str,
}

/// Compares counts with the record.
pub(super) fn check(counts: &CrateCounts, classes: &[&CountClass]) -> Vec<TidyFinding> {
    match read() {
        Ok(recorded) => compare(counts, &recorded, classes),
        Err(error) => vec![TidyFinding {
            place: RECORD.to_owned(),
            remedy: format!("{error:#}"),
        }],
    }
}

/// Writes `counts` into the record.
///
/// Errors: a count is above its record. The record is unchanged then.
pub(super) fn write(counts: &CrateCounts) -> Result<()> {
    let raised = raised(counts, &read()?);
    if !raised.is_empty() {
        bail!("counts may only fall: {}", raised.join(", "));
    }
    fs::write(root().join(RECORD), render(counts)).with_context(|| format!("writing {RECORD}"))
}

fn read() -> Result<CrateCounts> {
    parse(&fs::read_to_string(root().join(RECORD)).unwrap_or_default())
}

fn parse(text: &str) -> Result<CrateCounts> {
    let mut counts = CrateCounts::new();
    let lines = text.lines().enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (owner, classes) =
            parse_line(line).with_context(|| format!("line {} is malformed", index + 1))?;
        if counts.insert(owner, classes).is_some() {
            bail!("line {} is a duplicate", index + 1);
        }
    }
    Ok(counts)
}

fn parse_line(line: &str) -> Option<(String, ClassCounts)> {
    let mut words = line.split(' ');
    let owner = words.next()?;
    let count = |word: &str| {
        let (class, count) = word.split_once('=')?;
        Some((class.to_owned(), count.parse().ok()?))
    };
    Some((owner.to_owned(), words.map(count).collect::<Option<_>>()?))
}

fn render(counts: &CrateCounts) -> String {
    let mut text = HEAD.to_owned();
    for (owner, classes) in counts {
        text.extend(["\n", owner]);
        let classes = classes.iter();
        text.extend(classes.map(|(class, count)| format!(" {class}={count}")));
        text.push('\n');
    }
    text
}

fn compare(
    counts: &CrateCounts,
    recorded: &CrateCounts,
    classes: &[&CountClass],
) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let owners: BTreeSet<&String> = counts.keys().chain(recorded.keys()).collect();
    for owner in owners {
        for class in classes {
            let count = lookup(counts, owner, class.key);
            let remedy = match (count, lookup(recorded, owner, class.key)) {
                (Some(count), Some(recorded)) if count > recorded => format!(
                    "{count} {}, {recorded} recorded: {}",
                    class.noun, class.advice
                ),
                (Some(count), None) => format!(
                    "{count} {}, none recorded: cargo xtask tidy --record",
                    class.noun
                ),
                (count, Some(recorded)) if count != Some(recorded) => format!(
                    "{} {}, {recorded} recorded: lower the record: cargo xtask tidy --record",
                    count.unwrap_or(0),
                    class.noun
                ),
                _ => continue,
            };
            findings.push(TidyFinding {
                place: owner.clone(),
                remedy,
            });
        }
    }
    findings
}

fn lookup(counts: &CrateCounts, owner: &str, class: &str) -> Option<usize> {
    counts.get(owner)?.get(class).copied()
}

/// The counts above their record. A new crate has none, nor has a new class.
fn raised(counts: &CrateCounts, recorded: &CrateCounts) -> Vec<String> {
    let all = counts
        .iter()
        .flat_map(|(owner, classes)| classes.iter().map(move |it| (owner, it)));
    all.filter_map(|(owner, (class, count))| {
        let recorded = *recorded.get(owner)?.get(class)?;
        (*count > recorded).then(|| format!("{owner} {class}={count} (recorded {recorded})"))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: CountClass = CountClass {
        key: "errors",
        noun: "errors",
        advice: "correct them",
    };

    fn counts(rows: &[(&str, usize)]) -> CrateCounts {
        let row = |(owner, count): &(&str, usize)| {
            let classes = ClassCounts::from([(CLASS.key.to_owned(), *count)]);
            ((*owner).to_owned(), classes)
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn rendered_counts_parse_back() {
        let mut expected = counts(&[("api-server", 3), ("xtask", 0)]);
        let others = ClassCounts::from([("a".to_owned(), 1), ("b".to_owned(), 2)]);
        expected.insert("tests".to_owned(), others);
        let text = render(&expected);
        assert_eq!(
            text,
            format!("{HEAD}\napi-server errors=3\n\ntests a=1 b=2\n\nxtask errors=0\n")
        );
        assert_eq!(parse(&text).unwrap(), expected);
    }

    #[test]
    fn malformed_records_are_rejected() {
        for text in [
            "<<<<<<< HEAD\n",
            "registry errors\n",
            "registry errors=x\n",
            "registry errors=1\nregistry errors=2\n",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_match_their_record_exactly() {
        let remedies = |today: &[(&str, usize)], recorded: &[(&str, usize)]| -> Vec<String> {
            let findings = compare(&counts(today), &counts(recorded), &[&CLASS]);
            findings.into_iter().map(|it| it.remedy).collect()
        };
        assert!(remedies(&[("a", 2)], &[("a", 2)]).is_empty());
        assert_eq!(
            remedies(&[("a", 3)], &[("a", 2)]),
            ["3 errors, 2 recorded: correct them"]
        );
        let lower = "1 errors, 2 recorded: lower the record: cargo xtask tidy --record";
        assert_eq!(remedies(&[("a", 1)], &[("a", 2)]), [lower]);
        let removed = "0 errors, 2 recorded: lower the record: cargo xtask tidy --record";
        assert_eq!(remedies(&[], &[("a", 2)]), [removed]);
        let new = "2 errors, none recorded: cargo xtask tidy --record";
        assert_eq!(remedies(&[("a", 2)], &[]), [new]);
    }

    #[test]
    fn only_new_crates_raise_a_count() {
        let recorded = counts(&[("a", 2), ("b", 2)]);
        assert!(raised(&counts(&[("a", 1), ("b", 2), ("c", 9)]), &recorded).is_empty());
        assert_eq!(
            raised(&counts(&[("a", 1), ("b", 3)]), &recorded),
            ["b errors=3 (recorded 2)"]
        );
    }
}
