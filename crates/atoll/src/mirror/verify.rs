//! Verification of archive sets and registries.

mod archive;
mod registry;

use std::path::PathBuf;

use clap::Args;
use service::Error;

use super::registry_args::RegistryArgs;
use super::release_args::ReleaseArgs;
use super::run::Destination;

/// Arguments of `atoll mirror verify`.
#[derive(Debug, Clone, Args)]
pub(crate) struct MirrorVerifyArgs {
    /// Folder or file of an archive set, docker://HOST[:PORT][/NAMESPACE], or oci://FOLDER
    #[arg(value_name = "TARGET")]
    target: String,
    /// Verify the signature of an archive set with this ed25519 public key (PEM)
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Verify a registry against this image-set configuration instead of its metadata
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Read all blobs of a registry and compare digests instead of sizes
    #[arg(long)]
    deep: bool,
    /// Folder for temporary files
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

/// Verifies the set or registry and prints all faults.
///
/// Errors: faults, or no archive set or metadata.
pub(crate) fn run(arguments: &MirrorVerifyArgs) -> Result<(), Error> {
    match arguments.target.parse() {
        Ok(Destination::Target(target)) => registry::run(arguments, &target),
        Ok(Destination::ArchiveSet(folder)) => archive::run(arguments, &folder),
        Err(_) => archive::run(arguments, arguments.target.as_ref()),
    }
}
