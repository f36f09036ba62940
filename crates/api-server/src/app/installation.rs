//! Use cases of an installation: start, cancel, reset, and the controller's reports.

use std::sync::Arc;

use cluster_files::{FileStore, KEPT_BY_RESET, LOGS};
use model::Error;
use model::cluster::{
    Cluster, ClusterCredentials, ClusterFinalizingProgress, ClusterStatus, CompletionParams,
};
use model::events::EventSeverity;
use model::ids::ClusterId;
use model::operators::OperatorStatus;
use preparation::kubeconfig;
use rules::NewEvent;
use rules::cluster::Trigger;
use serde_json::Value;

use super::events::Events;
use super::files::{self, KUBEADMIN_PASSWORD, KUBECONFIG, KUBECONFIG_NOINGRESS};
use super::{ClusterStore, ClusterTransaction, Scope, render, request};

/// Member of a completion's data in which the controller reports operators.
const OPERATORS_REPORT: &str = "CLUSTER_OPERATORS_REPORT";

/// Installations of clusters.
#[derive(Debug)]
pub(crate) struct Installations {
    pub(super) clusters: Arc<ClusterStore>,
    pub(super) files: FileStore,
    pub(super) events: Arc<Events>,
}

impl Installations {
    /// Starts the installation; the preparation runs in the background.
    ///
    /// Errors: Conflict – the cluster is not ready; Invalid – a host is not ready.
    pub(crate) async fn install(&self, id: ClusterId) -> Result<Cluster, Error> {
        let cluster = trigger(&self.clusters, "install cluster", id, Trigger::Prepare).await?;
        if request::is_dry_run() {
            return Ok(cluster);
        }
        for name in self.files.list(id, LOGS).await? {
            self.files.delete(id, name.as_str()).await?;
        }
        Ok(cluster)
    }

    /// Cancels the installation.
    pub(crate) async fn cancel(&self, id: ClusterId) -> Result<Cluster, Error> {
        let result = trigger(&self.clusters, "cancel installation", id, Trigger::Cancel).await;
        self.record_refusal(id, "cancel_installation_failed", &result)
            .await?;
        result
    }

    /// Resets the installation: the cluster waits for its hosts again.
    pub(crate) async fn reset(&self, id: ClusterId) -> Result<Cluster, Error> {
        let result = trigger(&self.clusters, "reset cluster", id, Trigger::Reset).await;
        self.record_refusal(id, "reset_installation_failed", &result)
            .await?;
        if result.is_ok() && !request::is_dry_run() {
            self.files.delete_cluster_except(id, KEPT_BY_RESET).await?;
        }
        result
    }

    async fn record_refusal(
        &self,
        id: ClusterId,
        name: &'static str,
        result: &Result<Cluster, Error>,
    ) -> Result<(), Error> {
        let Err(error @ Error::Conflict { .. }) = result else {
            return Ok(());
        };
        let text = format!("{}: {error}", name.replace('_', " "));
        let event = NewEvent::new(name, EventSeverity::Error, text)
            .cluster(id)
            .prop("error", error);
        self.events.record(&[event]).await
    }

    /// Records the controller's completion report. The state does not depend on it.
    pub(crate) async fn complete(
        &self,
        id: ClusterId,
        params: &CompletionParams,
    ) -> Result<Cluster, Error> {
        let failed = failed_operators(params);
        let decide = |change: &mut ClusterTransaction| {
            if let Some(report) = &failed {
                let text = format!("Operators that are not available: {report}");
                let event = NewEvent::new("cluster_operator_report", EventSeverity::Info, text)
                    .cluster(id)
                    .prop("report", report);
                change.events.push(event);
            }
            change.refresh();
            Ok(())
        };
        let ((), stored) = self
            .clusters
            .change("complete installation", Scope::Cluster(id), decide)
            .await?;
        Ok(render::cluster(&stored.snapshot, true))
    }

    /// Stores the finalizing stage that the controller reached.
    ///
    /// Errors: Invalid – no stage, or the cluster is not being installed.
    pub(crate) async fn report_finalizing(
        &self,
        id: ClusterId,
        progress: &ClusterFinalizingProgress,
    ) -> Result<(), Error> {
        let Some(stage) = progress.finalizing_stage else {
            return Err(Error::invalid(
                "finalizing_stage",
                "is missing: name the stage that was reached",
            ));
        };
        let decide = |change: &mut ClusterTransaction| {
            let cluster = &mut change.snapshot.cluster;
            let new = rules::host::progress::report_finalizing(cluster, stage, change.now)?;
            change.events.extend(new);
            change.refresh();
            Ok(())
        };
        self.clusters
            .change("report finalizing", Scope::Cluster(id), decide)
            .await
            .map(drop)
    }

