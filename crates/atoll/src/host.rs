//! `atoll host`: records of hosts (BareMetalHost, Secret, Machine) in files.

mod check;
mod input;
mod list;
mod render;

use std::process::ExitCode;

use clap::Subcommand;

/// Mode of files with passwords.
const OWNER_ONLY: u32 = 0o600;

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum HostCommand {
    /// Check BareMetalHost, Secret and Machine records in YAML or JSON: each mistake with line, field and remedy; exit
    /// code 1 if one is an error
    Check(check::CheckArgs),
    /// List the hosts of a cluster
    List(list::HostListArgs),
    /// Write Secret, BareMetalHost and Machine records of a short inventory
    Render(render::RenderArgs),
}

/// Runs the subcommand; the value is the exit code.
pub(crate) fn run(command: &HostCommand) -> ExitCode {
    let result = match command {
        HostCommand::Check(arguments) => check::run(arguments),
        HostCommand::List(arguments) => list::run(arguments).map(|()| true),
        HostCommand::Render(arguments) => render::run(arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            crate::terminal::notice(&error.to_string());
            ExitCode::FAILURE
        }
    }
}
