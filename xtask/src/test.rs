//! `cargo xtask test`: everything that must hold, counted in the last line.

mod coreos_installer;
mod distribution;
mod engine;
mod podman_compose;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Args;

use self::engine::Engine;
use crate::cargo::{Profile, build, cargo, root, target_directory};
use crate::command::{run as run_command, shown};
use crate::demo::{self, Break};
use crate::libtest::Tally;
use crate::{postgres, tidy};

/// Arguments of `test`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Also what takes long: images as they are shipped, the demo's breakages, the real coreos-installer, dependency checks
    #[arg(long)]
    full: bool,
    /// Only the pod: images of the services, and the tests that run them in containers
    #[arg(long)]
    pod: bool,
}

/// Tells the workspace's tests that those of the pod come later: they need images.
const POD_APART: &str = "POD_TESTS_APART";
/// Tells the tests of the mirroring tool where another registry is.
const DOCKER_REGISTRY: &str = "DOCKER_REGISTRY";
/// Tells the tests of the pod where the program is that people start it with.
const PODMAN_COMPOSE: &str = "PODMAN_COMPOSE";
/// The program that runs inside containers.
const INSTALLER: &str = "openshift-baremetal-install";

/// Goes through everything, also after a failure, and prints the count as the last line.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let mut report = Report::default();
    if arguments.pod {
        pod(&mut report, arguments.full);
        // Asked for by name, it cannot just be left out.
        let is_done = report.left_out.is_empty();
        let code = report.finish();
        return if is_done { code } else { ExitCode::FAILURE };
    }
    report.check("fmt", &mut cargo(&["fmt", "--all", "--check"]));
    report.add("tidy", tidy::check);
    report.check("clippy", offline(&mut clippy()));
    report.add("postgres", || {
        postgres::ensure_binaries().map(|_| Tally::default())
    });
    report.add("tests", || unit_and_integration(arguments.full));
    if arguments.full {
        second_reader();
        report.add("deny", dependencies);
    }
    report.demo(None);
    if arguments.full {
        report.demo(Some(Break::Ram));
        report.demo(Some(Break::Registry));
    }
    pod(&mut report, arguments.full);
    report.finish()
}

/// The services as containers; left out, loudly, where none can run.
fn pod(report: &mut Report, full: bool) {
    println!("== engine");
    let started = Instant::now();
    let engine = match Engine::start() {
        Ok(engine) => engine,
        Err(error) => {
            let why = format!("no container can run here:\n{error:#}");
            return report.leave_out("pod", &why);
        }
    };
    report.push("engine", Tally::one(true), started);
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return report.leave_out("pod", &format!("this program is gone: {error}")),
    };
    // By itself, as people build them.
    let mut images = Command::new(own);
    images.current_dir(root()).arg("images");
    if !full {
        images.arg("--quick");
    }
    if report.check("images", &mut images) {
        report.add("pod", || pod_tests(&engine, full));
    }
}

fn pod_tests(engine: &Engine, full: bool) -> Result<Tally> {
    build(&demo::PACKAGES, Profile::Dev)?;
    static_installer()?;
    // The same packages as everywhere else: dependencies keep their features, and need not be built again.
    let mut command = cargo(&["test", "--workspace", "--test", "pod"]);
    if full {
        command.args(["--", "--include-ignored"]);
        command.env(PODMAN_COMPOSE, podman_compose::ensure()?);
    }
    counted(engine.lend(&mut command))
}

/// The simulated installer without a need for libraries, where the tests of the pod look for it.
fn static_installer() -> Result<()> {
    let arguments = ["rustc", "--package", "testkit", "--bin", INSTALLER];
    let mut command = cargo(&arguments);
    // For this program alone: its dependencies stay as they are built already.
    command.args(["--", "-Ctarget-feature=+crt-static"]);
    run_command(command.env("SQLX_OFFLINE", "true"))?;
    let target = target_directory()?;
    let folder = target.join("pod");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let built = target.join("debug").join(INSTALLER);
    // A link would change with the next build.
    fs::copy(&built, folder.join(INSTALLER))
        .map(drop)
        .with_context(|| format!("copying {}", built.display()))
}

fn clippy() -> Command {
    cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ])
}

/// Queries are checked against the committed descriptions, tests bring their own server.
fn offline(command: &mut Command) -> &mut Command {
    command
        .env("SQLX_OFFLINE", "true")
        .env_remove("DATABASE_URL")
}

