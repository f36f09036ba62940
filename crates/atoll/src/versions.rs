//! `atoll versions`: which releases the installer offers, as its settings take them.

mod hosted;
mod registry;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use model::versions::OpenshiftVersion;
use serde::Serialize;
use service::Error;

use crate::catalog::RegistryAccessArgs;
use crate::{file, terminal};

const DOING: &str = "looking for versions";
/// Everybody may read it.
const FILE_MODE: u32 = 0o644;

/// From where they are taken.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct VersionsArgs {
    #[command(flatten)]
    mirrored: MirroredArgs,
    #[command(subcommand)]
    command: Option<VersionsCommand>,
}

#[derive(Debug, Clone, Subcommand)]
enum VersionsCommand {
    /// Ask the hosted installer, and write what PLATFORM_VERSIONS takes
    Fetch(hosted::FetchArgs),
}

/// Releases in a registry.
#[derive(Debug, Clone, Args)]
struct MirroredArgs {
    /// Take the releases that were mirrored to this place, and write what PLATFORM_VERSIONS takes
    #[arg(long, value_name = "HOST[:PORT][/NAMESPACE]", required = true)]
    from_registry: Option<String>,
    /// The file
    #[arg(long, value_name = "FILE", default_value = "platform-versions.json")]
    output: PathBuf,
    /// Write what RELEASE_IMAGES takes into this file, too
    #[arg(long, value_name = "FILE")]
    release_images: Option<PathBuf>,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

/// Does what the command line says.
///
/// Errors: a service or registry that does not answer, or answers what is no list; a file that cannot be written.
pub(crate) fn run(arguments: &VersionsArgs) -> Result<(), Error> {
    match &arguments.command {
        Some(VersionsCommand::Fetch(arguments)) => fetch(arguments),
        None => mirrored(&arguments.mirrored),
    }
}

fn fetch(arguments: &hosted::FetchArgs) -> Result<(), Error> {
    let text = blocking(hosted::fetch(arguments))?;
    let versions = rules::versions::load_platform_versions(&text);
    let versions = versions.map_err(|e| Error::new("reading what the service answered", e))?;
    write_versions(&arguments.output, &versions)
}

fn mirrored(arguments: &MirroredArgs) -> Result<(), Error> {
    let Some(place) = &arguments.from_registry else {
        return Err(Error::new(
            DOING,
            "say where: --from-registry, or the verb fetch",
        ));
    };
    let client = arguments.access.client()?;
    let found = blocking(registry::releases(&client, place))?;
    if found.is_empty() {
        let reason = format!("{place} has no releases: `atoll mirror` carries some");
        return Err(Error::new(DOING, reason));
    }
    write_versions(&arguments.output, &registry::versions(&found))?;
    if let Some(path) = &arguments.release_images {
        write(path, &registry::release_images(&found))?;
    }
    Ok(())
}

fn write_versions(path: &Path, versions: &BTreeMap<String, OpenshiftVersion>) -> Result<(), Error> {
    write(path, versions)?;
    let count = versions.len();
    terminal::print(&format!(
        "{count} versions are in {}: PLATFORM_VERSIONS takes its content",
        path.display()
    ));
    Ok(())
}

/// In one line, as settings are.
fn write(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(value).map_err(|e| Error::new(DOING, e))?;
    file::write_whole(path, format!("{text}\n").as_bytes(), FILE_MODE)
}

fn blocking<T>(work: impl Future<Output = Result<T, model::Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(DOING, e))?;
    let done = runtime.block_on(work);
    done.map_err(|e| Error::new(DOING, e.chain()))
}
