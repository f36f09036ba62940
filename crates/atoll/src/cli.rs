//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::up::{self, UpArguments};
use crate::{backup, catalog, doctor, mirror, pod, registry, serve, status, terminal, versions};

/// Installs clusters where there is no internet.
#[derive(Debug, Parser)]
#[command(name = "atoll", version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run everything on this machine, with a private Postgres, until Ctrl-C
    Up(UpArguments),
    /// Save an installation, which may run meanwhile, in one file with checksums
    Backup(backup::BackupArguments),
    /// Bring back an installation that `backup` saved, here or on another host
    Restore(backup::RestoreArguments),
    /// Run one service; `settings`, `health` and `--check-config` as well
    Serve {
        #[command(subcommand)]
        service: serve::Service,
    },
    /// The containers of `podman-compose up` and `podman play kube`
    Pod {
        #[command(subcommand)]
        verb: pod::Verb,
    },
    /// Users and certificates of a registry
    Registry {
        #[command(subcommand)]
        verb: registry::Verb,
    },
    /// Look at operator catalogs, check them, make smaller ones
    Catalog {
        #[command(subcommand)]
        verb: catalog::Verb,
    },
    /// Carry releases, operators and images to where there is no internet
    Mirror(Box<mirror::Arguments>),
    /// Which releases the installer offers: those that were mirrored, or those of the hosted installer
    Versions(Box<versions::Arguments>),
    /// Show what this machine has and lacks to confine installers; exit code 1 where something essential is missing
    Doctor(doctor::Arguments),
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
    if mirror::peer::is_meant(std::env::args_os().next().as_ref()) {
        return mirror::peer::main(std::env::args_os());
    }
    let result = match Arguments::parse().verb {
        Verb::Serve { service } => return serve::run(service),
        Verb::Up(arguments) => up::run(&arguments),
        Verb::Backup(arguments) => backup::save(&arguments),
        Verb::Restore(arguments) => backup::restore(&arguments),
        Verb::Pod { verb } => pod::run(&verb),
        Verb::Registry { verb } => registry::run(&verb),
        Verb::Catalog { verb } => catalog::run(&verb),
        Verb::Mirror(arguments) => mirror::run(&arguments),
        Verb::Versions(arguments) => versions::run(&arguments),
        Verb::Doctor(arguments) => return doctor::run(&arguments),
        Verb::Status { data } => status::run(data),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::problem(&error.to_string());
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
        Arguments::command().debug_assert();
    }
}
