//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgAction, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use service::logs::{self, LogFormat};

use crate::up::{self, UpArgs};
use crate::{
    backup, bundle, butane, catalog, certs, doctor, failure, host, ignition, image, install,
    key_file, mirror, node, pod, registry, rehearse, serve, shell, status, terminal, token, verbs,
    versions,
};

/// Filters of the log by the number of -v. Libraries of the network are quiet in the first one.
const LOG_FILTERS: [&str; 2] = [
    "debug,h2=info,hyper=info,hyper_util=info,rustls=info,reqwest=info,tower=info",
    "trace",
];

/// Installs clusters in disconnected environments.
#[derive(Debug, Parser)]
#[command(name = "atoll", version)]
struct AtollCli {
    /// Log requests, retries and decisions on standard error; -vv also the libraries. Services that run on have
    /// LOG_LEVEL
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 990)]
    verbose: u8,
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
    ///
    /// --format json prints {"checks":[{"id","group","status","finding","remedy"}]}, status: passed, warning or failed.
    Doctor(doctor::DoctorArgs),
    /// Show the state and addresses of an installation started by `up`
    Status {
        /// Data directory (default: as for `up`)
        #[arg(long = "dir", alias = "data", value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Print completions for a shell, as `atoll completions bash > /etc/bash_completion.d/atoll`
    Completions(shell::CompletionsArgs),
    /// Print the manual page of a verb, or write all pages into a folder
    Man(shell::ManArgs),
}

/// The whole command line, with the texts that concern all verbs.
fn command() -> Command {
    verbs::with_texts(AtollCli::command())
}

fn parsed() -> AtollCli {
    let matches = command().get_matches();
    AtollCli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
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
    let line = parsed();
    if let Some(last) = usize::from(line.verbose).checked_sub(1) {
        logs::init(
            LOG_FILTERS[last.min(LOG_FILTERS.len() - 1)],
            LogFormat::Text,
        );
    }
    let result = match line.command {
        AtollCommand::Serve { service } => return serve::run(&service),
        AtollCommand::Up(arguments) => up::run(&arguments),
        AtollCommand::Backup(arguments) => backup::run(&arguments),
        AtollCommand::Restore(arguments) => backup::run_restore(&arguments),
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
        AtollCommand::Completions(arguments) => {
            shell::completions(&arguments, command());
            Ok(())
        }
        AtollCommand::Man(arguments) => shell::man(&arguments, command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::notice(&failure::text(&error));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_is_in_a_group_of_the_help() {
        verbs::tests::check_groups(&command());
        let help = command().render_help().to_string();
        for text in [
            "Install and run Atoll:\n  install ",
            "Exit codes:",
            "-v, --verbose",
        ] {
            assert!(help.contains(text), "{text}: {help}");
        }
    }

    #[test]
    fn shells_and_man_have_all_verbs() {
        shell::tests::check_texts(&command());
    }

    /// Flags that all verbs share.
    #[test]
    fn flags_have_one_name_in_all_verbs() {
        fn check(verb: &Command, path: &str) {
            for argument in verb.get_arguments().filter(|it| !it.is_hide_set()) {
                let Some(name) = argument.get_long() else {
                    continue;
                };
                let older = [
                    "json",
                    "data",
                    "directory",
                    "workspace",
                    "folder",
                    "state",
                    "plan",
                ];
                assert!(!older.contains(&name), "{path} --{name}");
                let values = argument.get_value_names().unwrap_or_default();
                assert!(values.iter().all(|it| it != "FOLDER"), "{path} --{name}");
            }
            for below in verb.get_subcommands() {
                check(below, &format!("{path} {}", below.get_name()));
            }
        }
        check(&command(), "atoll");
    }

    #[test]
    fn older_names_of_flags_are_understood() {
        for line in [
            "atoll up --data x",
            "atoll status --data x",
            "atoll backup --data x f",
            "atoll restore --data x f",
            "atoll doctor --folder x --json",
            "atoll image extract --directory x a.iso",
            "atoll mirror delete --generate --config c --workspace w docker://r.example:5000",
            "atoll node replace n --state s --plan --json",
            "atoll node config n --config-server h --config-ca c",
            "atoll host controller --bmc-ca c",
            "atoll host check --json a.yaml",
            "atoll host render --json a.yaml",
            "atoll catalog list -o json c",
            "atoll catalog validate --output yaml c",
            "atoll mirror init --output json",
            "atoll pod quadlet --output x",
        ] {
            let parsed = command().try_get_matches_from(line.split(' '));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn a_dry_run_is_a_plan_and_drops_nothing() {
        let line = ["atoll", "node", "replace", "n", "--dry-run"];
        let matches = command().try_get_matches_from(line).unwrap();
        let replace = matches.subcommand_matches("node").unwrap();
        let replace = replace.subcommand_matches("replace").unwrap();
        assert!(replace.get_flag("plan") && !replace.get_flag("drop_learner"));
    }

    #[test]
    fn the_folder_of_a_pod_has_one_default() {
        let line = ["atoll", "pod", "upgrade", "b"];
        let matches = command().try_get_matches_from(line).unwrap();
        let upgrade = matches.subcommand_matches("pod").unwrap();
        let upgrade = upgrade.subcommand_matches("upgrade").unwrap();
        let dir = upgrade.get_one::<PathBuf>("dir").unwrap();
        assert_eq!(dir.as_os_str(), ".");
    }
}
