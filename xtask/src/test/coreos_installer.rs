//! The real coreos-installer, as a second reader of our images. Built once.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::apt;
use crate::cargo::{cargo, root};
use crate::command::run;

/// The version that the demo was tested with.
const VERSION: &str = "0.27.0";
/// C libraries by their names in pkg-config, and the Debian packages that have them.
const LIBRARIES: [&str; 2] = ["openssl", "libzstd"];
const LIBRARY_PACKAGES: [&str; 3] = ["pkg-config", "libssl-dev", "libzstd-dev"];

/// Builds it into target/tools unless it exists.
pub(crate) fn ensure() -> Result<PathBuf> {
    let tools = root().join("target/tools");
    let program = tools.join("bin/coreos-installer");
    if !program.is_file() {
        println!(
            "Building coreos-installer {VERSION} into {} (once).",
            tools.display()
        );
        if !has_libraries() {
            apt::install(&LIBRARY_PACKAGES, "coreos-installer links these libraries")?;
        }
        let tools = tools.to_string_lossy();
        run(&mut cargo(&[
            "install",
            "coreos-installer",
            "--locked",
            "--version",
            VERSION,
            "--root",
            &tools,
        ]))?;
    }
    Ok(program)
}

fn has_libraries() -> bool {
    let mut command = Command::new("pkg-config");
    let status = command.arg("--exists").args(LIBRARIES).status();
    status.is_ok_and(|status| status.success())
}
