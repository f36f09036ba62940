//! Test programs: compiled by cargo, several run at a time.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::{SKIPS, offline};
use crate::cargo::{cargo, linted};
use crate::libtest::{LibtestReader, TestOutcome};
use crate::scratch::ScratchFolder;

/// Programs at a time: most tests wait for a server, a disk or the clock.
const CONCURRENT: usize = 4;
/// Packages whose integration tests take longest. They start first: started last, one of them would run alone at the end.
const LONGEST: [&str; 5] = ["api-server", "atoll", "tests", "mirror", "registry"];

/// A compiled test program.
#[derive(Debug)]
pub(super) struct TestProgram {
    package: String,
    target: String,
    pub(super) is_integration: bool,
    path: PathBuf,
    /// The package's folder, in which cargo runs it.
    folder: PathBuf,
}

/// The tests of the workspace, compiled.
#[derive(Debug, Default)]
pub(super) struct CompiledTests {
    pub(super) programs: Vec<TestProgram>,
    /// The compiler's and clippy's.
    pub(super) warnings: u32,
}

/// A line of `cargo test --no-run --message-format=json`. Source: the cargo book, "External tools".
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    #[serde(rename = "message")]
    diagnostic: Option<Diagnostic>,
    manifest_path: Option<PathBuf>,
    target: Option<CargoTarget>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Diagnostic {
    level: String,
    rendered: String,
}

#[derive(Debug, Deserialize)]
struct CargoTarget {
    kind: Vec<String>,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// Compiles the tests of the workspace, and prints diagnostics.
///
/// Errors: one does not compile.
pub(super) fn compile() -> Result<CompiledTests> {
    let mut command = cargo(&["test", "--workspace", "--no-run", "--message-format=json"]);
    let mut child = linted(offline(&mut command))
        .stdout(Stdio::piped())
        .spawn()
        .context("running cargo test --no-run")?;
    let stdout = child.stdout.take().context("cargo test has no output")?;
    let mut tests = CompiledTests::default();
    for line in BufReader::new(stdout).lines() {
        tests.add(&line?)?;
    }
    ensure!(child.wait()?.success(), "the tests do not compile");
    Ok(tests)
}

impl CompiledTests {
    /// Adds a line of cargo's output.
    fn add(&mut self, line: &str) -> Result<()> {
        let message: Message = serde_json::from_str(line).context("reading a message of cargo")?;
        if let Some(diagnostic) = &message.diagnostic {
            print!("{}", diagnostic.rendered);
            self.warnings += u32::from(diagnostic.level == "warning");
        }
        if message.reason == "compiler-artifact" {
            self.programs.extend(program(message));
        }
        Ok(())
    }
}

/// The test program that a message names, if it does.
fn program(message: Message) -> Option<TestProgram> {
    if !message.profile?.test {
        return None;
    }
    let (target, path, manifest) = (message.target?, message.executable?, message.manifest_path?);
    let folder = manifest.parent()?;
    let package = folder.file_name()?;
    Some(TestProgram {
        package: package.to_string_lossy().into_owned(),
        is_integration: target.kind.iter().any(|kind| kind == "test"),
        target: target.name,
        path,
        folder: folder.to_owned(),
    })
}

/// Runs `programs` with `arguments`, and prints the output of each when it ends.
///
/// `prepare` adds environment variables of the stage.
pub(super) fn run<'a>(
    programs: impl IntoIterator<Item = &'a TestProgram>,
    arguments: &[&str],
    prepare: impl Fn(&mut Command) + Sync,
) -> Result<TestOutcome> {
    let scratch = ScratchFolder::new()?;
    let skips = scratch.path().join("skipped");
    let mut waiting: VecDeque<_> = programs.into_iter().collect();
    waiting.make_contiguous().sort_by_key(|it| it.order());
    let waiting = Mutex::new(waiting);
    let reader = Mutex::new(LibtestReader::default());
    thread::scope(|scope| {
        for _ in 0..CONCURRENT {
            scope.spawn(|| {
                loop {
                    // A lock in the condition of the loop would be held while the program runs.
                    let Some(program) = lock(&waiting).pop_front() else {
                        break;
                    };
                    let started = Instant::now();
                    let mut command = program.command(&skips);
                    prepare(command.args(arguments));
                    let ended = command.output();
                    let seconds = started.elapsed().as_secs_f64();
                    let mut reader = lock(&reader);
                    let name = format!("{} {}", program.package, program.target);
                    println!("-- {name}: {seconds:.1} s");
                    reader.program(&name);
                    let ended = match ended {
                        Ok(ended) => ended,
                        Err(error) => {
                            println!("{}: {error}", program.path.display());
                            reader.broken(&error.to_string(), "");
                            continue;
                        }
                    };
                    let before = reader.failed();
                    // The last line of a killed program may have no end.
                    let output = [&ended.stdout[..], b"\n", &ended.stderr].concat();
                    let output = String::from_utf8_lossy(&output);
                    for line in output.lines() {
                        println!("{line}");
                        reader.line(line);
                    }
                    if !ended.status.success() && reader.failed() == before {
                        println!("{} {}", program.path.display(), ended.status);
                        reader.broken(&ended.status.to_string(), &output);
                    }
                }
            });
        }
    });
    let reader = reader.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(reader.finish(&fs::read_to_string(&skips).unwrap_or_default()))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TestProgram {
    /// Whether it is this target of a package.
    pub(super) fn is_of(&self, package: &str, target: &str) -> bool {
        self.package == package && self.target == target
    }

    /// Position among the programs of a stage; others follow those that are listed.
    fn order(&self) -> usize {
        let position = LONGEST.iter().position(|name| *name == self.package);
        position.unwrap_or(LONGEST.len())
    }

    /// As cargo starts it. Source: the cargo book, "Environment variables".
    fn command(&self, skips: &Path) -> Command {
        let mut command = Command::new(&self.path);
        offline(&mut command)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package)
            .env(SKIPS, skips);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_distinguished_from_other_artifacts() {
        let message = |kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/a/crates/x/Cargo.toml","target":{{"kind":["{kind}"],
                "name":"it"}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let found = |line: &str| {
            let mut tests = CompiledTests::default();
            tests.add(line).unwrap();
            assert_eq!(tests.warnings, 0);
            tests.programs.pop()
        };
        let it = found(&message("test", true, "\"/t/it\"")).unwrap();
        assert!(it.is_integration && it.package == "x" && it.path == Path::new("/t/it"));
        assert!(
            !found(&message("lib", true, "\"/t/x\""))
                .unwrap()
                .is_integration
        );
        assert!(found(&message("bin", false, "\"/t/x\"")).is_none());
        assert!(found(&message("lib", true, "null")).is_none());
        assert!(found(r#"{"reason":"build-finished","success":true}"#).is_none());
        assert!(CompiledTests::default().add("no message").is_err());
    }

    #[test]
    fn warnings_are_counted() {
        let mut tests = CompiledTests::default();
        for level in ["warning", "note", "error"] {
            let line = format!(
                r#"{{"reason":"compiler-message","message":{{"level":"{level}","rendered":""}}}}"#
            );
            tests.add(&line).unwrap();
        }
        assert_eq!((tests.warnings, tests.programs.len()), (1, 0));
    }
}
