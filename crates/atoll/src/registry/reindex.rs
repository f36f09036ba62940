//! Comparison or rebuild of a registry's derived index.

use std::path::Path;
use std::time::Duration;

use blob_store::DiskStore;
use blob_store::disk::AdoptionProgress;
use clap::Args;
use reqwest::Method;
use service::runtime;
use service::{Error, ResultExt as _};

use super::remote::{self, RemoteAccess};
use crate::terminal;

/// Interval of progress updates.
const POLL: Duration = Duration::from_millis(500);

/// Arguments of `atoll registry reindex`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReindexArgs {
    /// Running registry, as in https://registry.example.org:5000, or folder of a stopped one
    #[arg(value_name = "URL|DIRECTORY")]
    target: String,
    #[command(flatten)]
    access: RemoteAccess,
}

/// Compares or rebuilds the index, and prints counts.
///
/// Errors: the registry is unreachable or refuses; the folder cannot be read, or a registry uses it.
pub(crate) fn run(arguments: &ReindexArgs) -> Result<(), Error> {
    let target = &arguments.target;
    let progress = if remote::is_url(target) {
        ask(arguments)?
    } else {
        rebuild(remote::folder("indexing", target)?)?
    };
    let AdoptionProgress {
        repositories,
        adopted,
        failed,
        ..
    } = progress;
    terminal::print(&format!(
        "{repositories} repositories compared, {adopted} read into the index."
    ));
    if failed == 0 {
        return Ok(());
    }
    let reason = format!("{failed} repositories could not be read; see the log");
    Err(Error::new(format!("indexing {target}"), reason))
}

/// Makes a running registry compare its folder with its index, and waits for the end.
fn ask(arguments: &ReindexArgs) -> Result<AdoptionProgress, Error> {
    let remote = arguments.access.open(&arguments.target)?;
    let mut progress: AdoptionProgress = remote.ask(Method::POST, "reindex")?;
    while !progress.is_finished {
        show(progress);
        std::thread::sleep(POLL);
        progress = remote.ask(Method::GET, "reindex")?;
    }
    Ok(progress)
}

/// Rebuilds the index of a folder; nothing else in it is changed.
fn rebuild(folder: &Path) -> Result<AdoptionProgress, Error> {
    runtime::block_on(async {
        let store = DiskStore::rebuild(folder).await;
        let store = store.doing(|| format!("indexing {}", folder.display()))?;
        while tokio::time::timeout(POLL, store.adopted()).await.is_err() {
            show(store.adoption());
        }
        Ok(store.adoption())
    })?
}

fn show(progress: AdoptionProgress) {
    let AdoptionProgress {
        compared,
        repositories,
        ..
    } = progress;
    terminal::progress(&format!("{compared} of {repositories} repositories"));
}
