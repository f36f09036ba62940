//! Tests of the web UI's pages, by vitest: each on its own, then in a browser, on a running site.

use std::ffi::OsStr;
use std::fs;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::BROWSERS;
use super::report::TestReport;
use crate::cargo::{Profile, build};
use crate::libtest::{Failure, Skip, Tally, TestOutcome};
use crate::scratch::ScratchFolder;
use crate::web::{self, STATIC_ROOT};
use crate::{apt, demo};

/// Configuration of the tests in a browser.
const IN_BROWSER: [&str; 2] = ["--config", "vitest.pages.config.ts"];
/// Folder of the programs of a site.
const PROGRAMS: &str = "ATOLL_PROGRAMS";

/// Builds the pages and tests them.
pub(super) fn run(report: &mut TestReport) {
    report.add("pages, build", || web::build().map(|_| Tally::one(true)));
    report.add_tests("pages", || vitest(&[], &[]));
    if !BROWSERS.iter().any(|name| apt::is_program(name)) {
        report.skip("pages in a browser", "there is no Chromium");
        return;
    }
    report.add_tests("pages in a browser", || {
        let programs = build(&demo::PACKAGES, Profile::Tests)?;
        let pages = web::build()?;
        let environment = [
            (PROGRAMS, programs.as_os_str()),
            (STATIC_ROOT, pages.as_os_str()),
        ];
        vitest(&IN_BROWSER, &environment)
    });
}

/// Results of vitest, in the format of Jest.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VitestResults {
    test_results: Vec<VitestFile>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VitestFile {
    name: String,
    status: String,
    #[serde(default)]
    message: String,
    assertion_results: Vec<VitestTest>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VitestTest {
    full_name: String,
    status: String,
    #[serde(default)]
    failure_messages: Vec<String>,
}

fn vitest(arguments: &[&str], environment: &[(&str, &OsStr)]) -> Result<TestOutcome> {
    web::install_packages()?;
    let scratch = ScratchFolder::new()?;
    let path = scratch.path().join("results.json");
    let mut command = web::npm(&["exec", "--", "vitest", "run"]);
    command.args(arguments);
    command.args(["--reporter=verbose", "--reporter=json"]);
    command.arg(format!("--outputFile.json={}", path.display()));
    let status = command
        .envs(environment.iter().copied())
        .status()
        .context("running npm")?;
    let results = fs::read(&path);
    let results = results.with_context(|| format!("vitest ended before its tests ({status})"))?;
    let results: VitestResults = serde_json::from_slice(&results).context("results of vitest")?;
    let mut outcome = results.outcome();
    if !status.success() && outcome.tally.failed == 0 {
        outcome.fail("vitest", &format!("{status}"));
    }
    Ok(outcome)
}

impl VitestResults {
    fn outcome(self) -> TestOutcome {
        let mut outcome = TestOutcome::default();
        for file in self.test_results {
            let is_failed = |test: &VitestTest| test.status == "failed";
            // Its module or its site: none of its tests ran.
            if file.status == "failed" && !file.assertion_results.iter().any(is_failed) {
                outcome.fail(&file.name, &file.message);
            }
            for test in file.assertion_results {
                match test.status.as_str() {
                    "passed" => outcome.tally.add(Tally::one(true)),
                    "failed" => outcome.fail(&test.full_name, &test.failure_messages.join("\n")),
                    other => outcome.skipped.push(Skip {
                        test: test.full_name,
                        why: other.to_owned(),
                    }),
                }
            }
        }
        outcome
    }
}

impl TestOutcome {
    fn fail(&mut self, test: &str, output: &str) {
        self.tally.add(Tally::one(false));
        self.failures.push(Failure {
            output: output.lines().map(str::to_owned).collect(),
            ..Failure::new(test)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let text = r#"{"testResults":[
            {"name":"a.test.ts","status":"failed","message":"no such module","assertionResults":[]},
            {"name":"b.test.ts","status":"failed","assertionResults":[
                {"fullName":"one","status":"passed","failureMessages":[]},
                {"fullName":"two","status":"failed","failureMessages":["expected 1\nnot 2"]},
                {"fullName":"three","status":"skipped"}]}]}"#;
        let results: VitestResults = serde_json::from_str(text).unwrap();
        let outcome = results.outcome();
        assert_eq!((outcome.tally.passed, outcome.tally.failed), (1, 2));
        let failed: Vec<_> = outcome
            .failures
            .iter()
            .map(|one| one.test.as_str())
            .collect();
        assert_eq!(failed, ["a.test.ts", "two"]);
        assert_eq!(outcome.failures[1].output, ["expected 1", "not 2"]);
        assert_eq!(outcome.skipped[0].test, "three");
    }
}
