//! podman-compose for the tests of the pod: from PyPI, in a folder of its own.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::apt;
use crate::cargo::root;
use crate::command::run;

/// The version that the README requires.
const VERSION: &str = "1.6.0";

/// The program; installs it first when it is missing.
pub(super) fn ensure() -> Result<PathBuf> {
    let folder = root().join(format!("target/tools/podman-compose-{VERSION}"));
    let program = folder.join("bin/podman-compose");
    if program.is_file() {
        return Ok(program);
    }
    println!(
        "podman-compose is not here: it is taken from PyPI into {}.",
        folder.display()
    );
    let make = || run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    if make().is_err() {
        apt::install(&["python3-venv"], "podman-compose is a Python program")?;
        make()?;
    }
    let requirement = format!("podman-compose=={VERSION}");
    let install = Command::new(folder.join("bin/pip"))
        .args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            &requirement,
        ])
        .status();
    let is_installed = install.context("running pip")?.success();
    ensure!(
        is_installed && program.is_file(),
        "pip cannot install {requirement}"
    );
    Ok(program)
}
