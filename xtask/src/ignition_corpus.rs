//! Ignition's own validator, run on the configurations in the corpus of the crate `ignition`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::apt;
use crate::cargo::root;
use crate::command::run as run_command;
use crate::libtest::Tally;

/// The version whose verdicts are recorded.
const MODULE: &str = "github.com/coreos/ignition/v2/validate@v2.21.0";
const PROGRAM: &str = "validate";
/// The verdicts in the corpus.
const VERDICTS: &str = "verdicts.tsv";

/// Records the verdicts anew.
pub(crate) fn run() -> Result<ExitCode> {
    let verdicts = ask(&ensure()?)?;
    let path = corpus().join(VERDICTS);
    fs::write(&path, verdicts).with_context(|| format!("writing {}", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Compares the validator's verdicts with the recorded ones, file by file.
pub(crate) fn check(program: &PathBuf) -> Result<Tally> {
    let path = corpus().join(VERDICTS);
    let recorded =
        fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut tally = Tally::default();
    for line in ask(program)?.lines() {
        let is_recorded = recorded.lines().any(|other| other == line);
        if !is_recorded {
            println!("not in {}: {line}", path.display());
        }
        tally.add(Tally::one(is_recorded));
    }
    Ok(tally)
}

/// Builds the validator into target/tools unless it exists.
pub(crate) fn ensure() -> Result<PathBuf> {
    let tools = root().join("target/tools/ignition");
    let program = tools.join(PROGRAM);
    if !program.is_file() {
        ensure!(apt::is_program("go"), "go is not in PATH");
        run_command(
            Command::new("go")
                .args(["install", MODULE])
                .env("GOBIN", &tools),
        )?;
    }
    Ok(program)
}

fn corpus() -> PathBuf {
    root().join("crates/ignition/fixtures/corpus")
}

/// A line for each configuration: name, verdict, hash.
fn ask(program: &PathBuf) -> Result<String> {
    let corpus = corpus();
    let mut paths = Vec::new();
    for entry in fs::read_dir(&corpus).with_context(|| format!("listing {}", corpus.display()))? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ign"));
    paths.sort();
    let mut verdicts = String::new();
    for path in paths {
        let answer = Command::new(program)
            .arg(&path)
            .output()
            .with_context(|| format!("running {}", program.display()))?;
        let verdict = if answer.status.success() {
            "valid"
        } else {
            "refused"
        };
        let hash = hex::encode(Sha256::digest(fs::read(&path)?));
        let name = path.file_name().unwrap_or_default();
        writeln!(verdicts, "{}\t{verdict}\t{hash}", name.display())?;
    }
    Ok(verdicts)
}
