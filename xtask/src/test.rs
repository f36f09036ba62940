//! `cargo xtask test`: all checks, counted in the last line.

mod boot_tools;
mod coreos_installer;
mod distribution;
mod engine;
mod etcd;
mod kubernetes;
mod openid_provider;
mod pages;
mod programs;
mod python;
mod report;
mod tools;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Args;

use self::engine::PodmanService;
use self::programs::CompiledTests;
use self::report::TestReport;
use self::tools::TestTools;
use crate::bundle::PROGRAM;
use crate::cargo::{Profile, build, cargo, linted, root, target_directory};
use crate::command::run as run_command;
use crate::demo::{self, Break};
use crate::libtest::{LibtestReader, Tally, TestOutcome};
use crate::scratch::ScratchFolder;
use crate::{advisories, apt, butane_corpus, ignition_corpus, images, postgres, tidy};

/// Arguments of `test`.
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Also run long checks: images and the sandbox as shipped, the demo's injected faults, the real coreos-installer,
    /// dependency checks.
    /// Skipped tests fail the run
    #[arg(long)]
    full: bool,
    /// Run only the pod: images of the services, and the tests that run them in containers
    #[arg(long)]
    pod: bool,
}

/// Names the file in which tests record that they cannot run: `testkit::skipped`.
const SKIPS: &str = "ATOLL_TEST_SKIPS";
/// Signals the workspace's tests that those of the pod run later: they need images.
const POD_APART: &str = "POD_TESTS_APART";
/// Path of podman-compose, for the tests of the pod.
const PODMAN_COMPOSE: &str = "PODMAN_COMPOSE";
/// Folder of `cargo xtask bundle`, for the tests of the pod.
const POD_BUNDLE: &str = "POD_BUNDLE";
/// Comparisons with programs that only some machines have, each named by a variable: run by hand, not by `--full`.
const BY_HAND: [(&str, &str); 2] = [
    (
        "archives_are_read_and_written_as_the_peer_does",
        "ATOLL_ORACLE_OC_MIRROR",
    ),
    ("every_reply_equals_the_peers", "ATOLL_ORACLE_OPM"),
];
/// Debian's packages with a browser; without windows it is smaller, and loads pages in two thirds of the time.
const BROWSER_PACKAGES: [&str; 2] = ["chromium-headless-shell", "chromium"];
/// Programs of Chromium, as the tests of pages find it.
const BROWSERS: [&str; 5] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];
/// Tests that write a fixture of the current state into the source tree; no checks.
const WRITERS: &str = "writes_the_next_";
/// Tests that emulate machines, whose firmware has timeouts of its own: in a full run, nothing runs beside them.
const EMULATED: &str = "emulated::";
/// Tests that mutate files for a fixed time: in a full run, all at once in a stage of their own.
const FUZZ: &str = "half_an_hour_of_";

/// Tests of a pod in a network namespace: the engine has one name server for all pods, in the namespace of the first one.
const INSTALLED: &str = "install::";

/// Runs all stages, also after a failure, and prints the count as the last line.
pub(crate) fn run(arguments: &TestArgs) -> ExitCode {
    let mut report = TestReport::default();
    if arguments.pod {
        let engine = engine(&mut report);
        pod(&mut report, engine.as_ref(), arguments.full);
        // Selected explicitly, a skipped test is a failure.
        return report.finish(true);
    }
    report.check("fmt", &mut cargo(&["fmt", "--all", "--check"]));
    report.add("tidy", tidy::check);
    report.add("advisories", advisories::check);
    report.add("postgres", || {
        postgres::ensure_binaries().map(|_| Tally::default())
    });
    // Before the integration tests: clients among them are its programs.
    let engine = engine(&mut report);
    browser();
    tests(&mut report, arguments.full);
    if arguments.full {
        // Another C library makes other system calls, which the seccomp filter has to allow.
        report.add_tests("sandbox, as shipped", || {
            counted(&mut images::programs::test("sandbox"))
        });
        second_reader(&mut report);
        validator(&mut report);
        butane(&mut report);
        dependencies(&mut report);
    }
    report.demo(None);
    pages::run(&mut report);
    if arguments.full {
        report.demo(Some(Break::Ram));
        report.demo(Some(Break::Registry));
    }
    pod(&mut report, engine.as_ref(), arguments.full);
    report.finish(arguments.full)
}

