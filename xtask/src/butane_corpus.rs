//! The real `butane`, run on the inputs in the corpus of the crate `ignition`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::LazyLock;

use anyhow::{Context as _, Result, ensure};
use regex::Regex;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::apt;
use crate::cargo::root;
use crate::command::{output, run as run_command};
use crate::libtest::Tally;
use crate::scratch::ScratchFolder;

/// The version whose answers are recorded.
const MODULE: &str = "github.com/coreos/butane@v0.29.0";
/// Package of the program inside the module.
const PACKAGE: &str = "./internal";
const PROGRAM: &str = "butane";
/// The answers in the corpus, one JSON object in each line.
const RECORDED: &str = "recorded.jsonl";
/// Inputs with this line have two outputs: a MachineConfig, and Ignition with `--raw`.
const WRAPPED: &str = "variant: openshift";

/// Records the answers anew.
pub(crate) fn run() -> Result<ExitCode> {
    let lines = ask(&ensure()?)?;
    let path = corpus().join(RECORDED);
    let text = lines.join("\n") + "\n";
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    println!("{}: {} answers", path.display(), lines.len());
    Ok(ExitCode::SUCCESS)
}

/// Compares the program's answers with the recorded ones, line by line.
pub(crate) fn check(program: &Path) -> Result<Tally> {
    let path = corpus().join(RECORDED);
    let recorded =
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let lines = ask(program)?;
    ensure!(
        lines.len() == recorded.lines().count(),
        "{} has {} answers, butane gives {}: run cargo xtask butane-corpus",
        path.display(),
        recorded.lines().count(),
        lines.len()
    );
    let mut tally = Tally::default();
    for (line, recorded) in lines.iter().zip(recorded.lines()) {
        let is_recorded = line == recorded;
        if !is_recorded {
            println!("not in {}: {line}", path.display());
        }
        tally.add(Tally::one(is_recorded));
    }
    Ok(tally)
}

/// Builds butane into target/tools unless it exists: in the module's own folder, whose go.sum has the dependencies.
pub(crate) fn ensure() -> Result<PathBuf> {
    let program = root().join("target/tools/butane").join(PROGRAM);
    if program.is_file() {
        return Ok(program);
    }
    ensure!(apt::is_program("go"), "go is not in PATH");
    // Outside of any module, which would decide about versions.
    let scratch = ScratchFolder::new()?;
    let mut download = Command::new("go");
    download
        .args(["mod", "download", "-json", MODULE])
        .current_dir(scratch.path());
    let answer: Value = serde_json::from_slice(&output(&mut download)?)?;
    let folder = answer["Dir"].as_str().context("go names no folder")?;
    let mut build = Command::new("go");
    build
        .args(["build", "-mod=readonly", "-buildvcs=false", "-p=1", "-o"])
        .arg(&program)
        .arg(PACKAGE)
        .current_dir(folder);
    run_command(&mut build)?;
    Ok(program)
}

fn corpus() -> PathBuf {
    root().join("crates/ignition/fixtures/butane")
}

/// The answers to all inputs, in the order of their names.
fn ask(program: &Path) -> Result<Vec<String>> {
    let inputs = corpus().join("inputs");
    let mut paths = Vec::new();
    for entry in fs::read_dir(&inputs).with_context(|| format!("listing {}", inputs.display()))? {
        paths.push(entry?.path());
    }
    paths.sort();
    let mut lines = Vec::new();
    for path in paths {
        let input = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let is_wrapped = input
            .split(|byte| *byte == b'\n')
            .any(|line| line == WRAPPED.as_bytes());
        lines.push(answer(program, &path, &input, false)?);
        if is_wrapped {
            lines.push(answer(program, &path, &input, true)?);
        }
    }
    Ok(lines)
}

fn answer(program: &Path, path: &Path, input: &[u8], is_raw: bool) -> Result<String> {
    let call = |arguments: &[&str]| -> Result<Output> {
        let mut command = Command::new(program);
        command.args(["--raw-errors", "--files-dir"]);
        command.arg(corpus().join("files")).args(arguments);
        if is_raw {
            command.arg("--raw");
        }
        let answer = command.arg(path).output();
        answer.with_context(|| format!("running {}", program.display()))
    };
    let relaxed = call(&[])?;
    let verdict = if !relaxed.status.success() {
        "refused"
    } else if call(&["--strict", "--check"])?.status.success() {
        "clean"
    } else {
        "warned"
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut answer = json!({
        "input": name,
        "sha256": hex::encode(Sha256::digest(input)),
        "raw": is_raw,
        "verdict": verdict,
        "problems": problems(&String::from_utf8_lossy(&relaxed.stderr)),
    });
    if relaxed.status.success() {
        let text = String::from_utf8(relaxed.stdout).context("the output is not UTF-8")?;
        match serde_json::from_str::<Value>(&text) {
            Ok(value) => answer["json"] = value,
            Err(_) => answer["yaml"] = Value::String(text),
        }
    }
    Ok(answer.to_string())
}

/// Severity, line, column and path of each problem; the wording is the program's own.
fn problems(stderr: &str) -> Vec<String> {
    static PROBLEM: LazyLock<Regex> = LazyLock::new(|| {
        let place = r"(?: at (\$\S*?))?(?:,? (?:at )?line (\d+) col (\d+))?";
        Regex::new(&format!("^(error|warning|info){place}: ")).expect("the tests use it")
    });
    let lines = stderr.lines().filter_map(|line| PROBLEM.captures(line));
    let problems = lines.map(|found| {
        let part = |index| found.get(index).map_or("", |part| part.as_str());
        let [kind, path, line, column] = [1, 2, 3, 4].map(part);
        format!("{kind} {line}:{column} {path}")
    });
    let mut problems: Vec<String> = problems.collect();
    // The program reports unknown keys in random order.
    problems.sort();
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_read_without_their_wording() {
        let stderr = "warning at $.storage.files.0.mode, line 5 col 13: looks odd\n\
            error at line 1 col 2: no object: none\n\
            error at $.storage: here: there\n\
            Error translating config: source config is invalid\n";
        let expected = [
            "error 1:2 ",
            "error : $.storage",
            "warning 5:13 $.storage.files.0.mode",
        ];
        assert_eq!(problems(stderr), expected);
    }
}
