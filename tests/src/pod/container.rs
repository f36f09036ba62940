//! One container of a pod.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use reqwest::StatusCode;
use testcontainers::bollard::query_parameters::{
    KillContainerOptionsBuilder, RestartContainerOptionsBuilder, StopContainerOptionsBuilder,
};
use testcontainers::core::{ExecCommand, IntoContainerPort as _};
use testcontainers::runners::AsyncRunner as _;
use testcontainers::{ContainerAsync, GenericImage, ImageExt as _};

use super::Pod;
use super::engine::Engine;
use super::request::{ServiceRequest, Volumes};
use crate::process::{self, Signal};
use crate::{ApiClient, ApiResponse, free_ports, until};

/// Long, for a busy machine.
const START_LIMIT: Duration = Duration::from_mins(3);
/// Deadline of a health check.
const CHECK_LIMIT: Duration = Duration::from_mins(2);

/// Counter of requests.
const REQUESTS: &str = "atoll_http_request_duration_seconds_count";
/// Paths of health checks and metrics.
const OWN_PATHS: [&str; 3] = ["/health", "/ready", "/metrics"];

/// The end of a container.
#[derive(Debug, Clone, Copy)]
pub struct ContainerExit {
    /// Its exit code.
    pub code: i64,
    /// Duration of the stop.
    pub took: Duration,
}

/// A container, removed on drop.
#[derive(Debug)]
pub struct Container {
    name: String,
    inner: ContainerAsync<GenericImage>,
    engine: Engine,
    grace_s: i32,
    /// Its own port, for health checks; published for this container alone, unless the pod publishes it.
    port: u16,
    is_tls: bool,
    client: reqwest::Client,
    check: Vec<String>,
}

/// Port of a service's health checks.
fn own_port(service: &str) -> u16 {
    match service {
        "db" => 5432,
        "registry" => 5000,
        "api-server" => 8090,
        "image-service" => 8888,
        "webui" => 8080,
        _ => 8404,
    }
}

