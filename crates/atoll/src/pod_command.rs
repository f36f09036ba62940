//! `atoll pod`: its verbs.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use service::Error;

use crate::backup::{self, BackupArgs, RestoreArgs};
use crate::install;
use crate::pod::{self, init, lifecycle, quadlet};

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
        PodCommand::Configmap { dir } => pod::print_configmap(dir),
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
