//! The index of a registry, compared with its folder or made anew.

use std::path::Path;
use std::time::Duration;

use blob_store::DiskStore;
use blob_store::disk::AdoptionProgress;
use clap::Args;
use reqwest::Method;
use service::Error;

use super::remote::{self, RemoteAccess};
use crate::terminal;

/// How often the progress is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Which registry, and who asks.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReindexArgs {
    /// A running registry, as in https://registry.example.org:5000, or the folder of one that is stopped
    #[arg(value_name = "URL|DIRECTORY")]
    target: String,
    #[command(flatten)]
    access: RemoteAccess,
}

/// Compares or rebuilds, and prints how much there was.
///
/// Errors: the registry is not reached or refuses; a folder that cannot be read, or that a registry uses.
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
    let reason = format!("{failed} repositories cannot be read; see the log");
    Err(Error::new(format!("indexing {target}"), reason))
}

/// Has a running registry compare its folder with its index, and waits for the end.
fn ask(arguments: &ReindexArgs) -> Result<AdoptionProgress, Error> {
    let remote = arguments.access.open(&arguments.target)?;
    let mut progress: AdoptionProgress = remote.ask(Method::POST, "reindex")?;
    while !progress.is_finished {
        show(progress);
        std::thread::sleep(LOOK);
        progress = remote.ask(Method::GET, "reindex")?;
    }
    Ok(progress)
}

/// Makes the index of a folder anew; nothing else in it is changed.
fn rebuild(folder: &Path) -> Result<AdoptionProgress, Error> {
    let doing = || format!("indexing {}", folder.display());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::new(doing(), e))?;
    runtime.block_on(async {
        let store = DiskStore::rebuild(folder).await;
        let store = store.map_err(|e| Error::new(doing(), e))?;
        while tokio::time::timeout(LOOK, store.adopted()).await.is_err() {
            show(store.adoption());
        }
        Ok(store.adoption())
    })
}

fn show(progress: AdoptionProgress) {
    let AdoptionProgress {
        compared,
        repositories,
        ..
    } = progress;
    terminal::progress(&format!("{compared} of {repositories} repositories"));
}