    /// Adds the certificate authority of the cluster's ingress to its kubeconfig.
    ///
    /// Errors: Invalid – no PEM certificate, or the cluster is neither finalizing nor installed.
    pub(crate) async fn upload_ingress_cert(&self, id: ClusterId, pem: &str) -> Result<(), Error> {
        let stored = self.clusters.stored(id).await?;
        let status = stored.snapshot.cluster.status;
        if !matches!(status, ClusterStatus::Finalizing | ClusterStatus::Installed) {
            return Err(Error::invalid(
                "ingress-cert-params",
                format!(
                    "cluster {id} is {status}: the certificate is accepted while it is finalizing or installed"
                ),
            ));
        }
        if pem.trim().is_empty() {
            return Err(Error::invalid(
                "ingress-cert-params",
                "is empty: send the PEM certificates of the ingress",
            ));
        }
        let stored = self.files.get(id, KUBECONFIG_NOINGRESS).await?;
        let text = String::from_utf8(stored.bytes().await?)
            .map_err(|error| Error::internal("reading the stored kubeconfig", error))?;
        let kubeconfig = kubeconfig::with_ingress_ca(&text, pem)?;
        self.files.put(id, KUBECONFIG, kubeconfig).await?;
        let decide = |change: &mut ClusterTransaction| {
            change.snapshot.files.kubeconfig = true;
            change.refresh();
            Ok(())
        };
        self.clusters
            .change("upload ingress certificate", Scope::Cluster(id), decide)
            .await
            .map(drop)
    }

    /// Credentials of the installed cluster's administrator.
    ///
    /// Errors: Conflict – the console is not available yet.
    pub(crate) async fn credentials(&self, id: ClusterId) -> Result<ClusterCredentials, Error> {
        let stored = self.clusters.stored(id).await?;
        let cluster = &stored.snapshot.cluster;
        files::check_downloadable(cluster, KUBEADMIN_PASSWORD)?;
        let console = cluster
            .monitored_operators
            .iter()
            .find(|operator| operator.name == "console");
        if console.is_some_and(|operator| operator.status != Some(OperatorStatus::Available)) {
            return Err(Error::conflict(format!(
                "the console of cluster {id} is not available yet: retry later"
            )));
        }
        let password = files::cluster_file(&self.files, cluster, KUBEADMIN_PASSWORD)
            .await?
            .bytes()
            .await?;
        let password = String::from_utf8(password)
            .map_err(|error| Error::internal("reading the kubeadmin password", error))?;
        Ok(ClusterCredentials {
            username: "kubeadmin".to_owned(),
            password: password.trim().to_owned(),
            console_url: format!(
                "https://console-openshift-console.apps.{}.{}",
                cluster.name, cluster.base_dns_domain
            ),
        })
    }
}

/// Applies a trigger to the state of a cluster.
///
/// Errors: Conflict – its status forbids it.
pub(super) async fn trigger(
    clusters: &Arc<ClusterStore>,
    name: &'static str,
    id: ClusterId,
    trigger: Trigger,
) -> Result<Cluster, Error> {
    let decide = |change: &mut ClusterTransaction| {
        let new =
            rules::cluster::apply(&mut change.snapshot, trigger, &clusters.policy, change.now)?;
        change.events.extend(new);
        if trigger == Trigger::Reset {
            change.snapshot.files.kubeconfig = false;
        }
        Ok(())
    };
    let ((), stored) = clusters.change(name, Scope::Cluster(id), decide).await?;
    Ok(render::cluster(&stored.snapshot, true))
}

/// Names of the operators that the controller reports as failed.
fn failed_operators(params: &CompletionParams) -> Option<String> {
    if params.is_success {
        return None;
    }
    let reported = params.data.as_ref()?.get(OPERATORS_REPORT)?.as_array()?;
    let is_failed = |operator: &&Value| operator["status"] != OperatorStatus::Available.as_str();
    let names: Vec<&str> = reported
        .iter()
        .filter(is_failed)
        .filter_map(|one| one["name"].as_str())
        .collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failed_operators_are_reported() {
        let params: CompletionParams = serde_json::from_value(serde_json::json!({
            "is_success": false,
            "data": { OPERATORS_REPORT: [{"name": "dns", "status": "available"}, {"name": "etcd", "status": "failed"}] }
        }))
        .unwrap();
        assert_eq!(failed_operators(&params).as_deref(), Some("etcd"));
    }
}
