//! The proxy as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::program::main_reloading::<proxy::Settings, _, _>("proxy", proxy::run_reloading)
}
