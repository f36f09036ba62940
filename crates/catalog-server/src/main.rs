//! The catalog server as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::program::main::<catalog_server::Settings, _, _>("catalog-server", catalog_server::run)
}
