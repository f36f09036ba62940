//! `atoll versions`: the releases that the installer offers, in the format of its settings.

mod hosted;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use model::versions::OpenshiftVersion;
use serde::Serialize;
use service::file;
use service::runtime;
use service::{Error, ResultExt as _};
use site::mirrored_releases::{release_images, releases, versions};

use crate::catalog::RegistryAccessArgs;
use crate::terminal;

const DOING: &str = "listing versions";
const FILE_MODE: u32 = 0o644;

/// Arguments of `atoll versions`.
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
    /// Fetch the versions of the hosted installer, and write the value of PLATFORM_VERSIONS
    Fetch(hosted::FetchArgs),
}

/// Releases of a mirror registry.
#[derive(Debug, Clone, Args)]
struct MirroredArgs {
    /// List the releases mirrored to this registry, and write the value of PLATFORM_VERSIONS
    #[arg(long, value_name = "HOST[:PORT][/NAMESPACE]", required = true)]
    from_registry: Option<String>,
    /// Output file
    #[arg(long, value_name = "FILE", default_value = "platform-versions.json")]
    output: PathBuf,
    /// Also write the value of RELEASE_IMAGES into this file
    #[arg(long, value_name = "FILE")]
    release_images: Option<PathBuf>,
    #[command(flatten)]
    access: RegistryAccessArgs,
}

/// Runs the subcommand.
///
/// Errors: an unreachable service or registry, a malformed response; a file that cannot be written.
pub(crate) fn run(arguments: &VersionsArgs) -> Result<(), Error> {
    match &arguments.command {
        Some(VersionsCommand::Fetch(arguments)) => fetch(arguments),
        None => mirrored(&arguments.mirrored),
    }
}

fn fetch(arguments: &hosted::FetchArgs) -> Result<(), Error> {
    let text = blocking(hosted::fetch(arguments))?;
    let versions = rules::versions::load_platform_versions(&text);
    let versions = versions.doing("reading the response of the service")?;
    write_versions(&arguments.output, &versions)
}

fn mirrored(arguments: &MirroredArgs) -> Result<(), Error> {
    let Some(registry) = &arguments.from_registry else {
        return Err(Error::new(
            DOING,
            "must specify --from-registry, or the subcommand fetch",
        ));
    };
    let client = arguments.access.client()?;
    let found = blocking(releases(&client, registry))?;
    if found.is_empty() {
        let reason = format!("{registry} has no releases: mirror some with `atoll mirror`");
        return Err(Error::new(DOING, reason));
    }
    write_versions(&arguments.output, &versions(&found))?;
    if let Some(path) = &arguments.release_images {
        write(path, &release_images(&found))?;
    }
    Ok(())
}

fn write_versions(path: &Path, versions: &BTreeMap<String, OpenshiftVersion>) -> Result<(), Error> {
    write(path, versions)?;
    let count = versions.len();
    terminal::print(&format!(
        "{count} versions written to {}: the value of PLATFORM_VERSIONS",
        path.display()
    ));
    Ok(())
}

/// Writes the value as one line, as settings require.
fn write(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(value).doing(DOING)?;
    file::write_atomic(path, format!("{text}\n").as_bytes(), FILE_MODE)
}

fn blocking<T>(work: impl Future<Output = Result<T, model::Error>>) -> Result<T, Error> {
    let done = runtime::block_on(work)?;
    done.map_err(|e| e.chain()).doing(DOING)
}
