//! `atoll status`: state and addresses of an installation.

use std::path::PathBuf;

use service::{Error, ResultExt as _, file, runtime};
use supervisor::DataDirectory;
use supervisor::{UpState, ready};

use crate::terminal;

/// Prints the services that run on the data directory.
///
/// Errors: nothing runs there, or a service is not ready.
pub(crate) fn run(data: Option<PathBuf>) -> Result<(), Error> {
    let directory = DataDirectory::new(data)?;
    let doing = format!("reading the state of {}", directory.root().display());
    let Some(text) = file::read(&directory.state())? else {
        let reason = "not running, or not ready yet: `atoll up` starts it";
        return Err(Error::new(doing, reason));
    };
    let state: UpState = serde_json::from_slice(&text).doing(|| doing.clone())?;
    let not_ready = runtime::block_on(show(&state))??;
    if not_ready.is_empty() {
        Ok(())
    } else {
        Err(Error::new(
            doing,
            format!("not ready: {}", not_ready.join(", ")),
        ))
    }
}

async fn show(state: &UpState) -> Result<Vec<&'static str>, Error> {
    let client = service::http_client(None, true)?;
    let registry = format!("https://{}", state.registry);
    let mut not_ready = Vec::new();
    for (name, url) in [
        ("api-server", &state.api_url),
        ("image-service", &state.image_service_url),
        ("registry", &registry),
        ("webui", &state.ui_url),
    ] {
        let readiness = match ready::ask(&client, &format!("{url}/ready")).await {
            Ok(()) => "ready".to_owned(),
            Err(why) => {
                not_ready.push(name);
                why
            }
        };
        let process = state
            .pids
            .get(name)
            .map_or_else(|| "stopped".to_owned(), |pid| format!("process {pid}"));
        terminal::print(&format!("{name:<14} {url:<30} {process:<16} {readiness}"));
    }
    Ok(not_ready)
}
