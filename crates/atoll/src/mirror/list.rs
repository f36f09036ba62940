//! `atoll mirror list`: what can be carried.

mod operators;
mod releases;
mod updates;

use clap::Subcommand;
use service::Error;

/// What is shown.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum ListCommand {
    /// Show catalogs, the packages of one, the channels of a package, or the versions in a channel
    Operators(operators::ListOperatorsArgs),
    /// Show releases of the platform, the channels of a version, or the versions in a channel
    Releases(releases::ListReleasesArgs),
    /// Show what the next run of a set would bring
    Updates(updates::ListUpdatesArgs),
}

/// Prints the list.
///
/// Errors: those of the command.
pub(super) fn run(command: &ListCommand) -> Result<(), Error> {
    match command {
        ListCommand::Operators(arguments) => operators::run(arguments),
        ListCommand::Releases(arguments) => releases::run(arguments),
        ListCommand::Updates(arguments) => updates::run(arguments),
    }
}
