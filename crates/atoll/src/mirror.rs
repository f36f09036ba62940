//! `atoll mirror`: what an image set names is carried to where there is no internet.

mod carry;
mod catalog;
mod check;
mod delete;
mod describe;
mod init;
mod key;
mod list;
mod list_operators;
mod list_releases;
mod list_updates;
pub(crate) mod peer;
mod registries;
mod releases;
mod verify;
mod version;

use clap::{Args, Subcommand};
use service::Error;

/// A run, or something else that can be done with image sets.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct Arguments {
    #[command(flatten)]
    carry: carry::Arguments,
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// What can be done with image sets.
#[derive(Debug, Clone, Subcommand)]
enum Verb {
    /// Print a configuration to begin with
    Init(init::Arguments),
    /// Tell everything that is wrong with a configuration, with line and column, or what it asks for
    Check(check::Arguments),
    /// Print what an archive carries
    Describe(describe::Arguments),
    /// Show what can be carried
    List {
        #[command(subcommand)]
        verb: list::Verb,
    },
    /// Copy whole catalogs as older tools do it
    Catalog {
        #[command(subcommand)]
        verb: catalog::Verb,
    },
    /// Delete images in a registry: make a list with --generate, then delete what is in it
    Delete(Box<delete::Arguments>),
    /// Compare an archive set with its digests, or a registry with what a set consists of, and tell everything that is wrong
    Verify(Box<verify::Arguments>),
    /// Make a key that archives are signed with
    Key(key::Arguments),
    /// Print which version this is
    Version(version::Arguments),
}

/// Does what the command line says.
///
/// Errors: a configuration or an archive that cannot be read, or is wrong; what a run could not carry.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Error> {
    match &arguments.verb {
        None => carry::run(&arguments.carry),
        Some(Verb::Init(arguments)) => init::run(arguments),
        Some(Verb::Check(arguments)) => check::run(arguments),
        Some(Verb::Describe(arguments)) => describe::run(arguments),
        Some(Verb::List { verb }) => list::run(verb),
        Some(Verb::Catalog { verb }) => catalog::run(verb),
        Some(Verb::Delete(arguments)) => delete::run(arguments),
        Some(Verb::Key(arguments)) => key::run(arguments),
        Some(Verb::Verify(arguments)) => verify::run(arguments),
        Some(Verb::Version(arguments)) => version::run(arguments),
    }
}
