//! Collecting a registry's garbage now.

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use service::Error;

use super::remote::RemoteAccess;
use crate::terminal;

/// Which registry, and who asks.
#[derive(Debug, Clone, Args)]
pub(crate) struct GcArgs {
    /// The registry, as in https://registry.example.org:5000
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    access: RemoteAccess,
    /// Only count
    #[arg(long)]
    dry_run: bool,
}

/// What the registry answers in the end.
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

/// What no rule of the policy keeps.
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

/// Asks, waits for the end and prints what there was.
///
/// Errors: the registry is not reached, refuses, or fails.
pub(crate) fn run(arguments: &GcArgs) -> Result<(), Error> {
    let what = format!("gc?dryrun={}", arguments.dry_run);
    let remote = arguments.access.open(&arguments.url)?;
    let collected: GarbageReport = remote.ask(Method::POST, &what)?;
    let verb = |is_dry| if is_dry { "would go" } else { "are gone" };
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
            "{} tags and {} manifests that no rule of the retention policy keeps {}.",
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
        "{manifests} manifests of deleted indexes, {links} blobs of repositories that no manifest needs, {blobs} contents that no repository has ({}) and \
         {repositories} empty repositories {}.",
        terminal::mib(bytes),
        verb(arguments.dry_run)
    ));
    Ok(())
}
