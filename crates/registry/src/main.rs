//! The registry as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::program::main("registry", registry::main)
}
