//! Debian's docker-registry for the tests of the mirroring tool, unpacked into a folder of its own: the installed
//! package would serve a port of the system.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::apt::find_program;
use crate::cargo::root;
use crate::command::run;

const NAME: &str = "docker-registry";

/// The program; unpacks it first when it is missing.
pub(super) fn ensure() -> Result<PathBuf> {
    if let Some(program) = find_program(NAME) {
        return Ok(program);
    }
    let folder = root().join("target/tools").join(NAME);
    let program = folder.join("usr/bin").join(NAME);
    if program.is_file() {
        return Ok(program);
    }
    println!(
        "{NAME} is not here: Debian's package is unpacked into {}.",
        folder.display()
    );
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    run(Command::new("apt-get")
        .args(["download", "--quiet=2", NAME])
        .current_dir(&folder))?;
    for entry in fs::read_dir(&folder)? {
        let package = entry?.path();
        if package.extension().is_some_and(|it| it == "deb") {
            run(Command::new("dpkg-deb")
                .arg("--extract")
                .arg(package)
                .arg(&folder))?;
        }
    }
    ensure!(
        program.is_file(),
        "the package has no {}",
        program.display()
    );
    Ok(program)
}
