//! The catalog server as a standalone program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    catalog_server::compat_main(&arguments)
        .unwrap_or_else(|| service::program::main("catalog-server", catalog_server::main))
}
