//! The pod in containers, as `podman-compose up` runs it, with names, ports and a network of its own.
//!
//! `atoll pod init` makes the folder, the containers are made from its compose.yaml, and requests come from outside,
//! through published ports. All of it is removed with the [`Pod`], also after a failure; leftovers of a killed test
//! program are removed by the next run.

mod compose;
mod container;
mod engine;
mod folder;
mod request;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::json;
use testkit::demo::{AtollState, DemoContent, DemoRegistry};

pub use compose::{Compose, Service, Variables};
pub use container::{Container, ContainerExit};
pub use engine::Engine;
pub use folder::{Folder, PodPorts};
pub use request::Volumes;

use self::request::ServiceRequest;
use crate::{ApiClient, free_ports, image_url, journey};

/// Services, in the order of their start here. Any order works.
pub const SERVICES: [&str; 6] = [
    "db",
    "registry",
    "api-server",
    "image-service",
    "webui",
    "proxy",
];
/// Ports that a pod publishes, catalogs included.
pub const PORTS: u16 = 9;
/// Variable that names another database.
pub const POSTGRES_IMAGE: &str = "POSTGRES_IMAGE";
/// Lines of each log that a failure prints.
const LOG_TAIL: usize = 40;

/// A private pod of one test.
#[derive(Debug)]
pub struct Pod {
    name: String,
    engine: Engine,
    folder: Folder,
    ports: PodPorts,
    gateway: String,
    containers: BTreeMap<(String, u32), Container>,
    content: Option<DemoContent>,
}

