//! `atoll pod`: the folder of the pod, and the life of its containers.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use credentials::host_name::{self, in_url};
use credentials::secrets::REGISTRY_USER;
use service::Error;
use site::backup::SavedInstallation;
use site::pod::folder::{self, NewPod, REGISTRY_PORT};
use site::pod::lifecycle::{self, REPLICA_LIMIT, ServiceState};
use site::pod::quadlet::{self, WrittenUnits};
use site::pod::{PROXY, SETTINGS, configmap};

use crate::install::InstallArgs;
use crate::site_texts::{access_text, report};
use crate::terminal::print;
use crate::{backup, install};

/// Folder of units for the services of the system.
const SYSTEM_UNITS: &str = "/etc/containers/systemd";

/// Subcommands for the pod.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum PodCommand {
    /// Write compose.yaml, pod.yml, catalog.yml, .env, proxy/proxy.env and secrets into a folder; existing settings and secrets are kept
    Init(PodInitArgs),
    /// Print .env as the ConfigMap for `podman play kube pod.yml --configmap FILE`
    Configmap(PodFolderArgs),
    /// Start all services, or some, with podman alone, and wait until they are ready
    Up(PodUpArgs),
    /// Stop and remove all containers; data is kept
    Down(PodFolderArgs),
    /// Ask all services for their health
    Status(PodFolderArgs),
    /// Print the logs of a service
    Logs(PodLogsArgs),
    /// Change the number of replicas of one service; the others keep running
    Scale(PodScaleArgs),
    /// Write units for podman's systemd generator (podman 4.4 or newer)
    Quadlet(PodQuadletArgs),
    /// Install the version of a bundle, after a backup: as `atoll install`
    Upgrade(InstallArgs),
    /// Back up the pod: as `atoll backup --pod`
    Backup(PodBackupArgs),
    /// Restore the pod: as `atoll restore --pod`
    Restore(PodRestoreArgs),
}

/// The folder of the pod.
#[derive(Debug, Clone, Args)]
pub(crate) struct PodFolderArgs {
    /// Folder of the pod
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

/// Arguments of `atoll pod init`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PodInitArgs {
    /// Host name or IP address of this host for users and booting machines
    #[arg(long, value_name = "NAME", value_parser = host_name::host)]
    host: String,
    /// Network domain, whose names the proxy serves: api., web., service., registry. and mirror. Default: the one in
    /// proxy/proxy.env, else the host name if it has a dot, else atoll.internal
    #[arg(long, value_name = "DOMAIN", value_parser = host_name::domain)]
    domain: Option<String>,
    /// Target folder
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Require log-ins: sets AUTH_TYPE=local with new keys, and prints a link that logs the administrator in once
    #[arg(long)]
    login: bool,
}

/// Arguments of `atoll pod up`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PodUpArgs {
    /// Only these services
    #[arg(value_name = "SERVICE")]
    services: Vec<String>,
    #[command(flatten)]
    folder: PodFolderArgs,
}

/// Arguments of `atoll pod logs`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PodLogsArgs {
    /// The service
    service: String,
    /// Continue with new lines
    #[arg(long, short)]
    follow: bool,
    /// Lines from the end of each log
    #[arg(long, value_name = "N", default_value_t = 100)]
    tail: u32,
    #[command(flatten)]
    folder: PodFolderArgs,
}

/// Arguments of `atoll pod scale`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PodScaleArgs {
    /// Service and its number of replicas, which is kept in .env
    #[arg(value_name = "SERVICE=N", value_parser = parse_scale)]
    scale: (String, u32),
    #[command(flatten)]
    folder: PodFolderArgs,
}

/// Arguments of `atoll pod quadlet`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PodQuadletArgs {
    /// Folder for the units [default: quadlet in the folder of the pod]
    #[arg(long = "to", alias = "output", value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    folder: PodFolderArgs,
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
    folder: PodFolderArgs,
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
    folder: PodFolderArgs,
}

fn parse_scale(text: &str) -> Result<(String, u32), String> {
    let expected = || format!("expected SERVICE=N, with N from 1 to {REPLICA_LIMIT}");
    let (service, number) = text.split_once('=').ok_or_else(expected)?;
    let number: u32 = number.parse().map_err(|_| expected())?;
    if (1..=REPLICA_LIMIT).contains(&number) {
        Ok((service.to_owned(), number))
    } else {
        Err(expected())
    }
}