impl Container {
    /// Starts `service` of `pod` as container `name`, with the service's name as network alias.
    pub(super) async fn start_as(
        pod: &Pod,
        service: &str,
        name: &str,
        volumes: Volumes,
    ) -> Result<Self> {
        let service_request = ServiceRequest::of(pod, service, volumes)?;
        let published = service_request.service.ports()?;
        let own = own_port(service);
        let port = match published.iter().find(|(_, inside)| *inside == own) {
            Some((outside, _)) => *outside,
            None => free_ports(1)?,
        };
        let mut request = service_request
            .request()?
            .with_container_name(name)
            .with_labels(Engine::labels(&pod.name))
            .with_startup_timeout(START_LIMIT)
            .with_mapped_port(port, own.tcp());
        for (outside, inside) in published {
            request = request.with_mapped_port(outside, inside.tcp());
        }
        let inner = request.start().await.with_context(|| {
            let image = &service_request.service.image;
            format!("starting {image} (images are built by `cargo xtask images`)")
        })?;
        Ok(Self {
            name: name.to_owned(),
            inner,
            engine: pod.engine.clone(),
            grace_s: service_request.service.grace_s()?,
            port,
            is_tls: service == "registry",
            client: crate::api::client(Some(&pod.registry().ca))?,
            check: service_request
                .service
                .healthcheck
                .test
                .iter()
                .skip(1)
                .cloned()
                .collect(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A client of this replica, past the proxy.
    ///
    /// Errors: the client cannot be made.
    pub fn api(&self) -> Result<ApiClient> {
        ApiClient::new(&self.origin())
    }

    /// Origin of this replica, past the proxy.
    pub fn origin(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Requests `/health`, `/ready` or `/metrics`.
    ///
    /// Errors: no response.
    pub async fn probe(&self, path: &str) -> Result<ApiResponse> {
        crate::api::ask(&self.client, &format!("{}{path}", self.origin())).await
    }

    /// Waits until it reports ready; returns the duration.
    ///
    /// Errors: not in time, or it has exited.
    pub async fn is_ready(&self) -> Result<Duration> {
        self.answers("/ready", StatusCode::OK, "").await
    }

    /// Waits until it answers `path` with `status` and a body that contains `word`.
    ///
    /// Errors: not in time, or it has exited.
    pub async fn answers(&self, path: &str, status: StatusCode, word: &str) -> Result<Duration> {
        let began = Instant::now();
        let mut last = String::new();
        let answered = until(
            &format!("{} answers {path} with {status} {word}", self.name),
            START_LIMIT,
            async || {
                match self.probe(path).await {
                    Ok(answer) if answer.status == status && answer.text().contains(word) => {
                        return Ok(Some(began.elapsed()));
                    }
                    Ok(answer) => last = format!("{} {}", answer.status, answer.text()),
                    Err(error) => last = format!("{error:#}"),
                }
                ensure!(self.is_running().await?, "{} has ended", self.name);
                Ok(None)
            },
        )
        .await;
        answered.with_context(|| format!("last: {last}"))
    }

    /// Requests that it has answered, without those of health checks and metrics.
    ///
    /// Errors: no response.
    pub async fn requests(&self) -> Result<u64> {
        let text = self.probe("/metrics").await?.text();
        let is_other = |line: &&str| {
            !OWN_PATHS
                .iter()
                .any(|path| line.contains(&format!("route=\"{path}\"")))
        };
        let samples = text.lines().filter(|line| line.starts_with(REQUESTS));
        Ok(samples
            .filter(is_other)
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
            .sum())
    }

    /// Runs the compose file's health check inside; returns whether it succeeds.
    ///
    /// Errors: it cannot run.
    pub async fn is_healthy(&self) -> Result<bool> {
        let check = self.inner.exec(ExecCommand::new(&self.check)).await?;
        let name = &self.name;
        until(
            &format!("{name} has been checked"),
            CHECK_LIMIT,
            async || Ok(check.exit_code().await?),
        )
        .await
        .map(|code| code == 0)
    }

    /// Its logs.
    ///
    /// Errors: the engine's.
    pub async fn logs(&self) -> Result<String> {
        self.engine.logs(&self.name).await
    }

    /// Whether its program runs, also during a stop.
    ///
    /// Errors: the engine's.
    pub async fn is_running(&self) -> Result<bool> {
        self.engine.is_running(&self.name).await
    }

    /// Kills its processes without the engine, as a crash does, and waits until the engine has restarted it.
    ///
    /// Errors: it does not run, it is not restarted.
    pub async fn crash(&self) -> Result<()> {
        let old = self.engine.pid(&self.name).await?;
        let old = old.with_context(|| format!("{} does not run", self.name))?;
        process::signal(old, Signal::KILL)?;
        until(
            &format!("{} runs again", self.name),
            START_LIMIT,
            async || {
                let pid = self.engine.pid(&self.name).await?;
                Ok(pid.filter(|pid| *pid != old).map(drop))
            },
        )
        .await
    }

    /// Kills it, as an operator does: the engine does not restart it.
    ///
    /// Errors: it does not run.
    pub async fn kill(&self) -> Result<()> {
        let options = KillContainerOptionsBuilder::new().signal("SIGKILL");
        let docker = self.engine.docker();
        let killed = docker.kill_container(&self.name, Some(options.build()));
        killed
            .await
            .with_context(|| format!("killing {}", self.name))?;
        self.engine.has_ended(&self.name).await.map(drop)
    }

    /// Starts it again after an exit.
    ///
    /// Errors: the engine's.
    pub async fn start(&self) -> Result<()> {
        let doing = format!("starting {} again", self.name);
        until(&doing, START_LIMIT, async || {
            match self.inner.start().await {
                // A busy engine holds the ports of an ended container for a while.
                Err(error) if error.to_string().contains("address already in use") => Ok(None),
                started => started.map(Some).context(doing.clone()),
            }
        })
        .await
    }

    /// `podman restart`.
    ///
    /// Errors: the engine's.
    pub async fn restart(&self) -> Result<()> {
        let options = RestartContainerOptionsBuilder::new().t(self.grace_s);
        let docker = self.engine.docker();
        let restarted = docker.restart_container(&self.name, Some(options.build()));
        restarted
            .await
            .with_context(|| format!("restarting {}", self.name))
    }

    /// `podman stop` with the compose file's grace period.
    ///
    /// Errors: the engine's.
    pub async fn stop(&self) -> Result<ContainerExit> {
        let began = Instant::now();
        let options = StopContainerOptionsBuilder::new().t(self.grace_s).build();
        let docker = self.engine.docker();
        let stopped = docker.stop_container(&self.name, Some(options)).await;
        stopped.with_context(|| format!("stopping {}", self.name))?;
        let code = self.engine.has_ended(&self.name).await?;
        Ok(ContainerExit {
            code,
            took: began.elapsed(),
        })
    }

    /// Freezes it: it exists and does not respond.
    ///
    /// Errors: the engine's.
    pub async fn pause(&self) -> Result<()> {
        Ok(self.inner.pause().await?)
    }

    /// Unfreezes it.
    ///
    /// Errors: the engine's.
    pub async fn unpause(&self) -> Result<()> {
        Ok(self.inner.unpause().await?)
    }

    /// Removes it; named volumes stay.
    ///
    /// Errors: the engine's.
    pub async fn remove(self) -> Result<()> {
        Ok(self.inner.rm().await?)
    }
}
