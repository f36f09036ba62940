//! The discovery agent of booted hosts: inventory, checks, installation, and a console.
//!
//! One static program, which a discovery image can contain: hosts are discovered without any container image. It takes the
//! arguments of openshift/assisted-installer-agent and speaks its protocol.

mod api;
mod args;
mod boot_artifacts;
mod command;
mod console;
mod copy;
mod dhcp;
mod error;
mod fetch;
mod host_files;
mod install;
mod inventory;
mod links;
mod logs;
mod media;
mod mounts;
mod probes;
mod runner;
mod status;
mod steps;

use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use args::AgentArgs;
pub use copy::copy;
pub use error::Error;
pub use host_files::HostFiles;

use api::ServiceClient;
use console::HostConsole;
use links::LinkTable;
use runner::Runner;
use status::StatusHandle;
use steps::context::{InstallationTask, StepContext};

/// Runs the agent until the program ends.
///
/// Errors: the arguments cannot be used.
pub async fn run(arguments: &AgentArgs) -> Result<(), Error> {
    let api = ServiceClient::new(arguments)?;
    let files = HostFiles::default();
    let status = StatusHandle::default();
    let host_id = match arguments.host_id {
        Some(id) => id,
        None => inventory::host_id(&files, &read_inventory(&files).await?.interfaces),
    };
    status.change(|status| status.host_id = Some(host_id));
    if arguments.console {
        for terminal in console::terminals(&files) {
            let console = HostConsole {
                files: files.clone(),
                status: status.clone(),
                service: arguments.url.to_string(),
            };
            tokio::spawn(async move { console.run(&terminal).await });
        }
    }
    let context = Arc::new(StepContext {
        api,
        files,
        host_id,
        status,
        installation: InstallationTask::default(),
        agent_image: Mutex::default(),
    });
    Runner::new(context, Duration::from_secs(arguments.interval))
        .run()
        .await;
    Ok(())
}

/// The inventory of this host as JSON text.
///
/// Errors: the kernel does not list the network interfaces.
pub async fn inventory_text(files: &HostFiles) -> Result<String, Error> {
    let inventory = read_inventory(files).await?;
    serde_json::to_string_pretty(&inventory).map_err(|error| Error::new("writing JSON", error))
}

async fn read_inventory(files: &HostFiles) -> Result<model::inventory::Inventory, Error> {
    let table = LinkTable::read(files).await?;
    Ok(inventory::inventory(files, &table))
}
