//! The life of the pod: started, stopped, asked, scaled, with podman alone.
//!
//! Containers, volumes and network have the names and labels of podman-compose, which can take over and be taken over.
//! There is no pod around them, and so no infra container and no image for it. The one invariant: a container whose
//! configuration is unchanged keeps running.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use service::Error;
use service::env_file;

use super::compose::ComposeProject;
use super::configmap::SETTINGS;
use super::container::{
    self, ContainerRun, ExistingContainer, by_service, ensure_network, ensure_volumes, existing,
    has_systemd, image_id, network,
};
use crate::event::{SiteEvent, SiteObserver, SiteWork};
use crate::podman;

/// Timeout until all services are ready. PostgreSQL may recover from a crash first.
const READY_LIMIT: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(500);
/// Units: seconds. Podman kills a container after it; compose.yaml states a shorter one for each.
const STOP_LIMIT: &str = "60";
/// Most replicas of a service.
pub const REPLICA_LIMIT: u32 = 64;

/// A container as podman has it; none for a service that has no container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceState {
    pub service: String,
    pub container: Option<ContainerState>,
}

/// State of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerState {
    /// Number of the replica, from 1.
    pub number: u32,
    /// As podman names it.
    pub state: String,
    /// Why its health check fails, in one line.
    pub problem: Option<String>,
}

impl ServiceState {
    /// Whether it runs and answers its health check.
    pub fn is_healthy(&self) -> bool {
        let container = self.container.as_ref();
        container.is_some_and(|it| it.problem.is_none())
    }
}

/// Starts these services of the pod in `dir`, or all, and waits until they are ready.
///
/// Errors: those of podman; a service that is not ready in time, with the end of its log.
pub fn up(dir: &Path, services: &[String], observe: SiteObserver<'_>) -> Result<(), Error> {
    let project = ComposeProject::read(dir)?;
    for name in services {
        project.service(name)?;
    }
    let services: Vec<&str> = if services.is_empty() {
        project.active().collect()
    } else {
        services.iter().map(String::as_str).collect()
    };
    start(&project, &services)?;
    wait_ready(&project, &services, observe)
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
pub(crate) fn start_existing(
    project: &ComposeProject,
    name: &str,
    observe: SiteObserver<'_>,
) -> Result<(), Error> {
    ensure_network(project)?;
    ensure_volumes(project, project.service(name)?)?;
    resize(project, name, 1, false)?;
    wait_ready(project, &[name], observe)
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
pub fn down(folder: &Path) -> Result<(), Error> {
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
pub(crate) fn wait_ready(
    project: &ComposeProject,
    services: &[&str],
    observe: SiteObserver<'_>,
) -> Result<(), Error> {
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
            observe(SiteEvent::Working(SiteWork::Waiting(name)));
            thread::sleep(POLL);
        }
    }
    observe(SiteEvent::Rested);
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

/// Containers of the pod in `dir`, by service, with their health.
///
/// Errors: those of podman.
pub fn status(dir: &Path) -> Result<Vec<ServiceState>, Error> {
    let project = ComposeProject::read(dir)?;
    let containers = existing(&project.name)?;
    let services = by_service(&containers);
    let mut states = Vec::new();
    for name in project.active() {
        let own = services.get(name).map(Vec::as_slice).unwrap_or_default();
        let state = |container| ServiceState {
            service: name.to_owned(),
            container,
        };
        if own.is_empty() {
            states.push(state(None));
        }
        for container in own {
            let problem = health(&project, container).err();
            states.push(state(Some(ContainerState {
                number: container.number,
                state: container.state.clone(),
                problem: problem.map(|it| it.lines().next().unwrap_or_default().to_owned()),
            })));
        }
    }
    Ok(states)
}

/// Has podman write the last `tail` lines of a service's logs to this program's terminal, and with `follow` new ones.
///
/// Errors: those of podman.
pub fn logs(dir: &Path, service: &str, tail: u32, follow: bool) -> Result<(), Error> {
    let project = ComposeProject::read(dir)?;
    project.service(service)?;
    let containers = existing(&project.name)?;
    let own = containers.iter().filter(|it| it.service == service);
    let tail = tail.to_string();
    let mut command = vec!["logs", "--names", "--tail", &tail];
    if follow {
        command.push("--follow");
    }
    let before = command.len();
    command.extend(own.map(|it| it.name.as_str()));
    if command.len() == before {
        let reason = "it has no container: `atoll pod up`";
        return Err(Error::new(format!("reading the log of {service}"), reason));
    }
    podman::attached(&command)
}

/// Changes the number of replicas of one service, and of no other. Returns the setting that keeps it, and its file.
///
/// Errors: a service that runs once; those of podman.
pub fn scale(
    dir: &Path,
    name: &str,
    replicas: u32,
    observe: SiteObserver<'_>,
) -> Result<(String, PathBuf), Error> {
    let project = ComposeProject::read(dir)?;
    let service = project.service(name)?;
    let variable = service.scale_variable.as_deref().ok_or_else(|| {
        Error::new(
            format!("scaling {name}"),
            "compose.yaml runs it once: it has state, or publishes ports",
        )
    })?;
    let path = project.folder.join(SETTINGS);
    env_file::set(&path, &[(variable.to_owned(), replicas.to_string())])?;
    resize(&project, name, replicas, false)?;
    wait_ready(&project, &[name], observe)?;
    Ok((variable.to_owned(), path))
}
