//! The summary of a run: stages, skipped tests with their reasons, failed ones with the end of
//! their output, figures, and the counting line.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::Result;

use crate::cargo::Profile;
use crate::command::shown;
use crate::demo::{self, Break};
use crate::libtest::{Failure, Skip, Tally, TestOutcome};

/// Stages, their results and durations.
#[derive(Debug, Default)]
pub(super) struct TestReport {
    rows: Vec<(String, Tally, f64)>,
    skipped: Vec<Skip>,
    failures: Vec<Failure>,
    notes: Vec<String>,
}

impl TestReport {
    /// Runs a command that has to succeed, and returns whether it did.
    pub(super) fn check(&mut self, name: &str, command: &mut Command) -> bool {
        println!("== {name}: {}", shown(command));
        let started = Instant::now();
        let is_passed = match command.status() {
            Ok(status) => status.success(),
            Err(error) => {
                println!("{error}");
                false
            }
        };
        self.push(name, Tally::one(is_passed), started);
        is_passed
    }

    /// Records a stage that cannot run here.
    pub(super) fn skip(&mut self, name: &str, why: &str) {
        println!("{name} SKIPPED: {why}");
        self.skipped.push(Skip {
            test: name.to_owned(),
            why: why.to_owned(),
        });
    }

    /// Adds a line to the summary that does not count: a measured figure, a warning.
    pub(super) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// Runs a stage that counts its own checks; an error counts as one failure.
    pub(super) fn add(&mut self, name: &str, count: impl FnOnce() -> Result<Tally>) {
        self.add_tests(name, || count().map(TestOutcome::from));
    }

    /// Runs a stage of test programs; an error counts as one failure.
    pub(super) fn add_tests(&mut self, name: &str, count: impl FnOnce() -> Result<TestOutcome>) {
        println!("== {name}");
        let started = Instant::now();
        let outcome = count().unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            TestOutcome {
                failures: vec![Failure::new(&format!("{name}: {error:#}"))],
                ..Tally::one(false).into()
            }
        });
        self.skipped.extend(outcome.skipped);
        self.failures.extend(outcome.failures);
        self.push(name, outcome.tally, started);
    }

    /// Runs the demo, with or without an injected fault.
    pub(super) fn demo(&mut self, broken: Option<Break>) {
        let name = broken.map_or_else(
            || "demo".to_owned(),
            |broken| format!("demo --break {}", broken.as_str()),
        );
        self.add(&name, || {
            let code = demo::run(None, None, broken, Profile::Tests)?;
            Ok(Tally::one(code == ExitCode::SUCCESS))
        });
    }

    /// Records a stage that ran since `started`.
    pub(super) fn push(&mut self, name: &str, tally: Tally, started: Instant) {
        let seconds = started.elapsed().as_secs_f64();
        self.rows.push((name.to_owned(), tally, seconds));
    }

    /// Prints the summary, whose last line counts. Fails on failures, and on skipped tests where `skip_fails`.
    pub(super) fn finish(self, skip_fails: bool) -> ExitCode {
        println!("== summary");
        for (name, tally, seconds) in &self.rows {
            println!(
                "{name:<24} {:>5} passed {:>4} failed {seconds:>8.1} s",
                tally.passed, tally.failed
            );
        }
        for Skip { test, why } in &self.skipped {
            println!("skipped: {test}: {why}");
        }
        // At the end: of a long log, often only the end is kept.
        for Failure { test, output } in &self.failures {
            println!("failed: {test}");
            for line in output {
                println!("    {line}");
            }
        }
        for note in &self.notes {
            println!("note: {note}");
        }
        let sum = self.sum();
        println!(
            "{} passed, {} failed, {} skipped",
            sum.passed,
            sum.failed,
            self.skipped.len()
        );
        if sum.failed == 0 && (self.skipped.is_empty() || !skip_fails) {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }

    fn sum(&self) -> Tally {
        let mut sum = Tally::default();
        for (_, tally, _) in &self.rows {
            sum.add(*tally);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_test_fails_a_full_run() {
        let report = || {
            let mut report = TestReport::default();
            report.add("one", || Ok(Tally::one(true)));
            report
        };
        assert_eq!(report().finish(true), ExitCode::SUCCESS);
        let mut skipping = report();
        skipping.skip("pod", "no container engine");
        assert_eq!(skipping.finish(true), ExitCode::FAILURE);
        let mut skipping = report();
        skipping.skip("pod", "no container engine");
        assert_eq!(skipping.finish(false), ExitCode::SUCCESS);
    }

    #[test]
    fn a_stage_with_an_error_is_a_failure() {
        let mut report = TestReport::default();
        report.add("one", || anyhow::bail!("gone"));
        assert_eq!(
            report.sum(),
            Tally {
                passed: 0,
                failed: 1
            }
        );
        assert_eq!(report.finish(false), ExitCode::FAILURE);
    }
}
