//! `atoll mirror list`: what can be carried.

use clap::Subcommand;
use service::Error;

use super::list_operators;

/// What is shown.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum Verb {
    /// Show catalogs, the packages of one, the channels of a package, or the versions in a channel
    Operators(list_operators::Arguments),
}

/// Prints the list.
///
/// Errors: those of the verb.
pub(super) fn run(verb: &Verb) -> Result<(), Error> {
    match verb {
        Verb::Operators(arguments) => list_operators::run(arguments),
    }
}
