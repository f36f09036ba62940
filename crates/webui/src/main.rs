//! The web UI server as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    service::program::main("webui", webui::main)
}
