//! Whether an archive set is what was packed, and whether a registry has what a set consists of.

mod archive;
mod registry;

use std::path::PathBuf;

use clap::Args;
use service::Error;

use super::registry_args::RegistryArgs;
use super::release_args::ReleaseArgs;
use super::run::Destination;

/// What is verified.
#[derive(Debug, Clone, Args)]
pub(crate) struct MirrorVerifyArgs {
    /// The folder of an archive set, one of its files, docker://HOST[:PORT][/NAMESPACE], or oci://FOLDER
    #[arg(value_name = "WHAT")]
    what: String,
    /// Whether the set was signed with this key: the public half of an ed25519 key in PEM
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Of a registry: the ImageSetConfiguration of what has to be there; else, what the metadata there tells
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Of a registry: read all blobs and compare them with their digests, instead of their sizes
    #[arg(long)]
    deep: bool,
    /// Folder for what is temporary
    #[arg(long, value_name = "DIR", default_value = "oc-mirror-workspace")]
    dir: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    registries: RegistryArgs,
    #[command(flatten)]
    releases: ReleaseArgs,
}

/// Looks at all of it, and tells all faults.
///
/// Errors: there is a fault, or nothing of the kind.
pub(crate) fn run(arguments: &MirrorVerifyArgs) -> Result<(), Error> {
    match arguments.what.parse() {
        Ok(Destination::Registry {
            registry,
            namespace,
        }) => registry::run(arguments, &registry, &namespace),
        Ok(Destination::Folder(folder)) => archive::run(arguments, &folder),
        Err(_) => archive::run(arguments, arguments.what.as_ref()),
    }
}
