//! `atoll pod`: files for `podman-compose up` and `podman play kube`.
//!
//! And the life of the containers, with podman alone.

pub(crate) mod compose;
mod configmap;
mod container;
pub(crate) mod init;
pub(crate) mod lifecycle;
pub(crate) mod proxy_settings;
mod quadlet;
#[cfg(test)]
mod secret_tests;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use service::{Error, ResultExt as _};

use crate::backup::{self, BackupArgs, RestoreArgs};
use crate::{install, terminal};
pub(crate) use configmap::SETTINGS;
pub(crate) use init::{PROXY, REGISTRY};
pub(crate) use quadlet::default_units;

/// Subcommands for the pod.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum PodCommand {
    /// Write compose.yaml, pod.yml, catalog.yml, .env, proxy/proxy.env and secrets into a folder; existing settings and secrets are kept
    Init(init::PodInitArgs),
    /// Print .env as the ConfigMap for `podman play kube pod.yml --configmap FILE`
    Configmap {
        /// Folder of the pod
        #[arg(long, value_name = "DIR", default_value = ".")]
        dir: PathBuf,
    },
    /// Start all services, or some, with podman alone, and wait until they are ready
    Up(lifecycle::PodUpArgs),
    /// Stop and remove all containers; data is kept
    Down(lifecycle::PodFolderArgs),
    /// Ask all services for their health
    Status(lifecycle::PodFolderArgs),
    /// Print the logs of a service
    Logs(lifecycle::PodLogsArgs),
    /// Change the number of replicas of one service; the others keep running
    Scale(lifecycle::PodScaleArgs),
    /// Write units for podman's systemd generator (podman 4.4 or newer)
    Quadlet(quadlet::PodQuadletArgs),
    /// Install the version of a bundle, after a backup: as `atoll install`
    Upgrade(install::InstallArgs),
    /// Back up the pod: as `atoll backup --pod`
    Backup(PodBackupArgs),
    /// Restore the pod: as `atoll restore --pod`
    Restore(PodRestoreArgs),
}

/// Arguments of `atoll pod backup`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PodBackupArgs {
    /// Backup file to write
    file: PathBuf,
    /// Verify the written file against its checksums
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    folder: lifecycle::PodFolderArgs,
}

/// Arguments of `atoll pod restore`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PodRestoreArgs {
    /// Backup file
    file: PathBuf,
    /// Replace an existing installation, which is kept under another name
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    folder: lifecycle::PodFolderArgs,
}

/// Runs the subcommand.
///
/// Errors: files that cannot be read or written, an invalid host name.
pub(crate) fn run(command: &PodCommand) -> Result<(), Error> {
    match command {
        PodCommand::Init(arguments) => init::run(arguments),
        PodCommand::Configmap { dir } => print_configmap(dir),
        PodCommand::Up(arguments) => lifecycle::up(arguments),
        PodCommand::Down(folder) => lifecycle::down(&folder.dir),
        PodCommand::Status(folder) => lifecycle::status(folder),
        PodCommand::Logs(arguments) => lifecycle::logs(arguments),
        PodCommand::Scale(arguments) => lifecycle::scale(arguments),
        PodCommand::Quadlet(arguments) => quadlet::run(arguments),
        PodCommand::Upgrade(arguments) => install::run(arguments),
        PodCommand::Backup(arguments) => {
            let folder = arguments.folder.dir.clone();
            backup::save(&BackupArgs::of_pod(
                &arguments.file,
                folder,
                arguments.verify,
            ))
        }
        PodCommand::Restore(arguments) => {
            let folder = arguments.folder.dir.clone();
            backup::restore(&RestoreArgs::of_pod(
                &arguments.file,
                folder,
                arguments.replace,
            ))
        }
    }
}

/// Files of the pod with placeholders, by name: those of its version, and its settings.
pub(crate) fn templates() -> impl Iterator<Item = (&'static str, &'static str)> {
    let settings = [
        ("atoll.env", init::TEMPLATE_OF_SETTINGS),
        ("proxy.env", proxy_settings::TEMPLATE),
    ];
    init::OF_VERSION.into_iter().chain(settings)
}

fn print_configmap(dir: &Path) -> Result<(), Error> {
    let path = dir.join(SETTINGS);
    let doing = || format!("reading {}", path.display());
    let text = std::fs::read_to_string(&path).doing(doing)?;
    let text = configmap::render(&text)
        .map_err(|number| Error::new(doing(), service::settings::not_a_line(&path, number)))?;
    terminal::print(text.trim_end());
    Ok(())
}
