//! `atoll mirror`: what an image set names is carried to where there is no internet.

mod check;
mod describe;
mod init;
mod verify;

use clap::Subcommand;
use service::Error;

/// What can be done with image sets.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Verb {
    /// Print a configuration to begin with
    Init(init::Arguments),
    /// Tell everything that is wrong with a configuration, with line and column, or what it asks for
    Check(check::Arguments),
    /// Print what an archive carries
    Describe(describe::Arguments),
    /// Compare every byte of an archive set with its digests, and tell everything that is wrong
    Verify(verify::Arguments),
}

/// Does what the command line says.
///
/// Errors: a configuration or an archive that cannot be read, or is wrong.
pub(crate) fn run(verb: &Verb) -> Result<(), Error> {
    match verb {
        Verb::Init(arguments) => init::run(arguments),
        Verb::Check(arguments) => check::run(arguments),
        Verb::Describe(arguments) => describe::run(arguments),
        Verb::Verify(arguments) => verify::run(arguments),
    }
}
