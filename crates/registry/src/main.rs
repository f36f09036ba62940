//! The registry as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::program::main::<registry::Settings, _, _>("registry", registry::run)
}
