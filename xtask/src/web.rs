//! `cargo xtask web`: the pages of the web UI, by Node.js and npm.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

use crate::apt;
use crate::cargo::{root, target_directory};
use crate::command::{output, run as run_command};

/// Names the folder of the pages for the web UI server.
pub(crate) const STATIC_ROOT: &str = "STATIC_ROOT";
/// The oldest Node.js that the build's tools run on: that of Debian 12.
const NODE_VERSION: u32 = 18;
/// The file that the web UI server takes a folder of pages by.
const INDEX: &str = "index.html";

/// Builds the pages and prints their folder.
pub(crate) fn run() -> Result<ExitCode> {
    println!("{}", build()?.display());
    Ok(ExitCode::SUCCESS)
}

/// The folder of the pages as they were built last; none before the first time.
pub(crate) fn built() -> Option<PathBuf> {
    let folder = target_directory().ok()?.join("web");
    folder.join(INDEX).is_file().then_some(folder)
}

/// Builds the pages if their sources changed; returns their folder, STATIC_ROOT of the web UI server.
///
/// Errors: Node.js is missing and cannot be installed; a package cannot be downloaded; the sources do not compile.
pub(crate) fn build() -> Result<PathBuf> {
    install_packages()?;
    let folder = target_directory()?.join("web");
    let record = target_directory()?.join("web.inputs");
    let inputs = inputs()?;
    let is_recent = fs::read_to_string(&record).is_ok_and(|recorded| recorded == inputs);
    if !is_recent || built().is_none() {
        fs::remove_file(&record).ok();
        let mut command = npm(&["run", "build", "--", "--outDir"]);
        run_command(command.arg(&folder))?;
        fs::write(&record, inputs).with_context(|| format!("writing {}", record.display()))?;
    }
    Ok(folder)
}

/// Installs the packages of the lockfile, unless they are there.
pub(crate) fn install_packages() -> Result<()> {
    ensure_node()?;
    let source = folder();
    let lock = fs::read(source.join("package-lock.json")).context("reading package-lock.json")?;
    // Written last: an interrupted installation is repeated.
    let done = source.join("node_modules/.atoll-lock");
    if fs::read(&done).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    println!("npm installs the packages of web/package-lock.json into web/node_modules.");
    // No package needs its script to run, and none gets to.
    run_command(&mut npm(&["ci", "--ignore-scripts"]))?;
    fs::write(&done, lock).with_context(|| format!("writing {}", done.display()))
}

/// npm with `arguments`, in the folder of the sources.
pub(crate) fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(folder());
    command
}

fn folder() -> PathBuf {
    root().join("web")
}

fn ensure_node() -> Result<()> {
    if !["node", "npm"].iter().all(|name| apt::is_program(name)) {
        apt::install(
            &["nodejs", "npm"],
            "the pages of the web UI are built by them",
        )?;
    }
    let version = String::from_utf8(output(Command::new("node").arg("--version"))?)?;
    let major = version.trim().trim_start_matches('v').split('.').next();
    let major: u32 = major.unwrap_or_default().parse().unwrap_or_default();
    ensure!(
        major >= NODE_VERSION,
        "Node.js {} is too old for the web UI: {NODE_VERSION} or newer is needed",
        version.trim()
    );
    Ok(())
}

/// A hash of the sources of the pages, by paths below their folder.
fn inputs() -> Result<String> {
    let source = folder();
    let mut files = Vec::new();
    for name in ["build", "src"] {
        list(&source.join(name), &mut files)?;
    }
    for name in [
        "index.html",
        "package-lock.json",
        "package.json",
        "tsconfig.json",
        "vite.config.ts",
    ] {
        files.push(source.join(name));
    }
    files.sort();
    let mut hash = Sha256::new();
    for path in files {
        let content = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        for part in [path.as_os_str().as_encoded_bytes(), &content] {
            // With its length, so that adjacent parts stay distinct.
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
    }
    Ok(hex::encode(hash.finalize()))
}

/// The files below `folder`.
pub(crate) fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}
