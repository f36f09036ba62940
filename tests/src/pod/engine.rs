//! The container engine, and the objects that tests make in it.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::TryStreamExt as _;
use testcontainers::bollard::Docker;
use testcontainers::bollard::errors::Error;
use testcontainers::bollard::models::{
    ContainerCreateBody, ContainerState, ContainerSummary, NetworkCreateRequest,
    VolumeCreateRequest,
};
use testcontainers::bollard::query_parameters::{
    CreateContainerOptionsBuilder, ListContainersOptionsBuilder, ListNetworksOptionsBuilder,
    ListVolumesOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveVolumeOptionsBuilder, StartContainerOptions,
};
use testcontainers::core::client::docker_client_instance;

use crate::{process, until};

/// Label: the test that an object belongs to.
pub(super) const OWNER: &str = "atoll.test";
/// Label: the process that made an object; a dead one's objects are removed.
const PROCESS: &str = "atoll.test.pid";
/// Networks are busy for a moment after their last container.
const REMOVE_LIMIT: Duration = Duration::from_mins(1);
/// Deadline for containers to leave states that the client library cannot parse.
const LIST_LIMIT: Duration = Duration::from_mins(1);
/// Deadline of containers that exit by themselves.
const END_LIMIT: Duration = Duration::from_mins(2);

/// Filters of a list.
type Filters = HashMap<String, Vec<String>>;

/// The engine that `DOCKER_HOST` names.
#[derive(Debug, Clone)]
pub struct Engine {
    docker: Docker,
}

impl Engine {
    /// Connects to it.
    ///
    /// Errors: it does not answer.
    pub async fn connect() -> Result<Self> {
        let docker = docker_client_instance().await?;
        docker
            .ping()
            .await
            .context("the container engine does not answer")?;
        Ok(Self { docker })
    }

    /// The client, for operations that are not here.
    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Labels of objects that this process makes for `owner`.
    pub(super) fn labels(owner: &str) -> HashMap<String, String> {
        let pid = std::process::id().to_string();
        [(OWNER, owner), (PROCESS, &pid)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    /// Makes a network with its own name server; returns the host's address in it.
    pub(super) async fn create_network(&self, name: &str) -> Result<String> {
        let request = NetworkCreateRequest {
            name: name.to_owned(),
            labels: Some(Self::labels(name)),
            ..NetworkCreateRequest::default()
        };
        self.docker
            .create_network(request)
            .await
            .with_context(|| format!("making network {name}"))?;
        let network = self.docker.inspect_network(name, None).await?;
        let gateway = network
            .ipam
            .and_then(|ipam| ipam.config?.into_iter().next()?.gateway);
        gateway.with_context(|| format!("network {name} has no gateway"))
    }

    pub(super) async fn create_volume(&self, owner: &str, name: &str) -> Result<()> {
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            labels: Some(Self::labels(owner)),
            ..VolumeCreateRequest::default()
        };
        let made = self.docker.create_volume(request).await;
        made.map(drop)
            .with_context(|| format!("making volume {name}"))
    }

    /// Removes a volume that no container uses.
    ///
    /// Errors: the engine's.
    pub async fn remove_volume(&self, name: &str) -> Result<()> {
        let options = RemoveVolumeOptionsBuilder::new().build();
        let removed = self.docker.remove_volume(name, Some(options)).await;
        or_gone(removed).with_context(|| format!("removing volume {name}"))
    }

    /// Logs of a container, both streams.
    ///
    /// Errors: there is no such container.
    pub async fn logs(&self, container: &str) -> Result<String> {
        let options = LogsOptionsBuilder::new().stdout(true).stderr(true).build();
        let lines = self.docker.logs(container, Some(options));
        let lines: Vec<_> = lines.try_collect().await?;
        let text = |line: testcontainers::bollard::container::LogOutput| {
            String::from_utf8_lossy(&line.into_bytes()).into_owned()
        };
        Ok(lines.into_iter().map(text).collect())
    }

    /// Whether a container's program runs, also during a stop.
    ///
    /// Errors: there is no such container.
    pub(super) async fn is_running(&self, container: &str) -> Result<bool> {
        Ok(self.state(container).await?.as_ref().is_some_and(lives))
    }

    /// Process id of a container's first process, which is the engine's small init.
    ///
    /// Errors: there is no such container.
    pub(super) async fn pid(&self, container: &str) -> Result<Option<u32>> {
        let pid = self.state(container).await?.and_then(|state| state.pid);
        Ok(pid
            .and_then(|pid| u32::try_from(pid).ok())
            .filter(|pid| *pid > 0))
    }

    /// Waits until a container exits; returns the exit code.
    ///
    /// Errors: it does not exit.
    pub(super) async fn has_ended(&self, container: &str) -> Result<i64> {
        until(&format!("{container} ends"), END_LIMIT, async || {
            let ended = self.state(container).await?.filter(|state| !lives(state));
            Ok(ended.and_then(|state| state.exit_code))
        })
        .await
    }

    /// `None` between its exit and the engine's notice of it.
    async fn state(&self, container: &str) -> Result<Option<ContainerState>> {
        match self.docker.inspect_container(container, None).await {
            Ok(found) => Ok(found.state),
            // Podman reports `stopped`, a state that Docker does not have.
            Err(Error::JsonDataError { .. }) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("looking at {container}")),
        }
    }

