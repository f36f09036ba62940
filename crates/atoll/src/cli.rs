//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::up::{self, UpArgs};
use crate::{backup, catalog, doctor, mirror, pod, registry, serve, status, terminal, versions};

/// Installs clusters where there is no internet.
#[derive(Debug, Parser)]
#[command(name = "atoll", version)]
struct AtollCli {
    #[command(subcommand)]
    command: AtollCommand,
}

#[derive(Debug, Subcommand)]
enum AtollCommand {
    /// Run everything on this machine, with a private Postgres, until Ctrl-C
    Up(UpArgs),
    /// Save an installation, which may run meanwhile, in one file with checksums
    Backup(backup::BackupArgs),
    /// Bring back an installation that `backup` saved, here or on another host
    Restore(backup::RestoreArgs),
    /// Run one service; `settings`, `health` and `--check-config` as well
    Serve {
        #[command(subcommand)]
        service: serve::Service,
    },
    /// The containers of `podman-compose up` and `podman play kube`
    Pod {
        #[command(subcommand)]
        command: pod::PodCommand,
    },
    /// Users and certificates of a registry
    Registry {
        #[command(subcommand)]
        command: registry::RegistryCommand,
    },
    /// Look at operator catalogs, check them, make smaller ones
    Catalog {
        #[command(subcommand)]
        command: catalog::CatalogCommand,
    },
    /// Carry releases, operators and images to where there is no internet
    Mirror(Box<mirror::MirrorArgs>),
    /// Which releases the installer offers: those that were mirrored, or those of the hosted installer
    Versions(Box<versions::VersionsArgs>),
    /// Show what this machine has and lacks to confine installers; exit code 1 where something essential is missing
    Doctor(doctor::DoctorArgs),
    /// Show whether an installation that `up` started runs, and where
    Status {
        /// Its data directory
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
}

/// Parses the command line and does what it says; the value is the process's exit code.
pub fn main() -> ExitCode {
    // Before there are threads: what runs out of images is started by this program itself.
    if let Some(code) = sandbox::entry() {
        return code;
    }
    if mirror::oc_mirror::is_meant(std::env::args_os().next().as_ref()) {
        return mirror::oc_mirror::main(std::env::args_os());
    }
    let result = match AtollCli::parse().command {
        AtollCommand::Serve { service } => return serve::run(service),
        AtollCommand::Up(arguments) => up::run(&arguments),
        AtollCommand::Backup(arguments) => backup::save(&arguments),
        AtollCommand::Restore(arguments) => backup::restore(&arguments),
        AtollCommand::Pod { command } => pod::run(&command),
        AtollCommand::Registry { command } => registry::run(&command),
        AtollCommand::Catalog { command } => catalog::run(&command),
        AtollCommand::Mirror(arguments) => mirror::run(&arguments),
        AtollCommand::Versions(arguments) => versions::run(&arguments),
        AtollCommand::Doctor(arguments) => return doctor::run(&arguments),
        AtollCommand::Status { data } => status::run(data),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::notice(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn no_verb_contradicts_itself() {
        AtollCli::command().debug_assert();
    }
}