/// Runs all test programs, shows what they print, and counts.
fn unit_and_integration(full: bool) -> Result<Tally> {
    let mut command = cargo(&["test", "--workspace", "--no-fail-fast"]);
    if full {
        // What is ignored otherwise takes long: faults in every process.
        command.args(["--", "--include-ignored"]);
    }
    match distribution::ensure() {
        Ok(program) => drop(command.env(DOCKER_REGISTRY, program)),
        Err(error) => println!("docker-registry cannot be had here: {error:#}"),
    }
    counted(command.env(POD_APART, "1"))
}

/// Runs cargo test, and counts.
fn counted(command: &mut Command) -> Result<Tally> {
    let mut child = offline(command)
        .stdout(Stdio::piped())
        .spawn()
        .context("running cargo test")?;
    let stdout = child.stdout.take().context("cargo test has no output")?;
    let mut tally = Tally::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        if let Some(count) = Tally::of_line(&line) {
            tally.add(count);
        }
    }
    let status = child.wait()?;
    if !status.success() && tally.failed == 0 {
        // Something did not build, or a test program was killed.
        tally.failed = 1;
    }
    Ok(tally)
}

/// The real coreos-installer, for the demo. It needs C libraries: where it cannot be built, the demo's own reader
/// stands alone.
fn second_reader() {
    if let Err(error) = coreos_installer::ensure() {
        println!(
            "coreos-installer cannot be built here, images are read back by our own reader: {error:#}"
        );
    }
}

/// Licences, sources and banned crates; passed over where cargo-deny cannot be had.
fn dependencies() -> Result<Tally> {
    let tools = root().join("target/tools");
    let program = tools.join("bin/cargo-deny");
    if !program.is_file() {
        let tools = tools.to_string_lossy();
        if let Err(error) = run_command(&mut cargo(&[
            "install",
            "cargo-deny",
            "--locked",
            "--root",
            &tools,
        ])) {
            println!("cargo-deny cannot be built here, dependencies are not checked: {error:#}");
            return Ok(Tally::default());
        }
    }
    let mut command = Command::new(program);
    // No advisories: their database is fetched from a place that an isolated machine does not reach.
    command
        .current_dir(root())
        .args(["check", "bans", "licenses", "sources"]);
    Ok(Tally::one(command.status()?.success()))
}

/// What was done, how it went, how long it took.
#[derive(Debug, Default)]
struct Report {
    rows: Vec<(String, Tally, f64)>,
    left_out: Vec<String>,
}

impl Report {
    /// A command that has to succeed; whether it did.
    fn check(&mut self, name: &str, command: &mut Command) -> bool {
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

    /// Something that cannot be done here: said now and at the end, for nobody must take it for done.
    fn leave_out(&mut self, name: &str, why: &str) {
        let text = format!("{name} LEFT OUT: {why}");
        println!("{text}");
        self.left_out.push(text);
    }

    /// Something that counts by itself; not being able to counts as a failure.
    fn add(&mut self, name: &str, count: impl FnOnce() -> Result<Tally>) {
        println!("== {name}");
        let started = Instant::now();
        let tally = count().unwrap_or_else(|error| {
            println!("{name}: {error:#}");
            Tally::one(false)
        });
        self.push(name, tally, started);
    }

    fn demo(&mut self, broken: Option<Break>) {
        let name = broken.map_or_else(
            || "demo".to_owned(),
            |broken| format!("demo --break {}", broken.as_str()),
        );
        println!("== {name}");
        let started = Instant::now();
        let is_passed = match demo::run(None, None, broken, Profile::Dev) {
            Ok(code) => code == ExitCode::SUCCESS,
            Err(error) => {
                println!("{name}: {error:#}");
                false
            }
        };
        self.push(&name, Tally::one(is_passed), started);
    }

    fn push(&mut self, name: &str, tally: Tally, started: Instant) {
        self.rows
            .push((name.to_owned(), tally, started.elapsed().as_secs_f64()));
    }

    /// The table, then the line that counts.
    fn finish(self) -> ExitCode {
        let mut sum = Tally::default();
        println!("== summary");
        for (name, tally, seconds) in self.rows {
            println!(
                "{name:<24} {:>5} passed {:>4} failed {seconds:>8.1} s",
                tally.passed, tally.failed
            );
            sum.add(tally);
        }
        for text in self.left_out {
            println!("{text}");
        }
        println!("{} passed, {} failed", sum.passed, sum.failed);
        if sum.failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