    /// Runs a container that exits by itself; returns its exit code and output.
    ///
    /// Errors: it does not exit, the engine's.
    pub(super) async fn run(&self, name: &str, body: ContainerCreateBody) -> Result<(i64, String)> {
        let options = CreateContainerOptionsBuilder::new().name(name).build();
        self.docker
            .create_container(Some(options), body)
            .await
            .with_context(|| format!("making {name}"))?;
        self.docker
            .start_container(name, None::<StartContainerOptions>)
            .await
            .with_context(|| format!("starting {name}"))?;
        let code = self.has_ended(name).await?;
        let log = self.logs(name).await?;
        let options = RemoveContainerOptionsBuilder::new().v(true).build();
        let removed = self.docker.remove_container(name, Some(options)).await;
        removed.with_context(|| format!("removing {name}"))?;
        Ok((code, log))
    }

    /// Removes all objects of `owner`.
    ///
    /// Errors: something remains.
    pub(super) async fn remove_all_of(&self, owner: &str) -> Result<()> {
        self.remove(OWNER, |name| name == owner).await
    }

    /// Removes objects of killed test programs.
    ///
    /// Errors: something remains.
    pub async fn sweep(&self) -> Result<()> {
        let is_gone = |pid: &str| pid.parse().is_ok_and(|pid| !process::lives(pid));
        self.remove(PROCESS, is_gone).await
    }

    /// Removes all objects whose label satisfies `is_meant`: containers, then networks and volumes.
    async fn remove(&self, label: &str, is_meant: impl Fn(&str) -> bool) -> Result<()> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let is_meant = |labels: Option<HashMap<String, String>>| {
            labels.is_some_and(|labels| labels.get(label).is_some_and(|value| is_meant(value)))
        };
        for container in self.containers(&filters).await? {
            if let Some(id) = container.id.filter(|_| is_meant(container.labels)) {
                let options = RemoveContainerOptionsBuilder::new().force(true).v(true);
                let removed = self.docker.remove_container(&id, Some(options.build()));
                or_gone(removed.await).with_context(|| format!("removing container {id}"))?;
            }
        }
        let options = ListVolumesOptionsBuilder::new().filters(&filters).build();
        let volumes = self.docker.list_volumes(Some(options)).await?.volumes;
        for volume in volumes.into_iter().flatten() {
            if is_meant(Some(volume.labels)) {
                self.remove_volume(&volume.name).await?;
            }
        }
        let options = ListNetworksOptionsBuilder::new().filters(&filters).build();
        for network in self.docker.list_networks(Some(options)).await? {
            if let Some(name) = network.name.filter(|_| is_meant(network.labels)) {
                self.remove_network(&name).await?;
            }
        }
        Ok(())
    }

    /// All containers with a label, in any state.
    async fn containers(&self, filters: &Filters) -> Result<Vec<ContainerSummary>> {
        until("the engine lists its containers", LIST_LIMIT, async || {
            let options = ListContainersOptionsBuilder::new().all(true);
            let options = options.filters(filters).build();
            match self.docker.list_containers(Some(options)).await {
                Ok(list) => Ok(Some(list)),
                // One of them is `stopped` for a moment.
                Err(Error::JsonDataError { .. }) => Ok(None),
                Err(error) => Err(error).context("listing containers"),
            }
        })
        .await
    }

    async fn remove_network(&self, name: &str) -> Result<()> {
        let condition = format!("network {name} can be removed");
        until(&condition, REMOVE_LIMIT, async || {
            Ok(or_gone(self.docker.remove_network(name).await).ok())
        })
        .await
    }
}

/// By its process: during a stop, the state is not `running` any more.
fn lives(state: &ContainerState) -> bool {
    state.running == Some(true) || state.pid.is_some_and(|pid| pid > 0)
}

/// Ignores "not found": a concurrent run may have removed the object.
fn or_gone(removed: Result<(), Error>) -> Result<(), Error> {
    match removed {
        Err(Error::DockerResponseServerError {
            status_code: 404, ..
        }) => Ok(()),
        other => other,
    }
}
