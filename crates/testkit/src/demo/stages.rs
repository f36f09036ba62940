//! The stages of the journey.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::breakage;
use super::content::DemoContent;
use super::credentials;
use super::image;
use super::journey::{Break, HOSTS, Journey, PREPARE_DEADLINE, READY_DEADLINE};
use super::machines::Machines;
use super::watch::{self, Deadline, PAUSE, Watch, hosts, preparation_reason, text};

/// Free addresses in the network of the simulated machines.
const API_VIP: &str = "192.168.126.100";
const INGRESS_VIP: &str = "192.168.126.101";

/// Services restart when they are given the content.
const VERSIONS_DEADLINE: Duration = Duration::from_mins(5);
/// Until the cluster is installed.
const INSTALL_DEADLINE: Duration = Duration::from_mins(40);
impl Journey<'_> {
    /// Runs the whole journey; with an injected fault, as far as possible, and checks how the fault is reported.
    ///
    /// Errors: any failure that a user would see, with the response.
    pub async fn run(&self, content: &DemoContent) -> Result<()> {
        self.await_versions(content).await?;
        let cluster_id = self.create_cluster(content).await?;
        let image = self.download_image(&cluster_id, content).await?;
        let mut machines = self.start_machines(&image)?;
        let mut watch = Watch::new(&self.client, self.console, &cluster_id);
        if self.options.broken == Some(Break::Ram) {
            breakage::ram(self, &mut watch, &mut machines).await?;
            return machines.switch_off().await;
        }
        self.await_ready(&mut watch, &mut machines).await?;
        if self.options.broken == Some(Break::Registry) {
            breakage::registry(self, &mut watch, &mut machines, &cluster_id).await?;
        }
        self.install(&mut watch, &mut machines, &cluster_id).await?;
        machines.finish().await?;
        self.take_credentials(&cluster_id, &watch.cluster).await
    }

    async fn await_versions(&self, content: &DemoContent) -> Result<()> {
        let deadline = Deadline::new(VERSIONS_DEADLINE);
        loop {
            let listing = self.client.get("/v2/openshift-versions").await?;
            if listing.get(content.version()).is_some() {
                // Not before: the service restarts between an empty listing and the next.
                let other = self.client.get("/v2/platform-versions").await?;
                ensure!(
                    listing == other,
                    "both spellings of the versions listing must agree: {listing} and {other}"
                );
                let names: Vec<&str> = listing
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, _)| name.as_str())
                    .collect();
                self.console.step(format!(
                    "the API at {} offers {}",
                    self.state.api_url,
                    names.join(", ")
                ));
                return Ok(());
            }
            deadline
                .pause(PAUSE, || {
                    format!(
                        "version {} in {listing}; were the services given {}?",
                        content.version(),
                        content.settings.display()
                    )
                })
                .await?;
        }
    }

    async fn create_cluster(&self, content: &DemoContent) -> Result<String> {
        let pull_secret = self.state.registry().pull_secret()?;
        let cluster = self
            .client
            .post(
                "/v2/clusters",
                &json!({
                    "name": "demo", "base_dns_domain": "example.org", "openshift_version": content.version(),
                    "control_plane_count": 3, "pull_secret": pull_secret,
                    "api_vips": [{ "ip": API_VIP }], "ingress_vips": [{ "ip": INGRESS_VIP }],
                }),
            )
            .await?;
        let id = text(&cluster, "id").to_owned();
        ensure!(!id.is_empty(), "the new cluster has no id: {cluster}");
        self.console.step(format!(
            "cluster demo.example.org {} created: 3 control plane nodes, 2 workers, API {API_VIP}, ingress {INGRESS_VIP}",
            text(&cluster, "openshift_version")
        ));
        self.console.detail(format!(
            "id {id}, {} ({})",
            text(&cluster, "status"),
            text(&cluster, "status_info")
        ));
        Ok(id)
    }

    async fn download_image(&self, cluster_id: &str, content: &DemoContent) -> Result<PathBuf> {
        let infra_env = self
            .client
            .post(
                "/v2/infra-envs",
                &json!({
                    "name": "demo-hosts", "cluster_id": cluster_id, "pull_secret": self.state.registry().pull_secret()?,
                    "openshift_version": content.version(), "image_type": "full-iso", "cpu_architecture": "x86_64",
                }),
            )
            .await?;
        let id = text(&infra_env, "id");
        let answer = self
            .client
            .get(&format!("/v2/infra-envs/{id}/downloads/image-url"))
            .await?;
        let url = text(&answer, "url");
        ensure!(
            around_token(url) == around_token(text(&infra_env, "download_url")),
            "two addresses of one image: {url} and {}",
            text(&infra_env, "download_url")
        );
        let path = self.options.work.join("discovery.iso");
        let size = image::download(&self.client, url, &path).await?;
        self.console
            .step(format!("discovery image downloaded: {} MiB", size >> 20));
        self.console.detail(format!("{url}\n→ {}", path.display()));
        self.check_ignition(&path, id).await?;
        Ok(path)
    }

    async fn check_ignition(&self, image: &Path, infra_env_id: &str) -> Result<()> {
        let reading = image::ignition(
            image,
            self.options.coreos_installer.as_deref(),
            &self.options.host_sim,
        )
        .await?;
        let units = reading.config["systemd"]["units"]
            .as_array()
            .context("the ignition has no units")?;
        let agent = units
            .iter()
            .find(|unit| unit["name"] == "agent.service")
            .context("the ignition has no agent.service")?;
        ensure!(
            text(agent, "contents").contains(infra_env_id),
            "agent.service does not name infra-env {infra_env_id}"
        );
        let version = text(&reading.config["ignition"], "version");
        self.console.step(format!(
            "ignition {version} read back by {}",
            reading.reader
        ));
        let command = text(agent, "contents")
            .lines()
            .find(|line| line.starts_with("ExecStart="));
        self.console.detail(command.unwrap_or_default());
        Ok(())
    }

    fn start_machines(&self, image: &Path) -> Result<Machines> {
        let state = self.options.work.join("machines");
        if state.exists() {
            std::fs::remove_dir_all(&state)
                .with_context(|| format!("{}: cannot be removed", state.display()))?;
        }
        let weaken = (self.options.broken == Some(Break::Ram))
            .then(|| format!("ram={}", breakage::WEAK_HOST));
        let (program, work) = (&self.options.host_sim, &self.options.work);
        let machines = Machines::start(
            program,
            image,
            work,
            self.options.speedup,
            weaken.as_deref(),
        )?;
        self.console.step(format!(
            "{HOSTS} machines boot from the image, {}× real time",
            self.options.speedup
        ));
        let pid = machines
            .pid()
            .map_or_else(String::new, |pid| format!("process {pid}, "));
        self.console
            .detail(format!("{pid}log {}", machines.log().display()));
        Ok(machines)
    }

    async fn await_ready(&self, watch: &mut Watch<'_>, machines: &mut Machines) -> Result<()> {
        watch
            .until(machines, READY_DEADLINE, |cluster| {
                let known = hosts(cluster)
                    .filter(|host| text(host, "status") == "known")
                    .count();
                Ok(known == HOSTS && text(cluster, "status") == "ready")
            })
            .await?;
        self.console
            .step(format!("all {HOSTS} hosts are known, the cluster is ready"));
        for line in watch::failed_validations(&watch.cluster) {
            self.console.detail(line);
        }
        Ok(())
    }

    /// Starts the installation and follows it to the end.
    async fn install(
        &self,
        watch: &mut Watch<'_>,
        machines: &mut Machines,
        cluster_id: &str,
    ) -> Result<()> {
        self.request_installation(cluster_id).await?;
        self.console
            .step("installation accepted; the installer runs out of the release image");
        watch
            .until(machines, PREPARE_DEADLINE, |cluster| {
                match text(cluster, "status") {
                    "installing" | "finalizing" | "installed" => Ok(true),
                    "preparing-for-installation" => Ok(false),
                    _ => bail!(
                        "preparation failed: {}\n{}",
                        watch::summary(cluster),
                        preparation_reason(cluster)
                    ),
                }
            })
            .await?;
        self.console
            .step("prepared: ignition of all hosts is there, hosts install");
        watch
            .until(machines, INSTALL_DEADLINE, |cluster| {
                match text(cluster, "status") {
                    "installed" => Ok(true),
                    "error" | "cancelled" => {
                        bail!("installation failed: {}", watch::summary(cluster))
                    }
                    _ => Ok(false),
                }
            })
            .await?;
        self.console.step("the cluster is installed");
        Ok(())
    }

    /// A server that is killed may have accepted the request that it did not answer.
    async fn request_installation(&self, cluster_id: &str) -> Result<()> {
        let path = format!("/v2/clusters/{cluster_id}/actions/install");
        loop {
            let Err(error) = self.client.send(Method::POST, &path, None).await else {
                return Ok(());
            };
            if error.downcast_ref::<reqwest::Error>().is_none() {
                return Err(error);
            }
            let cluster = self
                .client
                .get(&format!("/v2/clusters/{cluster_id}"))
                .await?;
            if text(&cluster, "status") != "ready" {
                return Ok(());
            }
        }
    }

    async fn take_credentials(&self, cluster_id: &str, cluster: &Value) -> Result<()> {
        let credentials =
            credentials::download(&self.client, cluster_id, &self.options.work).await?;
        self.console.step(format!(
            "kubeconfig for {} and the kubeadmin password are here",
            credentials.server
        ));
        self.console.detail(format!(
            "{}\n{}",
            credentials.kubeconfig.display(),
            credentials.password.display()
        ));
        let events = self
            .client
            .get(&format!("/v2/events?cluster_id={cluster_id}&limit=-1"))
            .await?;
        let count = events.as_array().map_or(0, Vec::len);
        self.console
            .step(format!("done: {}, {count} events", watch::summary(cluster)));
        if let Some(url) = &self.state.ui_url {
            self.console.detail(format!("see it at {url}"));
        }
        Ok(())
    }
}

/// The address of an image before and after its token, which has the second of its making.
fn around_token(url: &str) -> (&str, &str) {
    let Some((before, rest)) = url.split_once("/bytoken/") else {
        return (url, "");
    };
    (before, rest.split_once('/').map_or("", |(_, after)| after))
}
