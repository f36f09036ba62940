//! The controller inside the new cluster: reports its nodes and finishes the installation.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::watch;
use uuid::Uuid;

use crate::api::{ApiCall, ApiResponse, RetryPolicy};
use crate::log_archive::log_archive;
use crate::stage::{order, report};
use crate::state_file::StateFile;
use crate::world::NodePhase;
use crate::{ApiClient, Error, World};

/// Polling interval of the cluster.
const INTERVAL: Duration = Duration::from_secs(30);
/// Duration of the operator of a finalizing stage.
const OPERATOR_TIME: Duration = Duration::from_secs(30);
const FINALIZING: &[&str] = &[
    "Waiting for cluster operators",
    "Adding router ca",
    "Applying olm manifests",
    "Waiting for olm operators csv initialization",
    "Waiting for olm operators csv",
    "Waiting for OLM operator setup jobs",
    "Done",
];

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct ControllerState {
    cluster_id: Option<Uuid>,
    /// Number of finished finalizing stages.
    finalized: usize,
    has_ended: bool,
}

/// Exit of the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControllerEnd {
    /// The cluster is installed.
    Installed,
    /// The cluster is in error, cancelled or deleted.
    GivenUp(String),
}

/// The controller of the one cluster that these machines form.
#[derive(Debug)]
pub struct Controller {
    api: ApiClient,
    world: Arc<World>,
    progress: StateFile<ControllerState>,
    cluster: watch::Sender<Option<Uuid>>,
}

impl Controller {
    /// Resumes from the state directory.
    ///
    /// Errors: `File`, `Invalid` – the state file cannot be read.
    pub fn new(api: ApiClient, world: Arc<World>, state: Option<&Path>) -> Result<Self, Error> {
        let progress = StateFile::<ControllerState>::open(state, "controller")?;
        let cluster = watch::Sender::new(progress.get().cluster_id);
        Ok(Self {
            api,
            world,
            progress,
            cluster,
        })
    }

    /// Starts it, once the bootstrap host has applied its manifests. Idempotent.
    pub fn start(&self, cluster_id: Uuid) {
        let is_new = self.cluster.send_if_modified(|cluster| {
            let changed = *cluster != Some(cluster_id);
            *cluster = Some(cluster_id);
            changed
        });
        if is_new {
            tracing::info!(%cluster_id, "controller started");
            self.progress.change(|progress| {
                *progress = ControllerState {
                    cluster_id: Some(cluster_id),
                    ..ControllerState::default()
                }
            });
        }
    }

    /// Works from its start until the cluster is installed or lost.
    pub async fn run(&self) -> ControllerEnd {
        let mut started = self.cluster.subscribe();
        let Ok(cluster_id) = started
            .wait_for(Option::is_some)
            .await
            .map(|id| id.unwrap_or_default())
        else {
            return ControllerEnd::GivenUp("never started".into());
        };
        if self.progress.get().has_ended {
            return ControllerEnd::Installed;
        }
        loop {
            match self.pass(cluster_id).await {
                Ok(Some(end)) => {
                    self.upload_logs(cluster_id).await;
                    self.progress
                        .change(|progress| progress.has_ended = end == ControllerEnd::Installed);
                    tracing::info!(?end, "controller ended");
                    return end;
                }
                Ok(None) => {}
                Err(error) if error.status() == Some(404) => {
                    return ControllerEnd::GivenUp(error.chain());
                }
                Err(error) => tracing::error!(error = error.chain(), "controller"),
            }
            self.world.pace.sleep(INTERVAL).await;
        }
    }

    async fn pass(&self, cluster_id: Uuid) -> Result<Option<ControllerEnd>, Error> {
        let cluster = self
            .get("cluster", &format!("/v2/clusters/{cluster_id}"))
            .await?
            .json("cluster")?;
        let status = cluster["status"].as_str().unwrap_or_default();
        match status {
            "error" | "cancelled" => {
                let info = cluster["status_info"].as_str().unwrap_or_default();
                return Ok(Some(ControllerEnd::GivenUp(format!("{status}: {info}"))));
            }
            "installing" | "finalizing" | "installing-pending-user-action" | "installed" => {}
            _ => return Ok(None),
        }
        let are_nodes_done = self.report_nodes(cluster_id).await?;
        // The cluster may be installed before the last stages are reported.
        let is_finalized = self.progress.get().finalized >= FINALIZING.len();
        if !is_finalized && matches!(status, "finalizing" | "installed") {
            self.finalize(cluster_id).await?;
        }
        Ok((status == "installed" && are_nodes_done && is_finalized)
            .then_some(ControllerEnd::Installed))
    }

