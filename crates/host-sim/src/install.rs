//! The installer: writes the disk of one host and, on the bootstrap host, starts the control plane.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::api::{ApiCall, ApiResponse, RetryPolicy};
use crate::machine::{Machine, QUORUM, report};
use crate::world::NodePhase;
use crate::{Error, Hardware, image, steps};

/// Simulated durations of stages.
const CLEANUP_TIME: Duration = Duration::from_secs(15);
const WRITE_TIME: Duration = Duration::from_mins(2);
/// One report for each tenth of the image.
const WRITE_REPORTS: u32 = 10;
const BOOTKUBE_TIME: Duration = Duration::from_secs(90);
const CONTROLLER_TIME: Duration = Duration::from_secs(45);
/// Polling interval of the other hosts.
const WATCH_INTERVAL: Duration = Duration::from_secs(10);

const BOOTSTRAP_STAGES: &[&str] = &[
    "Starting installation",
    "Installing",
    "Writing image to disk",
    "Waiting for control plane",
    "Waiting for bootkube",
    "Waiting for controller",
    "Rebooting",
];
const MASTER_STAGES: &[&str] = &[
    "Starting installation",
    "Installing",
    "Writing image to disk",
    "Rebooting",
];
const WORKER_STAGES: &[&str] = &[
    "Starting installation",
    "Installing",
    "Writing image to disk",
    "Waiting for control plane",
    "Rebooting",
];
const SINGLE_NODE_STAGES: &[&str] = &[
    "Starting installation",
    "Installing",
    "Waiting for bootkube",
    "Writing image to disk",
    "Rebooting",
];

/// Arguments of the install step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct InstallRequest {
    pub(crate) cluster_id: Uuid,
    pub(crate) infra_env_id: Uuid,
    pub(crate) host_id: Uuid,
    pub(crate) role: String,
    boot_device: String,
    controller_image: String,
    installer_image: String,
    #[serde(default)]
    control_plane_count: u32,
    #[serde(default)]
    mco_image: String,
    #[serde(default)]
    must_gather_image: String,
    #[serde(default)]
    openshift_version: String,
    #[serde(default)]
    installer_args: String,
    disks_to_format: Option<Vec<String>>,
    service_ips: Option<Vec<String>>,
}

impl InstallRequest {
    /// Parses the step's argument and checks it against the machine, as the real agent and installer do.
    /// Errors: the reason, as text.
    pub(crate) fn parse(arg: &str, hardware: &Hardware) -> Result<Self, String> {
        let request: Self =
            serde_json::from_str(arg).map_err(|e| format!("install_cmd_request: {e}"))?;
        request.check(hardware)?;
        Ok(request)
    }

    fn check(&self, hardware: &Hardware) -> Result<(), String> {
        if self.host_id != hardware.host_id {
            return Err(format!("host_id {} is another host", self.host_id));
        }
        if !matches!(
            self.role.as_str(),
            "bootstrap" | "master" | "worker" | "arbiter"
        ) {
            return Err(format!("role {:?} cannot be installed", self.role));
        }
        let disk = hardware.disk_by_id();
        for device in [&self.boot_device]
            .into_iter()
            .chain(self.disks_to_format.iter().flatten())
        {
            if *device != disk && device != "/dev/sda" {
                return Err(format!("this machine has no disk {device:?}"));
            }
        }
        for (name, image) in [
            ("controller_image", &self.controller_image),
            ("installer_image", &self.installer_image),
        ] {
            if !steps::is_image(image) {
                return Err(format!("{name} {image:?} is no image"));
            }
        }
        if !self.mco_image.is_empty() && !steps::is_image(&self.mco_image) {
            return Err(format!("mco_image {:?} is no image", self.mco_image));
        }
        if !self.mco_image.is_empty() && self.openshift_version.is_empty() {
            return Err("openshift_version is missing".into());
        }
        if !self.installer_args.is_empty()
            && serde_json::from_str::<Vec<String>>(&self.installer_args).is_err()
        {
            return Err(format!(
                "installer_args {:?} is no JSON list of texts",
                self.installer_args
            ));
        }
        check_must_gather(&self.must_gather_image)
    }

    /// Whether the cluster is one machine.
    pub(crate) fn is_single_node(&self) -> bool {
        self.control_plane_count == 1
    }

    /// Requests of hosts that join an existing cluster have no images of the release.
    fn joins_existing_cluster(&self) -> bool {
        self.mco_image.is_empty()
    }

    fn stages(&self) -> &'static [&'static str] {
        match self.role.as_str() {
            "bootstrap" if self.is_single_node() => SINGLE_NODE_STAGES,
            "bootstrap" => BOOTSTRAP_STAGES,
            "worker" if !self.joins_existing_cluster() => WORKER_STAGES,
            _ => MASTER_STAGES,
        }
    }
}

/// A plain image, or a JSON map from operator to image.
fn check_must_gather(text: &str) -> Result<(), String> {
    if text.is_empty() || steps::is_image(text) {
        return Ok(());
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map))
            if map
                .values()
                .all(|image| image.as_str().is_some_and(steps::is_image)) =>
        {
            Ok(())
        }
        _ => Err(format!(
            "must_gather_image {text:?} is neither an image nor a map of images"
        )),
    }
}

