//! `atoll mirror catalog`: copies and prunes whole catalogs like older tools.

use std::path::{Path, PathBuf};

use ::mirror::older::{self, Copy, LoadedCatalog, SmallerIndex};
use ::mirror::platform::ReleaseSources;
use ::mirror::progress::RunProgress;
use ::mirror::publish::TransferLimits;
use ::mirror::results::{self, Forms, ResultFile};
use ::mirror::run::RunContext;
use ::mirror::target_name::TargetName;
use ::mirror::workspace::Workspace;
use clap::{Args, Subcommand};
use oci::{Reference, Repository};
use oci_client::Client;
use service::Error;

use super::registry_args::RegistryArgs;
use super::release_args::UpdateArgs;
use super::run::{Destination, ProgressFormat, RunError, report_failures, with_progress};
use crate::terminal;

/// Workspace below `--dir`, which may hold other files.
const WORKSPACE: &str = "oc-mirror-workspace";

/// Subcommands for whole catalogs.
#[derive(Debug, Clone, Subcommand)]
pub(super) enum MirrorCatalogCommand {
    /// Push a catalog pruned to the given packages
    Prune(CatalogPruneArgs),
    /// Copy a catalog with all its images from a registry or folder to a folder or registry
    Copy(CatalogCopyArgs),
}

/// Packages to keep, and the pruned image.
#[derive(Debug, Clone, Args)]
pub(super) struct CatalogPruneArgs {
    /// Catalog: an image, or oci://FOLDER
    index: String,
    /// Comma-separated packages to keep
    #[arg(short, long, required = true, value_delimiter = ',')]
    packages: Vec<String>,
    /// Image of the pruned catalog
    #[arg(short, long, value_name = "IMAGE")]
    tag: Reference,
    #[command(flatten)]
    common: CatalogArgs,
}

/// Source and target of a copy.
#[derive(Debug, Clone, Args)]
pub(super) struct CatalogCopyArgs {
    /// Catalog: an image, or file://PATH:TAG
    source: String,
    /// Target: file://PATH, or docker://HOST[:PORT]/NAMESPACE
    target: Destination,
    /// Continue with other images after an error
    #[arg(long)]
    continue_on_error: bool,
    #[command(flatten)]
    common: CatalogArgs,
}

/// Options of both subcommands.
#[derive(Debug, Clone, Args)]
#[group(skip)]
struct CatalogArgs {
    /// Base folder of file:// paths and of written manifests
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    registries: RegistryArgs,
}

/// Prunes or copies a catalog.
///
/// Errors: a catalog or image that cannot be pulled or pushed.
pub(super) fn run(command: &MirrorCatalogCommand) -> Result<(), Error> {
    match command {
        MirrorCatalogCommand::Prune(arguments) => {
            with_progress("pruning a catalog", ProgressFormat::Lines, |progress| {
                arguments.run(progress)
            })
        }
        MirrorCatalogCommand::Copy(arguments) => {
            with_progress("copying a catalog", ProgressFormat::Lines, |progress| {
                arguments.run(progress)
            })
        }
    }
}

impl CatalogPruneArgs {
    async fn run(&self, progress: RunProgress) -> Result<(), RunError> {
        let Self {
            index,
            packages,
            tag,
            common,
        } = self;
        let target = TargetName::whole(tag.registry.clone());
        let target = common.registries.target(&target)?.client;
        let smaller = SmallerIndex {
            index,
            packages,
            to: tag,
        };
        let pruned = common
            .with_access(&progress, false, async |client, platform, context| {
                Ok(older::prune(client, platform, context, smaller, target).await?)
            })
            .await?;
        terminal::print(&pruned.destination.to_string());
        Ok(())
    }
}

impl CatalogCopyArgs {
    async fn run(&self, progress: RunProgress) -> Result<(), RunError> {
        let source: Copy = self.source.parse()?;
        let (common, continue_on_error) = (&self.common, self.continue_on_error);
        common
            .with_access(
                &progress,
                continue_on_error,
                async |client, platform, context| {
                    let loaded = source.load(client, platform, context, &common.dir).await?;
                    loaded.notes.iter().for_each(|note| terminal::notice(note));
                    match &self.target {
                        Destination::ArchiveSet(folder) => {
                            self.to_folder(client, context, &loaded, folder).await?;
                        }
                        Destination::Target(name) => {
                            let target = common.registries.target(name)?;
                            let outcome = loaded
                                .to_registry(client, platform, context, &target)
                                .await?;
                            let files = results::files(&outcome.results, &Forms::default())?;
                            self.manifests(context, &files)?;
                            report_failures(&outcome.failed, &outcome.unread, &outcome.left_out)?;
                        }
                    }
                    report_failures(&loaded.failed, &[], &loaded.left_out)
                },
            )
            .await
    }

    async fn to_folder(
        &self,
        client: &Client,
        context: RunContext<'_>,
        loaded: &LoadedCatalog,
        folder: &Path,
    ) -> Result<(), model::Error> {
        let below: Repository = folder.to_string_lossy().parse()?;
        let mapping = loaded
            .to_folder(client, context, &self.common.dir, &below)
            .await?;
        self.manifests(context, &[ResultFile::new("mapping.txt", mapping)])
    }

    /// Writes the manifests for clusters and the mapping.
    fn manifests(&self, context: RunContext<'_>, files: &[ResultFile]) -> Result<(), model::Error> {
        let time = u64::try_from(context.now).unwrap_or_default();
        let folder = results::write_manifests(&self.common.dir, time, files)?;
        terminal::print(&format!(
            "manifests for clusters written to {}",
            folder.display()
        ));
        Ok(())
    }
}

impl CatalogArgs {
    async fn with_access<T>(
        &self,
        progress: &RunProgress,
        continue_on_error: bool,
        work: impl AsyncFnOnce(&Client, &ReleaseSources, RunContext<'_>) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let workspace = self.dir.join(WORKSPACE);
        let _entered = Workspace::enter(&workspace)?;
        let ca_pem = self.registries.ca_pem()?;
        let client = self.registries.source()?;
        let platform = UpdateArgs::default().sources(ca_pem.as_deref())?;
        let usual = RunContext::new(&workspace, service::clock::now().timestamp(), progress);
        let context = RunContext {
            limits: TransferLimits {
                continue_on_error,
                ..usual.limits
            },
            ..usual
        };
        work(&client, &platform, context).await
    }
}