    /// Reports the stages of the nodes; true when all are done.
    async fn report_nodes(&self, cluster_id: Uuid) -> Result<bool, Error> {
        let path = format!("/v2/clusters/{cluster_id}/hosts?with-inventory=true");
        let hosts = self.get("hosts", &path).await?.json("hosts")?;
        let hosts = hosts.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut all_done = true;
        for host in hosts {
            let current = host["progress"]["current_stage"]
                .as_str()
                .unwrap_or_default();
            let is_single_node = hosts.len() == 1;
            let target = self
                .node_of(host)
                .map(|node| stage_of(node, is_single_node))
                .unwrap_or_default();
            for stage in ["Configuring", "Joined", "Done"] {
                if (stage == "Configuring" && is_single_node)
                    || order(stage) > order(target)
                    || order(stage) <= order(current)
                {
                    continue;
                }
                let id = |name: &str| host[name].as_str().unwrap_or_default().to_owned();
                tracing::info!(host = id("requested_hostname"), stage, "controller");
                report(&self.api, &id("infra_env_id"), &id("id"), stage, "").await?;
            }
            all_done &= target == "Done";
        }
        Ok(all_done)
    }

    /// Finds the node of a host: by its lower-case name, else by an address of its inventory. Source:
    /// openshift/assisted-installer.
    fn node_of(&self, host: &Value) -> Option<NodePhase> {
        let name = host["requested_hostname"]
            .as_str()
            .unwrap_or_default()
            .to_lowercase();
        let inventory: Value = host["inventory"]
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let has_address = |ip: &str| {
            inventory["interfaces"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|nic| {
                    ["ipv4_addresses", "ipv6_addresses"]
                        .iter()
                        .flat_map(|family| nic[family].as_array().into_iter().flatten())
                        .any(|a| a.as_str().is_some_and(|a| a.split('/').next() == Some(ip)))
                })
        };
        let machines = self.world.machines();
        let machine = machines
            .iter()
            .find(|machine| machine.hostname.to_lowercase() == name)
            .or_else(|| {
                machines
                    .iter()
                    .find(|machine| machine.addresses().any(|own| has_address(&own.to_string())))
            })?;
        Some(self.world.node(machine.index))
    }

    /// Runs the next finalizing stage, one per pass.
    async fn finalize(&self, cluster_id: Uuid) -> Result<(), Error> {
        let at = self.progress.get().finalized;
        let Some(stage) = FINALIZING.get(at) else {
            return Ok(());
        };
        let operators = self.operators(cluster_id).await?;
        let has_olm = operators
            .iter()
            .any(|operator| operator["operator_type"] == "olm");
        if has_olm || !stage.contains("olm operators") && !stage.contains("OLM") {
            tracing::info!(stage, "controller");
            let body = json!({ "finalizing_stage": stage });
            self.send(
                "finalizing",
                Method::PUT,
                &format!("/v2/clusters/{cluster_id}/progress"),
                &body,
            )
            .await?;
            self.do_stage(cluster_id, stage, &operators).await?;
        }
        self.progress.change(|progress| progress.finalized = at + 1);
        Ok(())
    }

    async fn do_stage(
        &self,
        cluster_id: Uuid,
        stage: &str,
        operators: &[Value],
    ) -> Result<(), Error> {
        match stage {
            "Waiting for cluster operators" => {
                self.operators_come_up(cluster_id, operators, "builtin")
                    .await
            }
            "Adding router ca" => {
                let path = format!("/v2/clusters/{cluster_id}/uploads/ingress-cert");
                self.send(
                    "ingress-cert",
                    Method::POST,
                    &path,
                    &Value::String(ingress_ca()?),
                )
                .await
                .map(drop)
            }
            "Applying olm manifests" => self.read_manifests(cluster_id, operators).await,
            "Waiting for olm operators csv" => {
                self.operators_come_up(cluster_id, operators, "olm").await
            }
            "Done" => {
                let body =
                    json!({ "is_success": true, "data": { "CLUSTER_OPERATORS_REPORT": [] } });
                let path = format!("/v2/clusters/{cluster_id}/actions/complete-installation");
                self.send("complete", Method::POST, &path, &body)
                    .await
                    .map(drop)
            }
            _ => Ok(()),
        }
    }

    async fn operators(&self, cluster_id: Uuid) -> Result<Vec<Value>, Error> {
        let list = self
            .get(
                "operators",
                &format!("/v2/clusters/{cluster_id}/monitored-operators"),
            )
            .await?;
        match list.json("monitored operators")? {
            Value::Array(operators) => Ok(operators),
            _ => Err(Error::invalid("monitored operators", "is no list")),
        }
    }

