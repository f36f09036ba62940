//! Counts of test programs, from their output and from the records of `testkit::skipped`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Lines of a failed test's output that the summary repeats.
const REPEATED: usize = 40;
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

/// A test that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// With the test program, where it is known.
    pub(crate) test: String,
    /// The last lines of its output, without backtraces: a panic's message comes before its own.
    pub(crate) output: VecDeque<String>,
}

/// The result of test programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestOutcome {
    /// Without skipped tests.
    pub(crate) tally: Tally,
    pub(crate) skipped: Vec<Skip>,
    pub(crate) failures: Vec<Failure>,
}

/// Parser of test programs' output.
#[derive(Debug, Default)]
pub(crate) struct LibtestReader {
    tally: Tally,
    ignored: Vec<Skip>,
    /// Prefix of failures' names.
    program: String,
    failed: BTreeSet<String>,
    failures: Vec<Failure>,
    /// Position of the failure whose output is being read.
    current: Option<usize>,
}

impl From<Tally> for TestOutcome {
    fn from(tally: Tally) -> Self {
        Self {
            tally,
            ..Self::default()
        }
    }
}

impl Failure {
    /// A failure without output.
    pub(crate) fn new(test: &str) -> Self {
        Self {
            test: test.to_owned(),
            output: VecDeque::new(),
        }
    }

    /// Adds a line, and drops the first of too many.
    fn line(&mut self, line: &str) {
        if is_backtrace(line) {
            return;
        }
        if self.output.len() == REPEATED {
            self.output.pop_front();
        }
        self.output.push_back(line.to_owned());
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
    /// The lines that follow are those of another test program.
    pub(crate) fn program(&mut self, name: &str) {
        name.clone_into(&mut self.program);
        self.current = None;
    }

    /// Parses the next line.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(count) = Tally::of_line(line) {
            self.tally.add(count);
        }
        if let Some(test) = output_of(line) {
            let test = self.named(test);
            self.current = self.failures.iter().rposition(|it| it.test == test);
        } else if line == "failures:" {
            self.current = None;
        } else if let Some(failure) = self.current.and_then(|it| self.failures.get_mut(it)) {
            failure.line(line);
        }
        let Some((test, result)) = line.strip_prefix("test ").and_then(verdict) else {
            return;
        };
        if result == "FAILED" {
            self.failed.insert(test.to_owned());
            self.failures.push(Failure::new(&self.named(test)));
        } else if let Some(why) = result.strip_prefix("ignored")
            && !why.contains(CHILD)
        {
            let why = why.trim_start_matches(", ").to_owned();
            let test = test.to_owned();
            self.ignored.push(Skip { test, why });
        }
    }

    /// A test with its program.
    fn named(&self, test: &str) -> String {
        format!("{} {test}", self.program).trim_start().to_owned()
    }

    /// Number of failed tests so far.
    pub(crate) fn failed(&self) -> u32 {
        self.tally.failed
    }

    /// Counts a test program that did not start, was killed, or ended without a count.
    pub(crate) fn broken(&mut self, why: &str, output: &str) {
        let mut failure = Failure::new(&self.named(why));
        output.lines().for_each(|line| failure.line(line));
        self.failures.push(failure);
        self.tally.failed += 1;
    }

    /// The count, with the `records` of tests that detected at run time that they cannot run: the harness counts
    /// these as passed.
    pub(crate) fn finish(self, records: &str) -> TestOutcome {
        let Self {
            mut tally,
            ignored: mut skipped,
            failed,
            failures,
            ..
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
        TestOutcome {
            tally,
            skipped,
            failures,
        }
    }
}

/// The test in `---- NAME stdout ----`, which its output follows.
fn output_of(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// Whether a line is a part of a backtrace: its head, `   1: function` or `             at file`.
fn is_backtrace(line: &str) -> bool {
    let text = line.trim_start();
    let number = text.split_once(": ").map_or("", |(number, _)| number);
    let is_frame = text.starts_with("at ") || number.parse::<u16>().is_ok();
    line == "stack backtrace:" || (is_frame && text.len() < line.len())
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
    fn failures_have_the_end_of_their_output() {
        let long: Vec<String> = (0..=REPEATED).map(|number| format!("{number}")).collect();
        let mut lines = vec![
            "test a::one ... FAILED",
            "test a::two ... ok",
            "test b ... FAILED",
            "failures:",
            "---- a::one stdout ----",
            "it panicked",
            "stack backtrace:",
            "   0: core::panicking::panic_fmt",
            "             at ./tests/it/a.rs:3:5",
            "note: Some details are omitted",
            "---- b stdout ----",
        ];
        lines.extend(long.iter().map(String::as_str));
        lines.extend(["failures:", "    a::one", "    b"]);
        let mut reader = LibtestReader::default();
        reader.program("registry it");
        for line in lines {
            reader.line(line);
        }
        let failures = reader.finish("").failures;
        let [one, other] = &failures[..] else {
            panic!("{failures:?}");
        };
        assert_eq!(one.test, "registry it a::one");
        assert_eq!(
            one.output,
            ["it panicked", "note: Some details are omitted"]
        );
        assert_eq!(other.test, "registry it b");
        assert_eq!(other.output, &long[1..]);
    }

    #[test]
    fn a_killed_program_is_a_failure() {
        let mut reader = LibtestReader::default();
        reader.program("registry it");
        reader.broken("signal: 9", "running 3 tests\nout of memory");
        let outcome = reader.finish("");
        assert_eq!(outcome.tally.failed, 1);
        assert_eq!(outcome.failures[0].test, "registry it signal: 9");
        assert_eq!(outcome.failures[0].output.len(), 2);
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
