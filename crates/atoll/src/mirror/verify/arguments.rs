//! Arguments of `atoll mirror verify`.

use std::path::PathBuf;

use clap::Args;

use crate::mirror::registry_args::RegistryArgs;
use crate::mirror::release_args::ReleaseArgs;
use crate::output_format::FormatArgs;

/// Arguments of `atoll mirror verify`.
#[derive(Debug, Clone, Args)]
pub(crate) struct MirrorVerifyArgs {
    /// Folder or file of an archive set, or the URL of either; docker://HOST[:PORT][/NAMESPACE], or oci://FOLDER
    #[arg(value_name = "TARGET")]
    pub(super) target: String,
    /// Verify the signature of an archive set with this ed25519 public key (PEM)
    #[arg(long, value_name = "FILE")]
    pub(super) key: Option<PathBuf>,
    /// Verify a registry against this image-set configuration instead of its metadata
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Read all blobs of a registry and compare digests instead of sizes
    #[arg(long)]
    pub(super) deep: bool,
    /// Folder for temporary files
    #[arg(long, value_name = "DIR", default_value = "oc-mirror-workspace")]
    pub(super) dir: PathBuf,
    #[command(flatten)]
    pub(super) format: FormatArgs,
    #[command(flatten)]
    pub(super) registries: RegistryArgs,
    #[command(flatten)]
    pub(super) releases: ReleaseArgs,
}