/// The container engine; none where no container can run.
fn engine(report: &mut TestReport) -> Option<PodmanService> {
    println!("== engine");
    let started = Instant::now();
    match PodmanService::start() {
        Ok(engine) => {
            report.push("engine", Tally::one(true), started);
            Some(engine)
        }
        Err(error) => {
            let why = format!("no container can run here:\n{error:#}");
            report.skip("pod", &why);
            None
        }
    }
}

/// A browser, for the tests of pages: without one they are skipped.
fn browser() {
    if BROWSERS.iter().any(|name| apt::is_program(name)) {
        return;
    }
    for package in BROWSER_PACKAGES {
        match apt::install(&[package], "pages are tested in a browser") {
            Ok(()) => return,
            Err(error) => println!("{package} cannot be installed here: {error:#}"),
        }
    }
}

/// The services as containers.
fn pod(report: &mut TestReport, engine: Option<&PodmanService>, full: bool) {
    let Some(engine) = engine else {
        return;
    };
    // By this name it is started also after a build has replaced its file.
    let own = Path::new("/proc/self/exe");
    let mut build = Command::new(own);
    build.current_dir(root());
    if !full {
        build.args(["images", "--quick"]);
        if report.check("images", &mut build) {
            report.add_tests("pod", || pod_tests(engine, None, &[]));
        }
        return;
    }
    // The artifacts that users carry and run: the containers start from its images.
    let folder = root().join("target/bundle");
    let bundle = folder.join("atoll-bundle.tar");
    if report.check("bundle", build.arg("bundle").arg(&bundle)) {
        let mut extract = Command::new("tar");
        extract
            .arg("-xf")
            .arg(&bundle)
            .arg("-C")
            .arg(&folder)
            .arg(PROGRAM);
        let mut load = Command::new(folder.join(PROGRAM));
        load.arg("install").arg(&bundle).arg("--only-load");
        if report.check("extract", &mut extract) && report.check("load", &mut load) {
            let bundle = Some(folder.as_path());
            report.add_tests("pod", || pod_tests(engine, bundle, &["--skip", INSTALLED]));
            report.add_tests("installed pod", || pod_tests(engine, bundle, &[INSTALLED]));
        }
        report.add("images again", || reproduced(own));
        match images::figure() {
            Ok(Some(figure)) => report.note(format!("images without db: {figure}")),
            Ok(None) => report.note("images without db: size unknown".to_owned()),
            Err(error) => report.note(format!("images without db: {error:#}")),
        }
    }
}

/// Builds the images again from scratch in another folder: the same source gives the same digests.
fn reproduced(own: &Path) -> Result<Tally> {
    let first = target_directory()?;
    let again = first.join("again");
    if again.exists() {
        fs::remove_dir_all(&again).with_context(|| format!("removing {}", again.display()))?;
    }
    let mut build = Command::new(own);
    build.current_dir(root()).arg("images");
    run_command(build.env("CARGO_TARGET_DIR", &again))?;
    let (one, other) = (images::digests(&first), images::digests(&again));
    fs::remove_dir_all(&again).with_context(|| format!("removing {}", again.display()))?;
    let mut tally = Tally::default();
    for (name, digest) in &one {
        let is_same = other.get(name) == Some(digest);
        if !is_same {
            println!("{name}: {digest}, then {:?}", other.get(name));
        }
        tally.add(Tally::one(is_same));
    }
    Ok(tally)
}

/// The pod's tests; the long ones, too, where there is a bundle to start from.
fn pod_tests(
    engine: &PodmanService,
    bundle: Option<&Path>,
    selection: &[&str],
) -> Result<TestOutcome> {
    build(&demo::PACKAGES, Profile::Tests)?;
    // The same packages as in the other stages: dependencies keep their features, and are not rebuilt.
    let mut command = cargo(&["test", "--workspace", "--test", "pod"]);
    if let Some(bundle) = bundle {
        command.args(["--", "--include-ignored"]).args(selection);
        command.env(PODMAN_COMPOSE, python::PODMAN_COMPOSE.ensure()?);
        command.env(POD_BUNDLE, bundle);
    }
    counted(engine.lend(linted(&mut command)))
}

/// Queries are checked against the committed descriptions, tests bring their own server.
fn offline(command: &mut Command) -> &mut Command {
    command
        .env("SQLX_OFFLINE", "true")
        .env_remove("DATABASE_URL")
}

