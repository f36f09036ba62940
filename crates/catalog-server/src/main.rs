//! The catalog server as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    catalog_server::main()
}
