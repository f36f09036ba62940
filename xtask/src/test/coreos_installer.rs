//! The real coreos-installer, as a second reader of our images. Built once.

use std::path::PathBuf;

use anyhow::Result;

use crate::cargo::{cargo, root};
use crate::command::run;

/// The version that the demo was tested with.
const VERSION: &str = "0.27.0";

/// Builds it into target/tools unless it exists.
pub(crate) fn ensure() -> Result<PathBuf> {
    let tools = root().join("target/tools");
    let program = tools.join("bin/coreos-installer");
    if !program.is_file() {
        println!(
            "Building coreos-installer {VERSION} into {} (once).",
            tools.display()
        );
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