/// Runs the installation; at the end the machine restarts, or the stage is Failed.
pub(crate) async fn run(machine: &Arc<Machine>, request: &InstallRequest) {
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
                "Writing image to disk" => self.write_image().await,
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
            image::check_bootstrap(&self.get(call).await?.body)?;
        }
        let path = format!("/v2/infra-env/{infra_env_id}/hosts/{host_id}/downloads/ignition");
        let answer = self
            .get(ApiCall::new("ignition", Method::GET, path))
            .await?;
        let hostname = image::check_host(&answer.body, self.request.is_single_node())?;
        tracing::info!(host = self.machine.name(), hostname, "ignition valid");
        Ok(())
    }

    async fn write_image(&self) {
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
        }
    }

    /// The bootstrap host reports the stages of other hosts: configuring and joined.
    async fn lead_control_plane(&self) -> Result<(), Error> {
        loop {
            let mut ready = 0;
            for host in self.masters().await? {
                let Some(node) = self.node_of(&host) else {
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
                        self.report_other(&host, stage).await;
                    }
                }
                ready += usize::from(node == NodePhase::Ready);
            }
            if ready >= QUORUM {
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

    /// A worker waits until two masters are done. Source: openshift/assisted-installer.
    async fn await_masters(&self) -> Result<(), Error> {
        loop {
            let masters = self.masters().await?;
            if masters
                .iter()
                .filter(|host| host["progress"]["current_stage"] == "Done")
                .count()
                >= QUORUM
            {
                return Ok(());
            }
            self.machine.world.pace.sleep(WATCH_INTERVAL).await;
        }
    }

    async fn masters(&self) -> Result<Vec<Value>, Error> {
        let path = format!("/v2/clusters/{}/hosts", self.request.cluster_id);
        let answer = self
            .get(ApiCall::new("masters", Method::GET, path).query("role", &"master"))
            .await?;
        match answer.json("the list of masters")? {
            Value::Array(hosts) => Ok(hosts),
            _ => Err(Error::invalid("the list of masters", "is no list")),
        }
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
        if let Err(error) =
            steps::upload_host_logs(self.machine, self.request.cluster_id, true).await
        {
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

/// Position of a stage among those that follow the restart; anything earlier is 0.
pub(crate) fn order(stage: &str) -> usize {
    [
        "Rebooting",
        "Waiting for ignition",
        "Configuring",
        "Joined",
        "Done",
    ]
    .iter()
    .position(|known| *known == stage)
    .map_or(0, |position| position + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Role;
    use crate::hardware::tests::machine;

    fn request(hardware: &Hardware) -> Value {
        json!({
            "cluster_id": Uuid::nil(), "infra_env_id": Uuid::nil(), "host_id": hardware.host_id, "role": "master",
            "boot_device": hardware.disk_by_id(), "controller_image": "q.io/a/controller:1", "installer_image": "q.io/a/installer:1",
            "control_plane_count": 3, "mco_image": "r:5000/o/mco@sha256:00", "openshift_version": "4.18.3",
            "must_gather_image": r#"{"ocp":"r:5000/o/mg@sha256:00"}"#, "installer_args": r#"["--append-karg","ip=dhcp"]"#,
            "service_ips": null, "disks_to_format": [],
        })
    }

    #[test]
    fn a_complete_request_is_accepted() {
        let hardware = machine(0, Role::Master, vec![]);
        InstallRequest::parse(&request(&hardware).to_string(), &hardware).unwrap();
    }

    #[test]
    fn requests_that_the_real_agent_refuses_are_refused() {
        let hardware = machine(0, Role::Master, vec![]);
        for (member, value) in [
            ("role", json!("auto-assign")),
            ("host_id", json!(Uuid::nil())),
            ("boot_device", json!("/dev/vda")),
            ("installer_image", json!("")),
            ("installer_args", json!("--append-karg")),
            ("must_gather_image", json!("{}x")),
            ("disks_to_format", json!(["/dev/sdb"])),
            ("openshift_version", json!("")),
        ] {
            let mut bad = request(&hardware);
            bad[member] = value;
            assert!(
                InstallRequest::parse(&bad.to_string(), &hardware).is_err(),
                "{member}"
            );
        }
    }

    #[test]
    fn stages_follow_the_role() {
        let hardware = machine(0, Role::Master, vec![]);
        let stages = |role: &str, planes: u32| {
            let mut value = request(&hardware);
            value["role"] = json!(role);
            value["control_plane_count"] = json!(planes);
            InstallRequest::parse(&value.to_string(), &hardware)
                .unwrap()
                .stages()
        };
        assert_eq!(stages("bootstrap", 3), BOOTSTRAP_STAGES);
        assert_eq!(stages("bootstrap", 1), SINGLE_NODE_STAGES);
        assert_eq!(stages("worker", 3), WORKER_STAGES);
        assert_eq!(stages("arbiter", 2), MASTER_STAGES);
    }
}
