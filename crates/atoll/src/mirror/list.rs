//! `atoll mirror list`: available releases, operators and updates.

mod operators;
mod releases;
mod updates;

use clap::Subcommand;
use service::Error;

/// Subcommands of `list`.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum ListCommand {
    /// List catalogs, packages of a catalog, channels of a package, or versions of a channel
    Operators(operators::ListOperatorsArgs),
    /// List platform releases, channels of a version, or versions of a channel
    Releases(releases::ListReleasesArgs),
    /// List updates that the next run of an image set would mirror
    Updates(updates::ListUpdatesArgs),
}

/// Prints the list.
///
/// Errors: those of the subcommand.
pub(super) fn run(command: &ListCommand) -> Result<(), Error> {
    match command {
        ListCommand::Operators(arguments) => operators::run(arguments),
        ListCommand::Releases(arguments) => releases::run(arguments),
        ListCommand::Updates(arguments) => updates::run(arguments),
    }
}
