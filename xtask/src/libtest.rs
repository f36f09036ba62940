//! Counts of test programs, from their output and from the records of `testkit::skipped`.

use std::collections::{BTreeMap, BTreeSet};

/// Reason of ignored tests that another test starts as its child; these never count as skipped.
const CHILD: &str = "runs as a child";

/// Checks that passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Number of passed checks.
    pub(crate) passed: u32,
    /// Number of failed checks.
    pub(crate) failed: u32,
}

/// A test that did not run, or not completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skip {
    pub(crate) test: String,
    pub(crate) why: String,
}

/// The result of test programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestOutcome {
    /// Without skipped tests.
    pub(crate) tally: Tally,
    pub(crate) skipped: Vec<Skip>,
}

/// Parser of test programs' output.
#[derive(Debug, Default)]
pub(crate) struct LibtestReader {
    tally: Tally,
    failed: BTreeSet<String>,
    ignored: Vec<Skip>,
}

impl From<Tally> for TestOutcome {
    fn from(tally: Tally) -> Self {
        Self {
            tally,
            skipped: Vec::new(),
        }
    }
}

impl Tally {
    /// One check.
    pub(crate) fn one(is_passed: bool) -> Self {
        Self {
            passed: u32::from(is_passed),
            failed: u32::from(!is_passed),
        }
    }

    /// Adds another count.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// The count in a line such as `test result: ok. 3 passed; 0 failed; …`.
    fn of_line(line: &str) -> Option<Self> {
        let rest = line.trim().strip_prefix("test result: ")?;
        let number = |what: &str| {
            rest.split([';', '.'])
                .find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok())
        };
        Some(Self {
            passed: number("passed")?,
            failed: number("failed")?,
        })
    }
}

impl LibtestReader {
    /// Parses the next line.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(count) = Tally::of_line(line) {
            self.tally.add(count);
        }
        let Some((test, result)) = line.strip_prefix("test ").and_then(verdict) else {
            return;
        };
        if result == "FAILED" {
            self.failed.insert(test.to_owned());
        } else if let Some(why) = result.strip_prefix("ignored")
            && !why.contains(CHILD)
        {
            let why = why.trim_start_matches(", ").to_owned();
            let test = test.to_owned();
            self.ignored.push(Skip { test, why });
        }
    }

    /// Failed tests so far.
    pub(crate) fn failures(&self) -> u32 {
        self.tally.failed
    }

    /// The count, with the `records` of tests that detected at run time that they cannot run: the harness counts
    /// these as passed.
    pub(crate) fn finish(self, records: &str) -> TestOutcome {
        let Self {
            mut tally,
            failed,
            ignored: mut skipped,
        } = self;
        for ((package, test), why) in recorded(records) {
            if failed.contains(test) {
                continue;
            }
            tally.passed = tally.passed.saturating_sub(1);
            skipped.push(Skip {
                test: format!("{package} {test}"),
                why: why.join("; "),
            });
        }
        TestOutcome { tally, skipped }
    }
}

/// The name and the result in `NAME ... RESULT`.
fn verdict(line: &str) -> Option<(&str, &str)> {
    let (test, result) = line.split_once(" ... ")?;
    // A test that is expected to panic has a suffix after its name.
    let test = test.trim_end_matches(" - should panic");
    Some((test.trim(), result.trim()))
}

/// The reasons of each test, by package and name: a test that misses several programs is skipped once.
fn recorded(records: &str) -> BTreeMap<(&str, &str), Vec<&str>> {
    let mut tests: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in records.lines() {
        let mut parts = line.splitn(3, '\t');
        if let (Some(package), Some(test), Some(why)) = (parts.next(), parts.next(), parts.next()) {
            let reasons = tests.entry((package, test)).or_default();
            if !reasons.contains(&why) {
                reasons.push(why);
            }
        }
    }
    tests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str], records: &str) -> TestOutcome {
        let mut reader = LibtestReader::default();
        for line in lines {
            reader.line(line);
        }
        reader.finish(records)
    }

    fn tests(outcome: &TestOutcome) -> Vec<(&str, &str)> {
        let skipped = outcome.skipped.iter();
        skipped
            .map(|skip| (skip.test.as_str(), skip.why.as_str()))
            .collect()
    }

    #[test]
    fn lines_of_libtest() {
        let ok = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s";
        let bad = "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.5s";
        let outcome = read(&[ok, bad, "test a ... ok", "test result: unknown"], "");
        let (passed, failed) = (15, 2);
        assert_eq!(outcome, Tally { passed, failed }.into());
    }

    #[test]
    fn ignored_tests_are_skipped_except_children() {
        let outcome = read(
            &[
                "test faults::all ... ignored, takes long",
                "test plain ... ignored",
                "test kill::child ... ignored, runs as a child of the test of killed writers",
                "test result: ok. 1 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out",
            ],
            "",
        );
        assert_eq!(
            tests(&outcome),
            [("faults::all", "takes long"), ("plain", "")]
        );
        assert_eq!(outcome.tally.passed, 1);
    }

    #[test]
    fn a_recorded_skip_is_not_passed() {
        let records = "webui\tbrowser::shows\tno browser\n\
                       tests\tclients::copy\tno skopeo\ntests\tclients::copy\tno podman\n\
                       tests\tclients::copy\tno podman\ntests\tclients::broken\tno podman\n";
        let outcome = read(
            &[
                "test clients::broken ... FAILED",
                "test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
            ],
            records,
        );
        assert_eq!(
            tests(&outcome),
            [
                ("tests clients::copy", "no skopeo; no podman"),
                ("webui browser::shows", "no browser"),
            ]
        );
        let (passed, failed) = (3, 1);
        assert_eq!(outcome.tally, Tally { passed, failed });
    }
}
