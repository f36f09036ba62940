//! Flags of a mirroring run.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use ::mirror::archive::ArchiveSource;
use chrono::NaiveDate;
use clap::Args;
use model::api_group_map::ApiGroupMap;

use super::destination::Destination;
use super::progress::ProgressFormat;
use crate::mirror::registry_args::RegistryArgs;
use crate::mirror::release_args::ReleaseArgs;

/// Folder of results and history. Source: oc-mirror v2.
const V2_FOLDER: &str = "working-dir";

/// Target, source and options of a run.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// Target: file://FOLDER for archives, oci://FOLDER for an image layout, or docker://HOST[:PORT][/NAMESPACE]
    pub(super) target: Option<Destination>,
    /// Mirror from an archive, from the folder with the archives of a run, from that in a bundle (BUNDLE/archives/01), or from the
    /// URL of the first two, instead of registries
    #[arg(long, value_name = "PATH_OR_URL")]
    pub(super) from: Option<OsString>,
    /// Image-set configuration file
    #[arg(short, long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Workspace: folder for temporary files and results
    #[arg(long, value_name = "DIR", default_value = "oc-mirror-workspace")]
    pub(super) dir: PathBuf,
    /// Skip the check that archives follow the sequence of the target's metadata
    #[arg(long)]
    pub(super) skip_metadata_check: bool,
    /// Mirror all images again, also those of past runs
    #[arg(long)]
    pub(super) ignore_history: bool,
    /// Mirror the images that are new since the last run before this date (yyyy-MM-dd, UTC)
    #[arg(long, value_name = "DATE", value_parser = date, conflicts_with = "ignore_history")]
    pub(super) since: Option<NaiveDate>,
    /// Disable pruning of images that left the image set, and skip the sequence check
    #[arg(long)]
    pub(super) skip_pruning: bool,
    /// Prune images that left the image set without confirmation, also when they are many
    #[arg(long, conflicts_with = "skip_pruning")]
    pub(super) prune: bool,
    /// Sign archives with this ed25519 private key (PEM, as of openssl genpkey)
    #[arg(long, value_name = "FILE")]
    pub(super) sign: Option<PathBuf>,
    /// Print the plan without mirroring; writes mapping.txt and, for a registry, pruning-plan.json
    #[arg(long)]
    pub(super) dry_run: bool,
    /// As --dry-run, and mapping.txt has the manifests of multi-architecture images, too
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) dry_run_manifest_lists: bool,
    /// Only write mirror policies and mapping of all images that archives have mirrored
    #[arg(long, requires = "from")]
    pub(super) manifests_only: bool,
    /// Explain why bundles and images whose names contain NAME are mirrored
    #[arg(long, value_name = "NAME")]
    pub(super) why: Option<String>,
    /// List the validation errors of catalog packages that are skipped or mirrored with a warning, with entries and remedy
    #[arg(long)]
    pub(super) why_refused: bool,
    /// Also write ImageDigestMirrorSet, ImageTagMirrorSet, ClusterCatalog and registries.conf
    #[arg(long)]
    pub(super) all_results: bool,
    /// API groups of the clusters by those of the platform, as JSON: {"config.openshift.io":"config.example.org"}
    #[arg(
        long,
        value_name = "JSON",
        default_value = "{}",
        hide_default_value = true
    )]
    pub(super) api_group_map: ApiGroupMap,
    /// Continue with other images after an error
    #[arg(long)]
    pub(super) continue_on_error: bool,
    /// Skip images that a catalog references but the registry does not have, and boot images that a release does not have
    #[arg(long)]
    pub(super) skip_missing: bool,
    /// Do not mirror artifacts attached to images: signatures, attestations, SBOMs
    #[arg(long)]
    pub(super) remove_signatures: bool,
    /// Do not replace tags with digests in operator catalogs
    #[arg(long)]
    pub(super) skip_image_pin: bool,
    /// Copy catalogs unmodified, including packages whose images are not mirrored; images keep their tags
    #[arg(long)]
    pub(super) keep_catalogs: bool,
    /// Concurrent transfers per registry
    #[arg(long, value_name = "N", default_value = "8")]
    pub(super) max_per_registry: NonZeroUsize,
    /// Progress output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(super) progress: ProgressFormat,
    /// Flags without effect are reported instead of refused: oc-mirror accepts them.
    #[arg(skip)]
    pub(super) is_oc_mirror: bool,
    /// Verify the signatures of images by the policy of this machine (oc-mirror)
    #[arg(long, hide = true)]
    pub(super) secure_policy: bool,
    /// Refuse files larger than archiveSize, rather than write each of them into an archive of its own (oc-mirror --v2)
    #[arg(long, hide = true)]
    pub(super) strict_archive: bool,
    /// Names, results, history and archives are those of oc-mirror v2.
    #[arg(skip)]
    pub(super) is_v2: bool,
    #[command(flatten)]
    pub(super) registries: RegistryArgs,
    #[command(flatten)]
    pub(super) releases: ReleaseArgs,
}

impl RunArgs {
    /// Marks a command line of oc-mirror.
    pub(in crate::mirror) fn mark_as_oc_mirror(&mut self) {
        self.is_oc_mirror = true;
    }

    /// Takes over the habits of oc-mirror v2: it always continues after an error, never prunes, and works in a folder beside
    /// the archives.
    pub(in crate::mirror) fn use_v2(&mut self) {
        self.is_v2 = true;
        self.continue_on_error = true;
        let archives = match (&self.target, &self.from) {
            (Some(Destination::ArchiveSet(folder)), _) => Some(folder.clone()),
            // A medium may be read-only.
            (_, Some(from)) => {
                folder_of(Path::new(from)).filter(|folder| tempfile::tempfile_in(folder).is_ok())
            }
            _ => None,
        };
        self.dir = archives.unwrap_or_else(|| self.dir.clone()).join(V2_FOLDER);
    }

    /// Whether nothing is mirrored.
    pub(super) fn is_dry(&self) -> bool {
        self.dry_run || self.dry_run_manifest_lists
    }
}

fn date(text: &str) -> Result<NaiveDate, String> {
    let wrong = |_| "expected a date as yyyy-MM-dd, like 2026-11-29".to_owned();
    text.parse().map_err(wrong)
}

/// The folder of archives of this machine that a path names; none for a URL.
fn folder_of(from: &Path) -> Option<PathBuf> {
    if from.to_str().is_some_and(ArchiveSource::is_url) {
        return None;
    }
    if from.is_file() {
        return from.parent().map(Path::to_path_buf);
    }
    Some(from.to_path_buf())
}
