//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::up::{self, UpArgs};
use crate::{
    backup, bundle, butane, catalog, certs, doctor, host, ignition, image, install, key_file,
    mirror, node, pod, registry, rehearse, serve, status, terminal, token, versions,
};

/// Installs clusters in disconnected environments.
#[derive(Debug, Parser)]
#[command(name = "atoll", version)]
struct AtollCli {
    #[command(subcommand)]
    command: AtollCommand,
}

#[derive(Debug, Subcommand)]
enum AtollCommand {
    /// Run all services on this machine with a private Postgres, until Ctrl-C
    Up(UpArgs),
    /// Back up an installation, running or stopped, into one file with checksums
    Backup(backup::BackupArgs),
    /// Restore an installation from a backup, here or on another host
    Restore(backup::RestoreArgs),
    /// Write images, programs, settings and content into one file for a disconnected host
    Bundle(Box<bundle::BundleArgs>),
    /// Install, upgrade or roll back the pod from a bundle, without any network
    Install(install::InstallArgs),
    /// Run one service; also its `settings`, `health` and `--check-config`
    Serve {
        #[command(subcommand)]
        service: serve::ServiceCommand,
    },
    /// Prepare the containers of `podman-compose up` and `podman play kube`
    Pod {
        #[command(subcommand)]
        command: pod::PodCommand,
    },
    /// Make the certificate authority of a site and the wildcard certificate of its domain; print how clients trust it
    Certs(certs::CertsArgs),
    /// Manage users, certificates and content of a registry
    Registry {
        #[command(subcommand)]
        command: registry::RegistryCommand,
    },
    /// Manage the keys that stored secrets are sealed with
    Secrets {
        #[command(subcommand)]
        command: key_file::SecretsCommand,
    },
    /// List, validate, compare and prune operator catalogs
    Catalog {
        #[command(subcommand)]
        command: catalog::CatalogCommand,
    },
    /// Show, customise, shrink and verify live images in files
    Image {
        #[command(subcommand)]
        command: image::ImageCommand,
    },
    /// Show and replace the nodes of a cluster, back up etcd, and make images of nodes that join
    Node {
        #[command(subcommand)]
        command: node::NodeCommand,
    },
    /// Validate, merge, convert and show ignition configurations
    Ignition {
        #[command(subcommand)]
        command: ignition::IgnitionCommand,
    },
    /// Translate a Butane document into Ignition or a MachineConfig
    Butane(butane::ButaneArgs),
    /// Check and write the records of hosts: BareMetalHost, Secret, Machine; inspect and boot hosts by their BMCs
    Host {
        #[command(subcommand)]
        command: host::HostCommand,
    },
    /// Make keys and tokens of the installer API
    Token {
        #[command(subcommand)]
        command: token::TokenCommand,
    },
    /// Mirror releases, operators and images to disconnected registries
    Mirror(Box<mirror::MirrorArgs>),
    /// Write the releases that the installer offers, from a mirror registry or the hosted installer
    Versions(Box<versions::VersionsArgs>),
    /// Play the installation of a site with simulated hosts, and name the mistakes of its files
    Rehearse(Box<rehearse::RehearseArgs>),
    /// Check a site and this machine: names, time, disks, certificates, registry, images; exit code 1 if a check fails
    Doctor(doctor::DoctorArgs),
    /// Show the state and addresses of an installation started by `up`
    Status {
        /// Data directory
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
}

/// Parses and runs the command line; the value is the exit code of the process.
pub fn main() -> ExitCode {
    // Before threads are started: the sandbox starts programs of images through this program.
    if let Some(code) = sandbox::entry() {
        return code;
    }
    if mirror::oc_mirror::is_program_name(std::env::args_os().next().as_ref()) {
        return mirror::oc_mirror::main(std::env::args_os());
    }
    let result = match AtollCli::parse().command {
        AtollCommand::Serve { service } => return serve::run(&service),
        AtollCommand::Up(arguments) => up::run(&arguments),
        AtollCommand::Backup(arguments) => backup::save(&arguments),
        AtollCommand::Restore(arguments) => backup::restore(&arguments),
        AtollCommand::Bundle(arguments) => bundle::run(&arguments),
        AtollCommand::Install(arguments) => install::run(&arguments),
        AtollCommand::Pod { command } => pod::run(&command),
        AtollCommand::Certs(arguments) => certs::run(&arguments),
        AtollCommand::Registry { command } => registry::run(&command),
        AtollCommand::Secrets { command } => key_file::run(&command),
        AtollCommand::Catalog { command } => catalog::run(&command),
        AtollCommand::Image { command } => image::run(&command),
        AtollCommand::Node { command } => node::run(&command),
        AtollCommand::Ignition { command } => return ignition::run(&command),
        AtollCommand::Butane(arguments) => return butane::run(&arguments),
        AtollCommand::Host { command } => return host::run(&command),
        AtollCommand::Token { command } => token::run(&command),
        AtollCommand::Mirror(arguments) => mirror::run(&arguments),
        AtollCommand::Versions(arguments) => versions::run(&arguments),
        AtollCommand::Rehearse(arguments) => return rehearse::run(&arguments),
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
    fn the_command_line_is_consistent() {
        AtollCli::command().debug_assert();
    }
}
