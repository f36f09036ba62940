//! `cargo xtask api-coverage`: the operations of the API, as the API server lists them.

use std::process::ExitCode;

use anyhow::Result;

use crate::cargo::cargo;
use crate::command;

/// Prints every operation, whether it is implemented, and the count.
pub(crate) fn run() -> Result<ExitCode> {
    let arguments = [
        "run",
        "--quiet",
        "--package",
        "api-server",
        "--",
        "--operations",
    ];
    command::run(cargo(&arguments).env("SQLX_OFFLINE", "true"))?;
    Ok(ExitCode::SUCCESS)
}
