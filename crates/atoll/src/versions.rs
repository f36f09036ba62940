//! `atoll versions`: the releases that the installer offers, in the format of its settings.

mod hosted;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use model::versions::{OpenshiftVersion, ReleaseImage};
use oci::Reference;
use oci_client::Client;
use registry_content::{ContentReader, RegistryContent, release_images};
use serde::Serialize;
use service::file;
use service::runtime;
use service::{Error, ResultExt as _};

use crate::catalog::RegistryAccessArgs;
use crate::terminal;

const DOING: &str = "listing versions";
const FILE_MODE: u32 = 0o644;
/// Repository of releases below the namespace of a mirroring run.
const RELEASES: &str = "openshift/release-images";

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
    /// List the complete releases mirrored to this registry, and write the value of PLATFORM_VERSIONS
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
    let content = blocking(releases(client, registry))?;
    for release in &content.releases {
        if let Some(missing) = release.missing.first() {
            let (image, count) = (&release.image, release.missing.len());
            let component = &missing.component;
            terminal::notice(&format!(
                "{image} is left out: it lacks {count} images, as {component}"
            ));
        }
    }
    let found = release_images(&content);
    if found.is_empty() {
        let reason =
            format!("{registry} has no complete releases: mirror some with `atoll mirror`");
        return Err(Error::new(DOING, reason));
    }
    write_versions(&arguments.output, &versions(&found))?;
    if let Some(path) = &arguments.release_images {
        write(path, &found)?;
    }
    Ok(())
}

/// The releases below `place`, a host with an optional namespace.
///
/// Errors: Invalid – a malformed place; those of the registry.
async fn releases(client: Client, place: &str) -> Result<RegistryContent, model::Error> {
    let place = place.strip_prefix("docker://").unwrap_or(place);
    let place: Reference = format!("{}/{RELEASES}", place.trim_end_matches('/')).parse()?;
    let repository = place.repository.to_string();
    let namespace = repository.trim_end_matches(RELEASES).trim_end_matches('/');
    let scratch = tempfile::tempdir();
    let scratch = scratch.map_err(|e| model::Error::internal("making a folder", e))?;
    let reader = ContentReader {
        client,
        registry: place.registry,
        namespace: namespace.to_owned(),
        scratch: scratch.path().join("content"),
    };
    let known = RegistryContent::default();
    reader
        .read_changed(&known, &BTreeSet::from([repository]))
        .await
}

/// Value of `PLATFORM_VERSIONS`.
fn versions(releases: &[ReleaseImage]) -> BTreeMap<String, OpenshiftVersion> {
    let mut versions: BTreeMap<String, OpenshiftVersion> = BTreeMap::new();
    for release in releases {
        let entry = versions.entry(release.version.clone()).or_default();
        entry.display_name.clone_from(&release.version);
        entry.default |= release.default;
        entry.support_level = release.support_level.unwrap_or_default();
        let architectures = release.cpu_architectures.iter().cloned();
        let mut all: BTreeSet<String> = architectures.collect();
        all.extend(std::mem::take(&mut entry.cpu_architectures));
        entry.cpu_architectures = all.into_iter().collect();
    }
    versions
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

#[cfg(test)]
mod tests {
    use model::versions::ReleaseSupportLevel;

    use super::*;

    #[test]
    fn the_api_server_loads_the_versions() {
        let release = |version: &str, architecture: &str, default: bool| ReleaseImage {
            version: version.to_owned(),
            cpu_architectures: vec![architecture.to_owned()],
            default,
            support_level: Some(ReleaseSupportLevel::Production),
            ..ReleaseImage::default()
        };
        let releases = [
            release("4.14.5", "x86_64", false),
            release("4.14.5", "arm64", false),
            release("4.15.0-multi", "x86_64", true),
        ];
        let text = serde_json::to_string(&versions(&releases)).unwrap();
        let read = rules::versions::load_platform_versions(&text).unwrap();
        let found: Vec<_> = read
            .iter()
            .map(|(key, it)| (key.as_str(), it.default, it.cpu_architectures.len()))
            .collect();
        assert_eq!(found, [("4.14.5", false, 2), ("4.15.0-multi", true, 1)]);
    }
}
