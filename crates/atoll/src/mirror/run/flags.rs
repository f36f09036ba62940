//! What people say on the command line of a run.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::destination::Destination;
use super::progress::ProgressFormat;
use crate::mirror::registry_args::RegistryArgs;
use crate::mirror::release_args::ReleaseArgs;

/// What is carried, from where, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// file://FOLDER for archives, oci://FOLDER for an image layout, or docker://HOST[:PORT][/NAMESPACE]
    pub(super) target: Option<Destination>,
    /// An archive, or the folder with the archives of a run, instead of registries
    #[arg(long, value_name = "PATH")]
    pub(super) from: Option<PathBuf>,
    /// The ImageSetConfiguration
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Folder for what is temporary, and for results
    #[arg(long, value_name = "DIR", default_value = "oc-mirror-workspace")]
    pub(super) dir: PathBuf,
    /// Publish archives whatever the target has
    #[arg(long)]
    pub(super) skip_metadata_check: bool,
    /// Carry everything again that former runs have carried
    #[arg(long)]
    pub(super) ignore_history: bool,
    /// Let images stay in the target that the set does not have any more, and publish whatever the target has
    #[arg(long)]
    pub(super) skip_pruning: bool,
    /// Delete images in the target that the set does not have any more, also when these are many
    #[arg(long, conflicts_with = "skip_pruning")]
    pub(super) prune: bool,
    /// Sign archives: file with an ed25519 key in PEM, as openssl genpkey makes it
    #[arg(long, value_name = "FILE")]
    pub(super) sign: Option<PathBuf>,
    /// Tell what would be carried, and write mapping.txt; for a registry, write pruning-plan.json as well
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Write policies and mapping of all that archives have carried, and carry nothing
    #[arg(long, requires = "from")]
    pub(super) manifests_only: bool,
    /// Tell why the bundles and images of that name are carried; a part of the name will do
    #[arg(long, value_name = "NAME")]
    pub(super) why: Option<String>,
    /// Name the rules that packages of the catalogs break, with entries and remedy: of packages that are passed by, or
    /// carried with a warning
    #[arg(long)]
    pub(super) why_refused: bool,
    /// Write results for later clusters, too: ImageDigestMirrorSet, ImageTagMirrorSet, ClusterCatalog, registries.conf
    #[arg(long)]
    pub(super) all_results: bool,
    /// Go on with other images when one cannot be carried
    #[arg(long)]
    pub(super) continue_on_error: bool,
    /// Pass by images that are named by catalogs and missing in their registries
    #[arg(long)]
    pub(super) skip_missing: bool,
    /// Leave behind what is attached to images: signatures, attestations, lists of components
    #[arg(long)]
    pub(super) remove_signatures: bool,
    /// Let catalogs name images by tag where their sources do, instead of by digest
    #[arg(long)]
    pub(super) skip_image_pin: bool,
    /// Put catalogs into the target as they are, also with packages whose images are not carried; images keep their tags
    #[arg(long)]
    pub(super) keep_catalogs: bool,
    /// Transfers at a time with each registry
    #[arg(long, value_name = "N", default_value = "8")]
    pub(super) max_per_registry: NonZeroUsize,
    /// In which form it is told how far the run is
    #[arg(long, value_enum, value_name = "FORM", default_value_t)]
    pub(super) progress: ProgressFormat,
    /// Whether it is only told what has no effect: command lines of the peer may have it.
    #[arg(skip)]
    pub(super) is_oc_mirror: bool,
    #[command(flatten)]
    pub(super) registries: RegistryArgs,
    #[command(flatten)]
    pub(super) releases: ReleaseArgs,
}

impl RunArgs {
    /// The command line is that of the peer.
    pub(in crate::mirror) fn mark_as_oc_mirror(&mut self) {
        self.is_oc_mirror = true;
    }

    /// As if `--continue-on-error` had been said.
    pub(in crate::mirror) fn set_continue_on_error(&mut self) {
        self.continue_on_error = true;
    }
}
