//! The installer: writes the disk of one host and, on the bootstrap host, starts the control plane.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use crate::api::{ApiCall, ApiResponse, RetryPolicy};
use crate::install_request::InstallRequest;
use crate::machine::Machine;
use crate::stage::{order, report};
use crate::steps::upload_host_logs;
use crate::world::NodePhase;
use crate::{Error, HostFault, image};

/// Simulated durations of stages.
const CLEANUP_TIME: Duration = Duration::from_secs(15);
const WRITE_TIME: Duration = Duration::from_mins(2);
/// One report for each tenth of the image.
const WRITE_REPORTS: u32 = 10;
const BOOTKUBE_TIME: Duration = Duration::from_secs(90);
const CONTROLLER_TIME: Duration = Duration::from_secs(45);
/// Polling interval of the other hosts.
const WATCH_INTERVAL: Duration = Duration::from_secs(10);

impl Machine {
    /// Starts the installer unless it runs already.
    pub(crate) fn begin_installation(self: &Arc<Self>, request: InstallRequest) -> bool {
        let mut installation = self
            .installation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if installation
            .as_ref()
            .is_some_and(|task| !task.is_finished())
        {
            return false;
        }
        self.disk
            .change(|record| record.install = Some(request.clone()));
        let machine = Arc::clone(self);
        let ended = self.world.ended.clone();
        *installation = Some(tokio::spawn(async move {
            let _ = ended.run_until_cancelled(run(&machine, &request)).await;
        }));
        true
    }
}

/// Runs the installation; at the end the machine restarts, or the stage is Failed.
async fn run(machine: &Arc<Machine>, request: &InstallRequest) {
    match (InstallerRun { machine, request }).run().await {
        Ok(()) => machine.rebooting.cancel(),
        Err(error) => {
            let text = error.chain();
            tracing::error!(host = machine.name(), error = text, "installation failed");
            if let Err(error) = machine.report_stage("Failed", &text).await {
                tracing::error!(
                    host = machine.name(),
                    error = error.chain(),
                    "failure not reported"
                );
            }
            machine.disk.change(|record| record.install = None);
        }
    }
}

struct InstallerRun<'a> {
    machine: &'a Arc<Machine>,
    request: &'a InstallRequest,
}

