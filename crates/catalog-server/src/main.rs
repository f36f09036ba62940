//! The catalog server as a standalone program.

use std::process::ExitCode;

fn main() -> ExitCode {
    catalog_server::main()
}