/// Runs the subcommand.
///
/// Errors: those of podman; files that cannot be read or written.
pub(crate) fn run(command: &PodCommand) -> Result<(), Error> {
    match command {
        PodCommand::Init(arguments) => init(arguments),
        PodCommand::Configmap(folder) => {
            print(configmap(&folder.dir)?.trim_end());
            Ok(())
        }
        PodCommand::Up(arguments) => {
            lifecycle::up(&arguments.folder.dir, &arguments.services, &report)?;
            status(&arguments.folder.dir)
        }
        PodCommand::Down(folder) => lifecycle::down(&folder.dir),
        PodCommand::Status(folder) => status(&folder.dir),
        PodCommand::Logs(arguments) => lifecycle::logs(
            &arguments.folder.dir,
            &arguments.service,
            arguments.tail,
            arguments.follow,
        ),
        PodCommand::Scale(arguments) => scale(arguments),
        PodCommand::Quadlet(arguments) => {
            let written = quadlet::write(&arguments.folder.dir, arguments.output.clone())?;
            print(&units_text(&written));
            Ok(())
        }
        PodCommand::Upgrade(arguments) => install::run(arguments),
        PodCommand::Backup(arguments) => {
            let pod = SavedInstallation::Pod(arguments.folder.dir.clone());
            backup::save(&arguments.file, &pod, arguments.verify)
        }
        PodCommand::Restore(arguments) => {
            let pod = SavedInstallation::Pod(arguments.folder.dir.clone());
            backup::restore(&arguments.file, &pod, arguments.replace)
        }
    }
}

/// Writes files that are missing or of another version, and prints the next steps.
fn init(arguments: &PodInitArgs) -> Result<(), Error> {
    let PodInitArgs { host, dir, .. } = arguments;
    let pod = NewPod {
        host: host.clone(),
        domain: arguments.domain.clone(),
        dir: dir.clone(),
        login: arguments.login,
    };
    let made = folder::prepare(&pod, &report)?;
    let domain = &made.domain;
    print(&format!(
        "Registry: {}:{REGISTRY_PORT}, user {REGISTRY_USER}, password in {}, certificate {}.\n\
         Domain: {domain}; certificates are of {}. `atoll certs --domain {domain} --dir {} --print-trust` prints how \
         clients trust it.\n\
         Next: put boot images into {}, name them and the releases in {}, then `podman-compose up -d`.",
        in_url(host),
        made.secrets.registry_password.display(),
        made.secrets.tls.cert.display(),
        made.authority.certificate().display(),
        dir.join(PROXY).display(),
        dir.join("images").display(),
        dir.join(SETTINGS).display(),
    ));
    print(&access_text(&folder::access(dir, arguments.login)?, dir));
    Ok(())
}

/// Prints containers with their health.
///
/// Errors: those of podman; a container that is missing or not healthy.
fn status(dir: &Path) -> Result<(), Error> {
    let states = lifecycle::status(dir)?;
    for state in &states {
        print(&state_text(state));
    }
    match states.iter().filter(|it| !it.is_healthy()).count() {
        0 => Ok(()),
        1 => Err(Error::new("asking the services", "one is not healthy")),
        count => Err(Error::new(
            "asking the services",
            format!("{count} are not healthy"),
        )),
    }
}

fn state_text(state: &ServiceState) -> String {
    let name = &state.service;
    let Some(container) = &state.container else {
        return format!("{name:<16} not started");
    };
    let health = match &container.problem {
        None => "healthy".to_owned(),
        Some(reason) => format!("not healthy: {reason}"),
    };
    let (number, state) = (container.number, &container.state);
    format!("{name:<14} {number} {state:<24} {health}")
}

fn scale(arguments: &PodScaleArgs) -> Result<(), Error> {
    let (name, replicas) = &arguments.scale;
    let (variable, file) = lifecycle::scale(&arguments.folder.dir, name, *replicas, &report)?;
    print(&format!(
        "{name}: {replicas} replicas; {variable} in {} keeps it.",
        file.display()
    ));
    Ok(())
}

fn units_text(written: &WrittenUnits) -> String {
    let (units, pod) = (written.output.display(), written.pod.display());
    let services = written.services.join(" ");
    format!(
        "Units written to {units}. Next, as root: atoll pod down --dir {pod}; cp {units}/* {SYSTEM_UNITS}/; \
         systemctl daemon-reload; systemctl start {services}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // limit: pod-replicas
    #[test]
    fn replicas_are_counted_from_one_to_the_limit() {
        assert_eq!(
            parse_scale("api-server=3").unwrap(),
            ("api-server".to_owned(), 3)
        );
        parse_scale("a=64").unwrap();
        for wrong in ["a", "a=0", "a=65", "a=x", "a=-1"] {
            parse_scale(wrong).unwrap_err();
        }
    }
}