impl InstallerRun<'_> {
    async fn run(&self) -> Result<(), Error> {
        let stages = self.request.stages();
        let reached = self.machine.disk.get().stage;
        let first = reached
            .and_then(|stage| stages.iter().position(|s| **s == stage))
            .unwrap_or(0);
        for stage in &stages[first..] {
            self.machine
                .disk
                .change(|record| record.stage = Some((*stage).to_owned()));
            tracing::info!(host = self.machine.name(), stage, "installer");
            self.report(
                stage,
                if first == 0 && *stage == "Starting installation" {
                    &self.request.role
                } else {
                    ""
                },
            )
            .await;
            match *stage {
                "Installing" => self.fetch_ignition().await?,
                "Writing image to disk" => self.write_image().await?,
                "Waiting for control plane" if self.request.role == "bootstrap" => {
                    self.lead_control_plane().await?;
                }
                "Waiting for control plane" => self.await_masters().await?,
                "Waiting for bootkube" => self.run_bootkube().await,
                "Waiting for controller" => self.await_controller().await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The real installer only logs a refused progress report.
    async fn report(&self, stage: &str, info: &str) {
        if let Err(error) = self.machine.report_stage(stage, info).await {
            tracing::error!(
                host = self.machine.name(),
                stage,
                error = error.chain(),
                "progress report refused"
            );
        }
    }

    async fn fetch_ignition(&self) -> Result<(), Error> {
        self.machine.world.pace.sleep(CLEANUP_TIME).await;
        let is_dummy = self.machine.world.has_dummy_files;
        let InstallRequest {
            infra_env_id,
            host_id,
            cluster_id,
            ..
        } = self.request;
        if self.request.role == "bootstrap" {
            let call = ApiCall::new(
                "bootstrap.ign",
                Method::GET,
                format!("/v2/clusters/{cluster_id}/downloads/files"),
            )
            .query("file_name", &"bootstrap.ign");
            let bootstrap = self.get(call).await?.body;
            if !is_dummy {
                image::check_bootstrap(&bootstrap)?;
            }
        }
        let path = format!("/v2/infra-env/{infra_env_id}/hosts/{host_id}/downloads/ignition");
        let answer = self
            .get(ApiCall::new("ignition", Method::GET, path))
            .await?;
        let has_pointer = !self.request.is_single_node() && !is_dummy;
        let hostname = image::check_host(&answer.body, has_pointer)?;
        tracing::info!(host = self.machine.name(), hostname, "ignition valid");
        Ok(())
    }

    async fn write_image(&self) -> Result<(), Error> {
        let hardware = &self.machine.hardware;
        for part in 1..=WRITE_REPORTS {
            self.machine
                .world
                .pace
                .sleep(WRITE_TIME / WRITE_REPORTS)
                .await;
            self.report(
                "Writing image to disk",
                &format!("{}%", part * 100 / WRITE_REPORTS),
            )
            .await;
            if part * 2 == WRITE_REPORTS && hardware.has(HostFault::Write) {
                let disk = hardware.disk_by_id();
                return Err(Error::invalid(disk, "Input/output error"));
            }
            if part * 2 == WRITE_REPORTS && hardware.has(HostFault::Power) {
                self.machine.restart_from_medium();
                // The machine is off: this installer does no more.
                std::future::pending::<()>().await;
            }
        }
        Ok(())
    }

    /// The bootstrap host reports the stages of other hosts: configuring and joined.
    async fn lead_control_plane(&self) -> Result<(), Error> {
        loop {
            let mut ready = 0;
            let masters = self.masters().await?;
            for host in &masters {
                let Some(node) = self.node_of(host) else {
                    continue;
                };
                let current = host["progress"]["current_stage"]
                    .as_str()
                    .unwrap_or_default();
                for (stage, phase) in [
                    ("Configuring", NodePhase::Configuring),
                    ("Joined", NodePhase::Joined),
                ] {
                    if node >= phase && order(current) < order(stage) {
                        self.report_other(host, stage).await;
                    }
                }
                ready += usize::from(node == NodePhase::Ready);
            }
            if ready >= self.request.quorum() {
                return Ok(());
            }
            self.machine.world.pace.sleep(WATCH_INTERVAL).await;
        }
    }

    async fn report_other(&self, host: &Value, stage: &str) {
        let (infra_env, id) = (
            host["infra_env_id"].as_str().unwrap_or_default(),
            host["id"].as_str().unwrap_or_default(),
        );
        if let Err(error) = report(&self.machine.api, infra_env, id, stage, "").await {
            tracing::error!(
                host = id,
                stage,
                error = error.chain(),
                "progress report of another host refused"
            );
        }
    }

    fn node_of(&self, host: &Value) -> Option<NodePhase> {
        let id = host["id"].as_str()?;
        let world = &self.machine.world;
        let machine = world
            .machines()
            .iter()
            .find(|machine| machine.host_id.to_string() == id)?;
        Some(world.node(machine.index))
    }

    /// A worker waits until the masters without the bootstrap host are done, two of them at most. Source: openshift/assisted-installer.
    async fn await_masters(&self) -> Result<(), Error> {
        loop {
            let masters = self.masters().await?;
            let done = masters.iter();
            let done = done.filter(|host| host["progress"]["current_stage"] == "Done");
            if done.count() >= self.request.quorum() {
                return Ok(());
            }
            self.machine.world.pace.sleep(WATCH_INTERVAL).await;
        }
    }

    /// Hosts of the control plane: the third member of a two-node one is an arbiter.
    async fn masters(&self) -> Result<Vec<Value>, Error> {
        let path = format!("/v2/clusters/{}/hosts", self.request.cluster_id);
        let mut masters = Vec::new();
        for role in ["master", "arbiter"] {
            let call = ApiCall::new("masters", Method::GET, path.clone()).query("role", &role);
            match self.get(call).await?.json("the list of masters")? {
                Value::Array(hosts) => masters.extend(hosts),
                _ => return Err(Error::invalid("the list of masters", "is no list")),
            }
        }
        Ok(masters)
    }

    async fn run_bootkube(&self) {
        self.machine.world.pace.sleep(BOOTKUBE_TIME).await;
        if self.request.is_single_node() {
            self.machine.controller.start(self.request.cluster_id);
        }
    }

    async fn await_controller(&self) -> Result<(), Error> {
        self.machine.controller.start(self.request.cluster_id);
        self.machine.world.pace.sleep(CONTROLLER_TIME).await;
        if let Err(error) = upload_host_logs(self.machine, self.request.cluster_id, true).await {
            tracing::warn!(
                host = self.machine.name(),
                error = error.chain(),
                "logs refused"
            );
        }
        Ok(())
    }

    async fn get(&self, call: ApiCall) -> Result<ApiResponse, Error> {
        self.machine.api.send(RetryPolicy::Installer, call).await
    }
}
