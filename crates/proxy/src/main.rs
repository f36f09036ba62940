//! The proxy as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::program::main("proxy", proxy::main)
}
