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
use super::request::{Said, Volumes};
use crate::process::{self, Signal};
use crate::{Answer, Api, free_ports, until};

/// A busy machine may take long.
const START_LIMIT: Duration = Duration::from_mins(3);
/// Until a check has ended.
const CHECK_LIMIT: Duration = Duration::from_mins(2);

/// Counts requests.
const REQUESTS: &str = "atoll_http_request_duration_seconds_count";
/// Paths that ask a service how it is.
const OWN_PATHS: [&str; 3] = ["/health", "/ready", "/metrics"];

/// How a container has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended {
    /// What it was ended with.
    pub code: i64,
    /// How long that took.
    pub took: Duration,
}

/// A container; it goes with this value.
#[derive(Debug)]
pub struct Container {
    name: String,
    inner: ContainerAsync<GenericImage>,
    engine: Engine,
    grace_s: i32,
    /// Where it is asked for its health; published for this one alone, unless the pod publishes it.
    port: u16,
    is_tls: bool,
    client: reqwest::Client,
    check: Vec<String>,
}

/// Port on which a service says how it is.
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
    /// Starts `service` of `pod` as container `name`; other containers know it by the service's name.
    pub(super) async fn start_as(
        pod: &Pod,
        service: &str,
        name: &str,
        volumes: Volumes,
    ) -> Result<Self> {
        let said = Said::of(pod, service, volumes)?;
        let published = said.service.ports()?;
        let own = own_port(service);
        let port = match published.iter().find(|(_, inside)| *inside == own) {
            Some((outside, _)) => *outside,
            None => free_ports(1)?,
        };
        let mut request = said
            .request()?
            .with_container_name(name)
            .with_labels(Engine::labels(&pod.name))
            .with_startup_timeout(START_LIMIT)
            .with_mapped_port(port, own.tcp());
        for (outside, inside) in published {
            request = request.with_mapped_port(outside, inside.tcp());
        }
        let inner = request.start().await.with_context(|| {
            let image = &said.service.image;
            format!("starting {image} (images are built by `cargo xtask images`)")
        })?;
        Ok(Self {
            name: name.to_owned(),
            inner,
            engine: pod.engine.clone(),
            grace_s: said.service.grace_s()?,
            port,
            is_tls: service == "registry",
            client: crate::api::client(Some(&pod.registry().ca))?,
            check: said
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

    /// A client of this one, past the proxy.
    ///
    /// Errors: the client cannot be made.
    pub fn api(&self) -> Result<Api> {
        Api::new(&self.origin())
    }

    /// Where this one is reached, past the proxy.
    pub fn origin(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.port)
    }

    /// Asks for `/health`, `/ready`, `/metrics`.
    ///
    /// Errors: no answer.
    pub async fn probe(&self, path: &str) -> Result<Answer> {
        crate::api::ask(&self.client, &format!("{}{path}", self.origin())).await
    }

    /// Waits until it says that it is ready; gives how long that took.
    ///
    /// Errors: not in time, or it has ended.
    pub async fn is_ready(&self) -> Result<Duration> {
        self.answers("/ready", StatusCode::OK, "").await
    }

    /// Waits until it answers `path` with `status` and a body that contains `word`.
    ///
    /// Errors: not in time, or it has ended.
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

    /// How many requests it has answered, without those that ask how it is.
    ///
    /// Errors: no answer.
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

    /// Runs the check that the compose file declares, inside; whether it ends well.
    ///
    /// Errors: it cannot be run.
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

    /// What it has written.
    ///
    /// Errors: the engine's.
    pub async fn logs(&self) -> Result<String> {
        self.engine.logs(&self.name).await
    }

    /// Whether its program runs, be it that it is asked to end.
    ///
    /// Errors: the engine's.
    pub async fn is_running(&self) -> Result<bool> {
        self.engine.is_running(&self.name).await
    }

    /// Ends its processes behind the engine's back, as a crash does, and waits until the engine has started it again.
    ///
    /// Errors: it does not run, it is not started again.
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

    /// Kills it, as an operator does: it is not started again.
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

    /// Starts it again after an end.
    ///
    /// Errors: the engine's.
    pub async fn start(&self) -> Result<()> {
        let started = self.inner.start().await;
        started.with_context(|| format!("starting {} again", self.name))
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

    /// `podman stop` with the patience that the compose file grants.
    ///
    /// Errors: the engine's.
    pub async fn stop(&self) -> Result<Ended> {
        let began = Instant::now();
        let options = StopContainerOptionsBuilder::new().t(self.grace_s).build();
        let docker = self.engine.docker();
        let stopped = docker.stop_container(&self.name, Some(options)).await;
        stopped.with_context(|| format!("stopping {}", self.name))?;
        let code = self.engine.has_ended(&self.name).await?;
        Ok(Ended {
            code,
            took: began.elapsed(),
        })
    }

    /// Freezes it: it is there and does not answer.
    ///
    /// Errors: the engine's.
    pub async fn pause(&self) -> Result<()> {
        Ok(self.inner.pause().await?)
    }

    /// Lets it go on.
    ///
    /// Errors: the engine's.
    pub async fn unpause(&self) -> Result<()> {
        Ok(self.inner.unpause().await?)
    }

    /// Removes it; volumes with a name stay.
    ///
    /// Errors: the engine's.
    pub async fn remove(self) -> Result<()> {
        Ok(self.inner.rm().await?)
    }
}
