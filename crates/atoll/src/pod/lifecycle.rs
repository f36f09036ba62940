//! `atoll pod up`, `down`, `status`, `logs` and `scale`: podman without podman-compose.
//!
//! Containers, volumes and network have the names and labels of podman-compose, which can take over and be taken over.
//! There is no pod around them, and so no infra container and no image for it. The one invariant: a container whose
//! configuration is unchanged keeps running.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use service::Error;

use super::compose::ComposeProject;
use super::configmap::SETTINGS;
use super::container::{
    self, ContainerRun, ExistingContainer, by_service, ensure_network, ensure_volumes, existing,
    has_systemd, image_id, network,
};
use crate::env_file;
use crate::{podman, terminal};

/// Timeout until all services are ready. PostgreSQL may recover from a crash first.
const READY_LIMIT: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(500);
/// Units: seconds. Podman kills a container after it; compose.yaml states a shorter one for each.
const STOP_LIMIT: &str = "60";
const REPLICA_LIMIT: u32 = 64;

/// The folder of the pod.
#[derive(Debug, Clone, Args)]
pub(crate) struct PodFolderArgs {
    /// Folder of the pod
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
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

/// Starts services and waits until they are ready.
///
/// Errors: those of podman; a service that is not ready in time, with the end of its log.
pub(crate) fn up(arguments: &PodUpArgs) -> Result<(), Error> {
    let project = ComposeProject::read(&arguments.folder.dir)?;
    for name in &arguments.services {
        project.service(name)?;
    }
    let services: Vec<&str> = if arguments.services.is_empty() {
        project.active().collect()
    } else {
        arguments.services.iter().map(String::as_str).collect()
    };
    start(&project, &services)?;
    wait_ready(&project, &services)?;
    status(&arguments.folder)
}

/// Starts the containers of services, and replaces those whose configuration changed.
///
/// Errors: those of podman, a missing image.
pub(crate) fn start(project: &ComposeProject, services: &[&str]) -> Result<(), Error> {
    ensure_network(project)?;
    for name in services {
        let service = project.service(name)?;
        ensure_volumes(project, service)?;
        resize(project, name, service.scale, true)?;
    }
    Ok(())
}

/// Starts the existing containers of a service, as they are, and waits until they are ready.
///
/// Errors: as [`start`].
pub(crate) fn start_existing(project: &ComposeProject, name: &str) -> Result<(), Error> {
    ensure_network(project)?;
    ensure_volumes(project, project.service(name)?)?;
    resize(project, name, 1, false)?;
    wait_ready(project, &[name])
}

/// Makes a service have `replicas` containers. Those with another configuration are replaced if `is_current`.
fn resize(
    project: &ComposeProject,
    name: &str,
    replicas: u32,
    is_current: bool,
) -> Result<(), Error> {
    let all = existing(&project.name)?;
    let own: Vec<_> = all.iter().filter(|it| it.service == name).collect();
    for number in 1..=replicas {
        let run = ContainerRun::new(project, name, number, has_systemd())?;
        let config = run.config(&image_id(run.image())?);
        match own.iter().find(|it| it.number == number) {
            Some(found) if !is_current && !found.is_running => {
                podman::run(&["start", &found.name])?;
            }
            Some(found)
                if !is_current || (found.is_running && found.config.as_ref() == Some(&config)) => {}
            found => {
                if let Some(found) = found {
                    remove(found)?;
                }
                run.start(&config)?;
            }
        }
    }
    for surplus in own.iter().filter(|it| it.number > replicas) {
        remove(surplus)?;
    }
    Ok(())
}

fn remove(container: &ExistingContainer) -> Result<(), Error> {
    // Graceful first: removal by force kills at once.
    if container.is_running {
        podman::run(&["stop", "--time", STOP_LIMIT, &container.name])?;
    }
    podman::run(&["rm", "--force", &container.name]).map(drop)
}

/// Stops and removes all containers and the network; volumes are kept.
///
/// Errors: those of podman.
pub(crate) fn down(folder: &Path) -> Result<(), Error> {
    let project = ComposeProject::read(folder)?;
    let containers = existing(&project.name)?;
    // The database last: the others still write to it.
    let is_database = |it: &&ExistingContainer| it.service == "db";
    for container in containers.iter().filter(|it| !is_database(it)) {
        remove(container)?;
    }
    for container in containers.iter().filter(is_database) {
        remove(container)?;
    }
    let name = network(&project);
    let names = podman::run(&["network", "ls", "--format", "{{.Name}}"])?;
    if names.lines().any(|it| it == name) {
        podman::run(&["network", "rm", &name])?;
    }
    Ok(())
}

/// Waits until every container of the services answers its health check.
///
/// Errors: not in time, with the end of a log.
pub(crate) fn wait_ready(project: &ComposeProject, services: &[&str]) -> Result<(), Error> {
    let deadline = Instant::now() + READY_LIMIT;
    for name in services {
        loop {
            let containers = existing(&project.name)?;
            let own = by_service(&containers).remove(name).unwrap_or_default();
            let missing = own
                .iter()
                .find_map(|it| Some((it, health(project, it).err()?)));
            let Some((missing, reason)) = missing else {
                break;
            };
            if Instant::now() >= deadline {
                let log = podman::last_lines(&missing.name, "20");
                let reason = format!("it is not ready: {}; its log:\n{log}", reason.trim_end());
                return Err(Error::new(format!("starting {}", missing.name), reason));
            }
            terminal::progress(&format!("waiting for {name}"));
            thread::sleep(POLL);
        }
    }
    terminal::clear_progress();
    Ok(())
}

/// Asks a container for its health: without systemd, podman itself runs no health checks.
fn health(project: &ComposeProject, container: &ExistingContainer) -> Result<(), String> {
    if !container.is_running {
        return Err(container.state.clone());
    }
    let service = project.services.get(&container.service);
    let command = service.and_then(|it| container::command(&it.healthcheck.test));
    let Some(command) = command else {
        return Ok(());
    };
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let asked = podman::exec(&container.name, &command, None, None);
    asked.map_err(|error| error.source.to_string())
}

/// Prints containers with their health.
///
/// Errors: those of podman; a container that is missing or not healthy.
pub(crate) fn status(folder: &PodFolderArgs) -> Result<(), Error> {
    let project = ComposeProject::read(&folder.dir)?;
    let containers = existing(&project.name)?;
    let services = by_service(&containers);
    let mut problems = 0;
    for name in project.active() {
        let own = services.get(name).map(Vec::as_slice).unwrap_or_default();
        if own.is_empty() {
            problems += 1;
            terminal::print(&format!("{name:<16} not started"));
        }
        for container in own {
            let health = match health(&project, container) {
                Ok(()) => "healthy".to_owned(),
                Err(reason) => {
                    problems += 1;
                    let reason = reason.lines().next().unwrap_or_default().to_owned();
                    format!("not healthy: {reason}")
                }
            };
            let ExistingContainer { number, state, .. } = container;
            terminal::print(&format!("{name:<14} {number} {state:<24} {health}"));
        }
    }
    match problems {
        0 => Ok(()),
        1 => Err(Error::new("asking the services", "one is not healthy")),
        count => Err(Error::new(
            "asking the services",
            format!("{count} are not healthy"),
        )),
    }
}

/// Prints the logs of a service.
///
/// Errors: those of podman.
pub(crate) fn logs(arguments: &PodLogsArgs) -> Result<(), Error> {
    let project = ComposeProject::read(&arguments.folder.dir)?;
    project.service(&arguments.service)?;
    let containers = existing(&project.name)?;
    let own = containers
        .iter()
        .filter(|it| it.service == arguments.service);
    let tail = arguments.tail.to_string();
    let mut command = vec!["logs", "--names", "--tail", &tail];
    if arguments.follow {
        command.push("--follow");
    }
    let before = command.len();
    command.extend(own.map(|it| it.name.as_str()));
    if command.len() == before {
        let reason = "it has no container: `atoll pod up`";
        return Err(Error::new(
            format!("reading the log of {}", arguments.service),
            reason,
        ));
    }
    podman::attached(&command)
}

/// Changes the number of replicas of one service, and of no other.
///
/// Errors: a service that runs once; those of podman.
pub(crate) fn scale(arguments: &PodScaleArgs) -> Result<(), Error> {
    let (name, replicas) = &arguments.scale;
    let project = ComposeProject::read(&arguments.folder.dir)?;
    let service = project.service(name)?;
    let variable = service.scale_variable.as_deref().ok_or_else(|| {
        Error::new(
            format!("scaling {name}"),
            "compose.yaml runs it once: it has state, or publishes ports",
        )
    })?;
    let path = project.folder.join(SETTINGS);
    env_file::set(&path, &[(variable.to_owned(), replicas.to_string())])?;
    resize(&project, name, *replicas, false)?;
    wait_ready(&project, &[name])?;
    terminal::print(&format!(
        "{name}: {replicas} replicas; {variable} in {} keeps it.",
        path.display()
    ));
    Ok(())
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

    #[test]
    fn settings_are_replaced_in_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".env");
        std::fs::write(&path, "# A=0\nA=1\nB=2").unwrap();
        let values = [("A", "x=y"), ("C", "3")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        env_file::set(&path, &values).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "# A=0\nA=x=y\nB=2\nC=3\n"
        );
    }
}
