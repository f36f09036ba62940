//! `atoll mirror`: what an image set names is carried to where there is no internet.

mod catalog;
mod check;
mod delete;
mod describe;
mod init;
mod key;
mod list;
pub(crate) mod oc_mirror;
mod registry_args;
mod release_args;
mod run;
mod verify;
mod version;

use clap::{Args, Subcommand};
use service::Error;

/// A run, or something else that can be done with image sets.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct MirrorArgs {
    #[command(flatten)]
    run: run::RunArgs,
    #[command(subcommand)]
    command: Option<MirrorCommand>,
}

/// What can be done with image sets.
#[derive(Debug, Clone, Subcommand)]
enum MirrorCommand {
    /// Print a configuration to begin with
    Init(init::InitArgs),
    /// Tell everything that is wrong with a configuration, with line and column, or what it asks for
    Check(check::CheckArgs),
    /// Print what an archive carries
    Describe(describe::DescribeArgs),
    /// Show what can be carried
    List {
        #[command(subcommand)]
        command: list::ListCommand,
    },
    /// Copy whole catalogs as older tools do it
    Catalog {
        #[command(subcommand)]
        command: catalog::MirrorCatalogCommand,
    },
    /// Delete images in a registry: make a list with --generate, then delete what is in it
    Delete(Box<delete::DeleteArgs>),
    /// Compare an archive set with its digests, or a registry with what a set consists of, and tell everything that is wrong
    Verify(Box<verify::MirrorVerifyArgs>),
    /// Make a key that archives are signed with
    Key(key::KeyArgs),
    /// Print which version this is
    Version(version::VersionArgs),
}

/// Does what the command line says.
///
/// Errors: a configuration or an archive that cannot be read, or is wrong; what a run could not carry.
pub(crate) fn run(arguments: &MirrorArgs) -> Result<(), Error> {
    match &arguments.command {
        None => run::run(&arguments.run),
        Some(MirrorCommand::Init(arguments)) => init::run(arguments),
        Some(MirrorCommand::Check(arguments)) => check::run(arguments),
        Some(MirrorCommand::Describe(arguments)) => describe::run(arguments),
        Some(MirrorCommand::List { command }) => list::run(command),
        Some(MirrorCommand::Catalog { command }) => catalog::run(command),
        Some(MirrorCommand::Delete(arguments)) => delete::run(arguments),
        Some(MirrorCommand::Key(arguments)) => key::run(arguments),
        Some(MirrorCommand::Verify(arguments)) => verify::run(arguments),
        Some(MirrorCommand::Version(arguments)) => version::run(arguments),
    }
}