impl Pod {
    /// Makes folder, network and volumes; nothing runs yet.
    ///
    /// Errors: the engine's, those of `atoll pod init`.
    pub async fn new(engine: &Engine) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("atoll-test-{}-{number}", std::process::id());
        let gateway = engine.create_network(&name).await?;
        let first = free_ports(PORTS)?;
        let pod = Self {
            folder: Folder::new(&gateway)?,
            name,
            engine: engine.clone(),
            ports: PodPorts {
                api: first,
                images: first + 1,
                webui: first + 2,
                webui_static: first + 3,
                registry: first + 4,
                database: first + 5,
                http: first + 6,
                https: first + 7,
            },
            gateway,
            containers: BTreeMap::new(),
            content: None,
        };
        pod.configure()?;
        let mut names = BTreeSet::new();
        for service in pod.folder.compose()?.services.values() {
            let volumes = service.volumes()?.into_iter();
            let volumes = volumes.filter(|volume| !volume.is_folder());
            names.extend(volumes.map(|volume| pod.volume(&volume.source)));
        }
        for name in names {
            pod.engine.create_volume(&pod.name, &name).await?;
        }
        Ok(pod)
    }

    /// A started pod, with content, and ready.
    ///
    /// Errors: those of each part.
    pub async fn up(engine: &Engine) -> Result<Self> {
        Self::scaled(engine, &[]).await
    }

    /// As [`Pod::up`], with these numbers of replicas.
    ///
    /// Errors: those of each part.
    pub async fn scaled(engine: &Engine, replicas: &[(&str, u32)]) -> Result<Self> {
        let mut pod = Self::new(engine).await?;
        let up = pod.start_all(replicas).await;
        pod.with_logs(up).await?;
        Ok(pod)
    }

    /// Starts missing containers, makes content, and waits until everything is ready.
    ///
    /// Errors: those of each part.
    pub async fn start_all(&mut self, replicas: &[(&str, u32)]) -> Result<()> {
        self.start_missing(replicas).await?;
        self.is_ready().await.map(drop)
    }

    /// Starts missing containers, and makes content.
    ///
    /// Errors: those of each part.
    pub async fn start_missing(&mut self, replicas: &[(&str, u32)]) -> Result<()> {
        if self.container("registry").is_err() {
            self.start("registry").await?;
        }
        self.make_content().await?;
        for service in SERVICES {
            let scaled = replicas.iter().find(|(name, _)| *name == service);
            for number in 1..=scaled.map_or(1, |(_, count)| *count) {
                if self.replica(service, number).is_err() {
                    self.start_with(service, number, Volumes::default()).await?;
                }
            }
        }
        Ok(())
    }

    /// Makes a live image and a release, unless they exist; the registry has to be started.
    ///
    /// Errors: those of the file system and of the registry.
    pub async fn make_content(&mut self) -> Result<()> {
        if self.content.is_none() {
            self.container("registry")?.is_ready().await?;
            let content = self.folder.make_content(&self.registry()).await?;
            self.content = Some(content);
        }
        Ok(())
    }

    /// The content.
    ///
    /// Errors: not made yet.
    pub fn content(&self) -> Result<&DemoContent> {
        self.content.as_ref().context("there is no content yet")
    }

    /// Starts the one container of a service.
    ///
    /// Errors: the engine's.
    pub async fn start(&mut self, service: &str) -> Result<&Container> {
        self.start_with(service, 1, Volumes::default()).await
    }

    /// Starts replica `number` of a service.
    ///
    /// Errors: the engine's.
    pub async fn start_with(
        &mut self,
        service: &str,
        number: u32,
        volumes: Volumes,
    ) -> Result<&Container> {
        let name = format!("{}-{service}-{number}", self.name);
        let started = Container::start_as(self, service, &name, volumes).await?;
        let key = (service.to_owned(), number);
        Ok(self.containers.entry(key).insert_entry(started).into_mut())
    }

    /// Runs a service that has to fail; returns its exit code and output.
    ///
    /// Errors: it does not exit, the engine's.
    pub async fn fails(&self, service: &str, volumes: Volumes) -> Result<(i64, String)> {
        let body = ServiceRequest::of(self, service, volumes)?.body()?;
        let name = format!("{}-{service}", self.name);
        self.engine.run(&name, body).await
    }

    /// The first container of a service.
    ///
    /// Errors: it is not started.
    pub fn container(&self, service: &str) -> Result<&Container> {
        self.replica(service, 1)
    }

    /// A container of a service.
    ///
    /// Errors: it is not started.
    pub fn replica(&self, service: &str, number: u32) -> Result<&Container> {
        let found = self.containers.get(&(service.to_owned(), number));
        found.with_context(|| format!("{service} {number} is not started"))
    }

    /// All containers of a service.
    pub fn replicas(&self, service: &str) -> impl Iterator<Item = &Container> {
        let of = self
            .containers
            .iter()
            .filter(move |(key, _)| key.0 == service);
        of.map(|(_, container)| container)
    }

    /// Removes the containers of a service; volumes stay.
    ///
    /// Errors: the engine's.
    pub async fn remove(&mut self, service: &str) -> Result<()> {
        let keys: Vec<_> = self.containers.keys().cloned().collect();
        for key in keys.into_iter().filter(|key| key.0 == service) {
            if let Some(container) = self.containers.remove(&key) {
                container.remove().await?;
            }
        }
        Ok(())
    }

    /// Waits until every container is ready; returns the duration.
    ///
    /// Errors: not in time.
    pub async fn is_ready(&self) -> Result<Duration> {
        let began = Instant::now();
        for ((service, _), container) in &self.containers {
            // The database speaks no HTTP; the API is ready only when the database is.
            if service != "db" {
                container.is_ready().await?;
            }
        }
        Ok(began.elapsed())
    }

    /// Logs of all containers.
    ///
    /// Errors: the engine's.
    pub async fn logs(&self) -> Result<String> {
        let mut text = String::new();
        for container in self.containers.values() {
            text += &container.logs().await?;
        }
        Ok(text)
    }

    /// A client of the published API.
    ///
    /// Errors: the client cannot be made.
    pub fn api(&self) -> Result<ApiClient> {
        ApiClient::new(&format!("http://127.0.0.1:{}", self.ports.api))
    }

    /// Makes an infra-env; returns the URL of its image.
    ///
    /// Errors: those of the API.
    pub async fn make_image(&self) -> Result<String> {
        let api = self.api()?;
        let secret = self.registry().pull_secret()?;
        let body = json!({ "name": "first", "pull_secret": secret, "cpu_architecture": "x86_64" });
        api.succeed(Method::POST, "/v2/infra-envs", &body).await?;
        image_url(&api).await
    }

    /// The published ports.
    pub fn ports(&self) -> PodPorts {
        self.ports
    }

    /// Its registry, under the address that the test and all containers use.
    pub fn registry(&self) -> DemoRegistry {
        let address = format!("{}:{}", self.gateway, self.ports.registry);
        self.folder.registry(address)
    }

    /// Its folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Writes the file with the addresses of all services; returns its path.
    ///
    /// Errors: it cannot be written.
    pub fn state_file(&self) -> Result<PathBuf> {
        self.folder.write_state(&self.registry(), &self.ports)
    }

    /// The addresses of all services.
    ///
    /// Errors: as [`Pod::state_file`].
    pub fn state(&self) -> Result<AtollState> {
        AtollState::read(&self.state_file()?)
    }

    /// The engine's name of a volume of the compose file.
    pub fn volume(&self, name: &str) -> String {
        format!("{}-{name}", self.name)
    }

    /// Installs a new cluster of three control plane hosts and two workers, while `faults` run.
    ///
    /// Errors: those of either, with the ends of all logs.
    pub async fn installed_in_spite_of(
        &mut self,
        faults: impl AsyncFnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.installed_at(journey::SPEEDUP, faults).await
    }

    /// As [`Pod::installed_in_spite_of`], with machines `speedup` times faster than real ones.
    ///
    /// Errors: those of either, with the ends of all logs.
    pub async fn installed_at(
        &mut self,
        speedup: f64,
        faults: impl AsyncFnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let content = self.content()?.clone();
        let api = self.api()?;
        let options = journey::options(self.state_file()?, self.folder.beside("work")?, speedup)?;
        let done = journey::both(&api, &content, &options, async || faults(self).await).await;
        self.with_logs(done).await
    }

    /// Adds the ends of all logs to an error.
    ///
    /// Errors: the given one.
    pub async fn with_logs<T>(&self, result: Result<T>) -> Result<T> {
        let Err(error) = result else { return result };
        let mut text = String::new();
        for container in self.containers.values() {
            let log = container.logs().await.unwrap_or_else(|e| e.to_string());
            let lines: Vec<_> = log.lines().collect();
            let tail = &lines[lines.len().saturating_sub(LOG_TAIL)..];
            writeln!(text, "--- {}\n{}", container.name(), tail.join("\n")).ok();
        }
        Err(error.context(format!("{text}---")))
    }

    /// Runs a whole test: `work`, then [`Pod::down`].
    ///
    /// Errors: those of `work`, with the ends of all logs; something remains.
    pub async fn used(mut self, work: impl AsyncFnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let done = work(&mut self).await;
        self.with_logs(done).await?;
        self.down().await
    }

    /// Removes everything, at the end of a successful test.
    ///
    /// Errors: something remains.
    pub async fn down(mut self) -> Result<()> {
        self.containers.clear();
        self.engine.remove_all_of(&self.name).await
    }

    /// The settings that differ from those of an operator: addresses and ports of this test.
    fn configure(&self) -> Result<()> {
        let ports = self.ports;
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let published = |port: u16| port.to_string();
        self.folder.set([
            ("GATEWAY", self.gateway.clone()),
            ("SERVICE_BASE_URL", url(ports.api)),
            ("ASSISTED_SERVICE_HOST", format!("127.0.0.1:{}", ports.api)),
            ("IMAGE_SERVICE_BASE_URL", url(ports.images)),
            ("PUBLIC_CONTAINER_REGISTRIES", self.registry().address),
            ("PUBLISH_DB", published(ports.database)),
            ("PUBLISH_REGISTRY", published(ports.registry)),
            // Requests are counted through the published ports.
            ("METRICS_ON_PUBLIC_PORT", "true".to_owned()),
            ("PUBLISH_API", published(ports.api)),
            ("PUBLISH_IMAGES", published(ports.images)),
            ("PUBLISH_WEBUI", published(ports.webui)),
            ("PUBLISH_WEBUI_STATIC", published(ports.webui_static)),
            ("PUBLISH_HTTP", published(ports.http)),
            ("PUBLISH_HTTPS", published(ports.https)),
        ])?;
        let https = ("REDIRECT_HTTPS_PORT", published(ports.https));
        self.folder.set_proxy([https])?;
        // Allows tests of other database images.
        let image = std::env::var_os(POSTGRES_IMAGE).and_then(|image| image.into_string().ok());
        self.folder.set(image.map(|image| (POSTGRES_IMAGE, image)))
    }
}

impl Drop for Pod {
    /// Removes leftovers after a failure, on a thread of its own: drop cannot await the engine.
    fn drop(&mut self) {
        self.containers.clear();
        let (engine, name) = (self.engine.clone(), self.name.clone());
        let handle = tokio::runtime::Handle::current();
        let cleaned = std::thread::spawn(move || handle.block_on(engine.remove_all_of(&name)));
        report_failure(cleaned.join());
    }
}

#[expect(clippy::print_stderr, reason = "shown with the failure of a test")]
fn report_failure(cleaned: std::thread::Result<Result<()>>) {
    match cleaned {
        Ok(Ok(())) => {}
        Ok(Err(error)) => eprintln!("something of the pod stays: {error:#}"),
        Err(_) => eprintln!("something of the pod stays"),
    }
}
