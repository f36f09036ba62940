//! `atoll mirror`: mirrors image sets to disconnected registries.

mod archives_args;
mod catalog;
mod check;
mod delete;
mod describe;
mod init;
mod key;
mod list;
mod login_args;
pub(crate) mod oc_mirror;
mod registry_args;
mod release_args;
mod run;
mod verify;
mod version;

use clap::{Args, Subcommand};
use service::Error;

pub(crate) use run::{ProgressPrinter, ask_to_prune, print_outcome, pruning_lines};

/// A run, or a subcommand.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct MirrorArgs {
    #[command(flatten)]
    run: run::RunArgs,
    #[command(subcommand)]
    command: Option<MirrorCommand>,
}

/// Subcommands for image sets.
#[derive(Debug, Clone, Subcommand)]
enum MirrorCommand {
    /// Print a template of an image-set configuration
    Init(init::InitArgs),
    /// Validate an image-set configuration: list all problems with line and column, or summarize it
    Check(check::CheckArgs),
    /// Print the metadata of an archive
    Describe(describe::DescribeArgs),
    /// List available releases, operators and updates
    List {
        #[command(subcommand)]
        command: list::ListCommand,
    },
    /// Copy or prune whole catalogs like oc adm catalog mirror and opm index prune
    Catalog {
        #[command(subcommand)]
        command: catalog::MirrorCatalogCommand,
    },
    /// Delete images in a registry: write a list with --generate, then delete its images
    Delete(Box<delete::DeleteArgs>),
    /// Verify an archive set against its digests, or a registry against an image set, and list all faults
    Verify(Box<verify::MirrorVerifyArgs>),
    /// Generate a key pair for signing archives
    Key(key::KeyArgs),
    /// Print version information
    Version(version::VersionArgs),
}

/// Runs the subcommand.
///
/// Errors: invalid configuration or archive; images that a run could not mirror.
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
