//! Garbage collection of a running registry.

use clap::Args;
use model::size::mib;
use reqwest::Method;
use serde::Deserialize;
use service::Error;

use super::remote::RemoteAccess;
use crate::terminal;
use crate::web_address::web_text;

/// Arguments of `atoll registry gc`.
#[derive(Debug, Clone, Args)]
pub(crate) struct GcArgs {
    /// Registry, as in https://registry.example.org:5000
    #[arg(value_name = "URL", value_parser = web_text)]
    url: String,
    #[command(flatten)]
    access: RemoteAccess,
    /// Report without deleting
    #[arg(long)]
    dry_run: bool,
}

/// Response of the registry.
#[derive(Debug, Deserialize)]
struct GarbageReport {
    retention: Option<ExpiredContent>,
    #[serde(default)]
    manifests: u64,
    links: u64,
    blobs: u64,
    bytes: u64,
    repositories: u64,
}

/// Content that no rule of the retention policy keeps.
#[derive(Debug, Deserialize)]
struct ExpiredContent {
    is_dry: bool,
    tags: u64,
    manifests: u64,
    repositories: Vec<ExpiredInRepository>,
}

#[derive(Debug, Deserialize)]
struct ExpiredInRepository {
    repository: String,
    tags: Vec<String>,
    manifests: Vec<String>,
}

/// Runs garbage collection and prints its report.
///
/// Errors: the registry is unreachable, refuses, or fails.
pub(crate) fn run(arguments: &GcArgs) -> Result<(), Error> {
    let path = format!("gc?dryrun={}", arguments.dry_run);
    let remote = arguments.access.open(&arguments.url)?;
    let collected: GarbageReport = remote.ask(Method::POST, &path)?;
    let verb = |is_dry| {
        if is_dry {
            "would be removed"
        } else {
            "removed"
        }
    };
    if let Some(expired) = &collected.retention {
        for there in &expired.repositories {
            let name = &there.repository;
            let tags = there.tags.iter().map(|tag| format!("{name}:{tag}"));
            let manifests = there.manifests.iter();
            let manifests = manifests.map(|digest| format!("{name}@{digest}"));
            tags.chain(manifests)
                .for_each(|line| terminal::print(&line));
        }
        terminal::print(&format!(
            "{} tags and {} manifests expired by the retention policy {}.",
            expired.tags,
            expired.manifests,
            verb(expired.is_dry)
        ));
    }
    let GarbageReport {
        manifests,
        links,
        blobs,
        bytes,
        repositories,
        ..
    } = collected;
    terminal::print(&format!(
        "{manifests} manifests of deleted indexes, {links} unreferenced blobs of repositories, {blobs} unlinked contents ({}) and \
         {repositories} empty repositories {}.",
        mib(bytes),
        verb(arguments.dry_run)
    ));
    Ok(())
}