/// All tests but those of the pod: unit tests first, for an early verdict.
fn tests(report: &mut TestReport, full: bool) {
    let mut compiled = CompiledTests::default();
    report.add("compilation and lints", || {
        compiled = programs::compile()?;
        Ok(Tally::one(compiled.warnings == 0))
    });
    let mut arguments = Vec::new();
    if full {
        // Ignored tests take long: faults in every process.
        arguments.extend(["--include-ignored", "--skip", WRITERS]);
        for (test, variable) in BY_HAND {
            if std::env::var_os(variable).is_none() {
                println!("{test} is run by hand, with {variable}");
                arguments.extend(["--skip", test]);
            }
        }
    }
    let tools = TestTools::ensure(full);
    let prepare = |command: &mut Command| {
        tools.pass_to(command);
        command.env(POD_APART, "1");
    };
    let (integration, unit): (Vec<_>, Vec<_>) = compiled
        .programs
        .iter()
        .partition(|program| program.is_integration);
    if full {
        arguments.extend(["--skip", FUZZ, "--skip", EMULATED]);
    }
    report.add_tests("unit tests", || {
        programs::run(unit.iter().copied(), &arguments, prepare)
    });
    report.add_tests("integration tests", || {
        programs::run(integration.iter().copied(), &arguments, prepare)
    });
    if full {
        // All at once: each takes its half hour by the clock.
        let arguments = [
            FUZZ,
            "--include-ignored",
            "--test-threads=8",
            "--show-output",
        ];
        report.add_tests("fuzzing", || programs::run(unit, &arguments, prepare));
        let systems = integration.into_iter().filter(|it| it.is_of("tests", "it"));
        let arguments = [EMULATED, "--include-ignored", "--test-threads=2"];
        report.add_tests("emulated machines", || {
            programs::run(systems, &arguments, prepare)
        });
    }
    report.add_tests("examples in docs", || {
        counted(linted(&mut cargo(&["test", "--workspace", "--doc"])))
    });
}

/// Runs cargo test, and counts.
fn counted(command: &mut Command) -> Result<TestOutcome> {
    let scratch = ScratchFolder::new()?;
    let skips = scratch.path().join("skipped");
    let mut child = offline(command)
        .env(SKIPS, &skips)
        .stdout(Stdio::piped())
        .spawn()
        .context("running cargo test")?;
    let stdout = child.stdout.take().context("cargo test has no output")?;
    let mut reader = LibtestReader::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        reader.line(&line);
    }
    let status = child.wait()?;
    let records = fs::read_to_string(&skips).unwrap_or_default();
    if !status.success() && reader.failed() == 0 {
        reader.broken("a build failed, or a test program was killed", "");
    }
    Ok(reader.finish(&records))
}

/// The real coreos-installer, for the demo. It needs C libraries: where it cannot be built, only the demo's own reader
/// verifies images.
fn second_reader(report: &mut TestReport) {
    if let Err(error) = coreos_installer::ensure() {
        let why = format!("coreos-installer cannot be built here: {error:#}");
        report.skip("demo, read by coreos-installer", &why);
    }
}

/// Ignition's own validator on the recorded configurations.
fn validator(report: &mut TestReport) {
    match ignition_corpus::ensure() {
        Ok(program) => report.add("ignition validate", || ignition_corpus::check(&program)),
        Err(error) => {
            let why = format!("Ignition's validator cannot be built here: {error:#}");
            report.skip("ignition validate", &why);
        }
    }
}

/// The real butane on the inputs of the corpus.
fn butane(report: &mut TestReport) {
    match butane_corpus::ensure() {
        Ok(program) => report.add("butane", || butane_corpus::check(&program)),
        Err(error) => {
            let why = format!("butane cannot be built here: {error:#}");
            report.skip("butane", &why);
        }
    }
}

/// Licences, sources and banned crates.
fn dependencies(report: &mut TestReport) {
    let tools = root().join("target/tools");
    let program = tools.join("bin/cargo-deny");
    if !program.is_file() {
        let tools = tools.to_string_lossy();
        let install = ["install", "cargo-deny", "--locked", "--root", &tools];
        if let Err(error) = run_command(&mut cargo(&install)) {
            let why = format!("cargo-deny cannot be built here: {error:#}");
            return report.skip("deny", &why);
        }
    }
    let mut command = Command::new(program);
    // No advisories: cargo-deny fetches their database; `advisories` reads the committed snapshot.
    command
        .current_dir(root())
        .args(["check", "bans", "licenses", "sources"]);
    report.check("deny", &mut command);
}
