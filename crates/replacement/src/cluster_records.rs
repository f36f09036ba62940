//! The effects of a replacement on the records of a cluster.

use async_trait::async_trait;
use kubernetes::{
    BMC_SECRETS, CertificateRequest, ETCDS, HOSTS, KubernetesCluster, MACHINE_CONFIG_POOLS,
    MACHINES, NODES, ResourceKind, SECRETS,
};
use model::Error;
use serde_json::{Value, json};

use crate::cluster_view::{self, ETCD, POOL, ROLLOUT_OVERRIDE};
use crate::{KubernetesSide, KubernetesView, RecordKind, ReplacementCase, WorldError};

/// Kinds of records that a replacement creates.
const CREATED: [ResourceKind; 3] = [BMC_SECRETS, HOSTS, MACHINES];

#[async_trait]
impl KubernetesSide for KubernetesCluster {
    async fn observe(&self) -> Result<KubernetesView, WorldError> {
        let view = cluster_view::read(self).await;
        view.map_err(|error| failed("reading the records of the cluster", &error))
    }

    async fn node_records(&self, case: &ReplacementCase) -> Result<Vec<Value>, WorldError> {
        let records = node_records(self, case).await;
        records.map_err(|error| failed("reading the records of the node", &error))
    }

    async fn create(&self, record: &Value) -> Result<(), WorldError> {
        let doing = format!(
            "creating {} {}",
            record["kind"].as_str().unwrap_or_default(),
            record["metadata"]["name"].as_str().unwrap_or_default()
        );
        let created = create(self, record).await;
        created.map_err(|error| failed(&doing, &error))
    }

    async fn delete(&self, kind: RecordKind, name: &str) -> Result<(), WorldError> {
        let kind = resource(kind);
        let deleted = self.delete_record(&kind, name).await;
        let doing = format!("deleting {} {name}", kind.kind);
        deleted.map_err(|error| failed(&doing, &error))
    }

    async fn drop_finalizers(&self, kind: RecordKind, name: &str) -> Result<(), WorldError> {
        let kind = resource(kind);
        let dropped = KubernetesCluster::drop_finalizers(self, &kind, name).await;
        let doing = format!("removing the finalizers of {} {name}", kind.kind);
        dropped.map_err(|error| failed(&doing, &error))
    }

    async fn pause_pool(&self, paused: bool) -> Result<(), WorldError> {
        let patch = json!({ "spec": { "paused": paused } });
        let patched = self.merge_record(&MACHINE_CONFIG_POOLS, POOL, &patch).await;
        let doing = if paused { "pausing" } else { "resuming" };
        let doing = format!("{doing} MachineConfigPool {POOL}");
        patched.map_err(|error| failed(&doing, &error))
    }

    async fn set_rollout_override(&self, value: &Value) -> Result<(), WorldError> {
        let patch =
            json!({ "spec": { "unsupportedConfigOverrides": { ROLLOUT_OVERRIDE: value } } });
        let patched = self.merge_record(&ETCDS, ETCD, &patch).await;
        patched.map_err(|error| failed("changing the override of etcd's operator", &error))
    }

    async fn approve_csr(
        &self,
        request: &CertificateRequest,
        reason: &str,
    ) -> Result<(), WorldError> {
        let approved = approve(self, request, reason).await;
        let doing = format!("approving the certificate request {}", request.name);
        approved.map_err(|error| failed(&doing, &error))
    }
}

fn failed(doing: &str, error: &Error) -> WorldError {
    WorldError {
        doing: doing.to_owned(),
        reason: error.chain(),
        is_transient: matches!(error, Error::Unavailable { .. }),
    }
}

fn resource(kind: RecordKind) -> ResourceKind {
    match kind {
        RecordKind::EtcdSecret => SECRETS,
        RecordKind::BareMetalHost => HOSTS,
        RecordKind::Machine => MACHINES,
        RecordKind::Node => NODES,
    }
}

async fn node_records(
    cluster: &KubernetesCluster,
    case: &ReplacementCase,
) -> Result<Vec<Value>, Error> {
    let mut records = Vec::new();
    if let Some(name) = &case.host
        && let Some(host) = cluster.find(&HOSTS, name).await?
    {
        let credentials = host.data.pointer("/spec/bmc/credentialsName");
        if let Some(name) = credentials.and_then(Value::as_str) {
            let secret = cluster.find(&BMC_SECRETS, name).await?;
            records.extend(secret.map(|secret| BMC_SECRETS.content(&secret)));
        }
        records.push(HOSTS.content(&host));
    }
    if let Some(name) = &case.machine {
        let machine = cluster.find(&MACHINES, name).await?;
        records.extend(machine.map(|machine| MACHINES.content(&machine)));
    }
    Ok(records)
}

async fn create(cluster: &KubernetesCluster, record: &Value) -> Result<(), Error> {
    let wanted = (record["apiVersion"].as_str(), record["kind"].as_str());
    let kind = CREATED
        .iter()
        .find(|it| (Some(it.api_version().as_str()), Some(it.kind)) == wanted)
        .ok_or_else(|| {
            Error::invalid(
                "record",
                format!(
                    "{} {}: expected a Secret, BareMetalHost or Machine",
                    wanted.0.unwrap_or("no apiVersion"),
                    wanted.1.unwrap_or("no kind"),
                ),
            )
        })?;
    cluster.create_record(kind, record).await
}

async fn approve(
    cluster: &KubernetesCluster,
    request: &CertificateRequest,
    reason: &str,
) -> Result<(), Error> {
    let pending = cluster.pending_requests().await?;
    let same = pending.iter().find(|it| it.request == *request);
    match same {
        Some(same) => cluster.approve(same, reason).await,
        // Decided meanwhile, or replaced: the next observation shows it.
        None => Ok(()),
    }
}
