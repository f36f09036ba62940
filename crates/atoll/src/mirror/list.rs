//! `atoll mirror list`: what can be carried.

use clap::Subcommand;
use service::Error;

use super::{list_operators, list_releases, list_updates};

/// What is shown.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum Verb {
    /// Show catalogs, the packages of one, the channels of a package, or the versions in a channel
    Operators(list_operators::Arguments),
    /// Show releases of the platform, the channels of a version, or the versions in a channel
    Releases(list_releases::Arguments),
    /// Show what the next run of a set would bring
    Updates(list_updates::Arguments),
}

/// Prints the list.
///
/// Errors: those of the verb.
pub(super) fn run(verb: &Verb) -> Result<(), Error> {
    match verb {
        Verb::Operators(arguments) => list_operators::run(arguments),
        Verb::Releases(arguments) => list_releases::run(arguments),
        Verb::Updates(arguments) => list_updates::run(arguments),
    }
}