    async fn operators_come_up(
        &self,
        cluster_id: Uuid,
        operators: &[Value],
        kind: &str,
    ) -> Result<(), Error> {
        let path = format!("/v2/clusters/{cluster_id}/monitored-operators");
        for (status, info) in [
            ("progressing", "deployment is rolling out"),
            ("available", "all is well"),
        ] {
            for operator in operators
                .iter()
                .filter(|operator| operator["operator_type"] == kind)
            {
                let body = json!({ "name": operator["name"], "version": "4.18.0", "status": status, "status_info": info });
                self.send("operator", Method::PUT, &path, &body).await?;
            }
            self.world.pace.sleep(OPERATOR_TIME).await;
        }
        Ok(())
    }

    /// Downloads the manifests to apply; only OLM operators have some.
    async fn read_manifests(&self, cluster_id: Uuid, operators: &[Value]) -> Result<(), Error> {
        let path = format!("/v2/clusters/{cluster_id}/downloads");
        let kubeconfig = self
            .get(
                "kubeconfig",
                &format!("{path}/credentials?file_name=kubeconfig-noingress"),
            )
            .await?;
        let text = String::from_utf8_lossy(&kubeconfig.body);
        let has_ca = text.contains("certificate-authority-data:") || self.world.has_dummy_files;
        if !text.contains("clusters:") || !has_ca {
            return Err(Error::invalid("kubeconfig-noingress", "is no kubeconfig"));
        }
        if operators
            .iter()
            .any(|operator| operator["operator_type"] == "olm")
        {
            self.get(
                "manifests",
                &format!("{path}/files?file_name=custom_manifests.json"),
            )
            .await?
            .json("custom_manifests.json")?;
        }
        Ok(())
    }

    async fn upload_logs(&self, cluster_id: Uuid) {
        let upload = async {
            let progress = format!("/v2/clusters/{cluster_id}/logs-progress");
            self.send(
                "logs",
                Method::PUT,
                &progress,
                &json!({ "logs_state": "requested" }),
            )
            .await?;
            let archive = log_archive(&[(
                "controller/controller.log",
                "the controller has done its work\n",
            )])?;
            let call = ApiCall::new(
                "logs",
                Method::POST,
                format!("/v2/clusters/{cluster_id}/logs"),
            )
            .query("logs_type", &"controller")
            .upload("upfile", "controller_logs.tar.gz", &archive);
            self.api.send(RetryPolicy::Installer, call).await?;
            self.send(
                "logs",
                Method::PUT,
                &progress,
                &json!({ "logs_state": "completed" }),
            )
            .await
        };
        if let Err(error) = upload.await {
            tracing::warn!(error = error.chain(), "controller logs refused");
        }
    }

    async fn get(&self, kind: &'static str, path: &str) -> Result<ApiResponse, Error> {
        self.api
            .send(
                RetryPolicy::Installer,
                ApiCall::new(kind, Method::GET, path),
            )
            .await
    }

    async fn send(
        &self,
        kind: &'static str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<ApiResponse, Error> {
        self.api
            .send(
                RetryPolicy::Installer,
                ApiCall::new(kind, method, path).json(body),
            )
            .await
    }
}

/// Installation stage of a node's phase.
fn stage_of(node: NodePhase, is_single_node: bool) -> &'static str {
    match node {
        NodePhase::Live | NodePhase::Booting => "",
        NodePhase::Configuring if is_single_node => "",
        NodePhase::Configuring => "Configuring",
        NodePhase::Joined => "Joined",
        NodePhase::Ready => "Done",
    }
}

/// A self-signed certificate like that of a new cluster's router.
fn ingress_ca() -> Result<String, Error> {
    let make = || {
        let mut params = rcgen::CertificateParams::new(Vec::new())?;
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "ingress-operator@1795000000");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate()?;
        Ok::<_, rcgen::Error>(params.self_signed(&key)?.pem())
    };
    make().map_err(|e| Error::invalid("ingress certificate", e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ingress_certificate_is_pem() {
        assert!(
            ingress_ca()
                .unwrap()
                .starts_with("-----BEGIN CERTIFICATE-----")
        );
    }

    #[test]
    fn a_node_is_done_when_it_is_ready() {
        assert_eq!(stage_of(NodePhase::Ready, false), "Done");
        assert_eq!(stage_of(NodePhase::Configuring, true), "");
    }
}
