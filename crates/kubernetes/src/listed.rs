//! Records as a repair reads them: the members that it needs, and no others.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use model::Error;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::connect::KubernetesCluster;
use super::resources::{
    CLUSTER_VERSIONS, CSRS, HOSTS, INFRASTRUCTURES, MACHINES, NODES, ResourceKind,
    STATIC_POD_OPERATORS,
};

/// The annotation of a Machine that names its host, as `namespace/name`.
const HOST_ANNOTATION: &str = "metal3.io/BareMetalHost";
const ROLE_LABEL: &str = "machine.openshift.io/cluster-api-machine-role";
const CONTROL_PLANE_LABELS: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedNode {
    pub name: String,
    /// Condition `Ready`.
    pub is_ready: bool,
    /// Message of a node that is not ready.
    pub reason: String,
    /// No pods are scheduled on it.
    pub is_cordoned: bool,
    pub is_control_plane: bool,
    pub addresses: Vec<NodeAddress>,
    /// RFC 3339.
    pub created_at: String,
}

/// An address of a node or machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    /// `InternalIP`, `Hostname`, `InternalDNS` and others.
    #[serde(rename = "type")]
    pub kind: String,
    pub address: String,
}

/// A Machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedMachine {
    pub name: String,
    /// As `Running`.
    pub phase: String,
    /// As `master`.
    pub role: String,
    pub is_deleting: bool,
    pub addresses: Vec<NodeAddress>,
    /// Its host, as `namespace/name`.
    pub host: Option<String>,
    pub node: Option<String>,
    /// Names of the hooks that hold its deletion before the drain.
    pub pre_drain_hooks: Vec<String>,
}

/// A BareMetalHost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedHost {
    pub name: String,
    /// Provisioning state; empty for a host that no controller has seen.
    pub state: String,
    /// Name of the record that uses it.
    pub consumer: Option<String>,
    /// Name of the Secret with its BMC's credentials.
    pub credentials: Option<String>,
    pub is_deleting: bool,
    /// The wanted power state.
    pub is_online: bool,
    /// The seen one, where the BMC was asked.
    pub is_powered_on: Option<bool>,
    pub error_kind: String,
    pub error: String,
    /// RFC 3339.
    pub created_at: String,
}

/// A certificate signing request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListedCsr {
    pub name: String,
    pub signer: String,
    pub requestor: String,
    /// Neither approved nor denied.
    pub is_pending: bool,
    /// RFC 3339.
    pub created_at: String,
}

/// An operator that runs static pods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorView {
    /// Kind of its record, as `KubeAPIServer`.
    pub kind: &'static str,
    /// Current revision by node.
    pub revisions: BTreeMap<String, i64>,
    /// The revision that all nodes shall have.
    pub latest_revision: i64,
    /// Conditions by type: whether each is true, and its message.
    pub conditions: BTreeMap<String, (bool, String)>,
}

impl OperatorView {
    /// Whether every node has the latest revision.
    pub fn is_on_one_revision(&self) -> bool {
        let revisions = self.revisions.values();
        self.latest_revision > 0
            && revisions
                .into_iter()
                .all(|one| *one == self.latest_revision)
    }
}

/// Upgrade and topology of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlatformView {
    /// Version of the platform; empty for a cluster of plain Kubernetes.
    pub version: String,
    /// Message of an upgrade under way.
    pub upgrade: Option<String>,
    /// As `HighlyAvailable`; empty where the cluster has no such record.
    pub control_plane_topology: String,
}

impl KubernetesCluster {
    /// Errors: as [`Self::list`].
    pub async fn nodes(&self) -> Result<Vec<ListedNode>, Error> {
        self.listed(&NODES, node).await
    }

    /// None where no Machine API is.
    ///
    /// Errors: as [`Self::list`].
    pub async fn machines(&self) -> Result<Option<Vec<ListedMachine>>, Error> {
        self.listed_where_known(&MACHINES, machine).await
    }

    /// None where hosts are not managed.
    ///
    /// Errors: as [`Self::list`].
    pub async fn hosts(&self) -> Result<Option<Vec<ListedHost>>, Error> {
        self.listed_where_known(&HOSTS, host).await
    }

    /// Errors: as [`Self::list`].
    pub async fn csrs(&self) -> Result<Vec<ListedCsr>, Error> {
        self.listed(&CSRS, csr).await
    }

    /// Operators that run static pods; empty on a cluster of plain Kubernetes.
    ///
    /// Errors: as [`Self::list`].
    pub async fn static_pod_operators(&self) -> Result<Vec<OperatorView>, Error> {
        let mut operators = Vec::new();
        for kind in &STATIC_POD_OPERATORS {
            let record = self.find(kind, "cluster").await?;
            operators.extend(record.map(|record| operator(kind, &record)));
        }
        Ok(operators)
    }

    /// Errors: as [`Self::list`].
    pub async fn platform(&self) -> Result<PlatformView, Error> {
        let version = self.find(&CLUSTER_VERSIONS, "version").await?;
        let infrastructure = self.find(&INFRASTRUCTURES, "cluster").await?;
        Ok(platform(version.as_ref(), infrastructure.as_ref()))
    }

    async fn listed<T>(
        &self,
        kind: &ResourceKind,
        view: fn(&DynamicObject) -> T,
    ) -> Result<Vec<T>, Error> {
        let records = self.listed_where_known(kind, view).await?;
        Ok(records.unwrap_or_default())
    }

    async fn listed_where_known<T>(
        &self,
        kind: &ResourceKind,
        view: fn(&DynamicObject) -> T,
    ) -> Result<Option<Vec<T>>, Error> {
        self.list(kind, view).await
    }
}

/// A condition of a record's status.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    message: String,
}

fn name(record: &DynamicObject) -> String {
    record.metadata.name.clone().unwrap_or_default()
}

fn created_at(record: &DynamicObject) -> String {
    let created = record.metadata.creation_timestamp.as_ref();
    created.map(|at| at.0.to_string()).unwrap_or_default()
}

fn label<'a>(record: &'a DynamicObject, key: &str) -> Option<&'a str> {
    let labels = record.metadata.labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

/// The member at a JSON pointer; the default where it is missing, or of another form.
pub fn member<T: Default + DeserializeOwned>(record: &DynamicObject, pointer: &str) -> T {
    let found = record.data.pointer(pointer);
    found
        .and_then(|value| T::deserialize(value).ok())
        .unwrap_or_default()
}

pub(super) fn conditions(record: &DynamicObject) -> BTreeMap<String, (bool, String)> {
    let conditions: Vec<Condition> = member(record, "/status/conditions");
    let conditions = conditions.into_iter();
    conditions
        .map(|one| (one.r#type, (one.status == "True", one.message)))
        .collect()
}

fn node(record: &DynamicObject) -> ListedNode {
    let mut conditions = conditions(record);
    let (is_ready, message) = conditions.remove("Ready").unwrap_or_default();
    ListedNode {
        name: name(record),
        is_ready,
        reason: if is_ready { String::new() } else { message },
        is_cordoned: member(record, "/spec/unschedulable"),
        is_control_plane: CONTROL_PLANE_LABELS
            .iter()
            .any(|key| label(record, key).is_some()),
        addresses: member(record, "/status/addresses"),
        created_at: created_at(record),
    }
}

fn machine(record: &DynamicObject) -> ListedMachine {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Hook {
        name: String,
    }
    let hooks: Vec<Hook> = member(record, "/spec/lifecycleHooks/preDrain");
    let annotations = record.metadata.annotations.as_ref();
    ListedMachine {
        name: name(record),
        phase: member(record, "/status/phase"),
        role: label(record, ROLE_LABEL).unwrap_or_default().to_owned(),
        is_deleting: record.metadata.deletion_timestamp.is_some(),
        addresses: member(record, "/status/addresses"),
        host: annotations.and_then(|all| all.get(HOST_ANNOTATION).cloned()),
        node: member(record, "/status/nodeRef/name"),
        pre_drain_hooks: hooks.into_iter().map(|hook| hook.name).collect(),
    }
}

fn host(record: &DynamicObject) -> ListedHost {
    ListedHost {
        name: name(record),
        state: member(record, "/status/provisioning/state"),
        consumer: member(record, "/spec/consumerRef/name"),
        credentials: member(record, "/spec/bmc/credentialsName"),
        is_deleting: record.metadata.deletion_timestamp.is_some(),
        is_online: member(record, "/spec/online"),
        is_powered_on: member(record, "/status/poweredOn"),
        error_kind: member(record, "/status/errorType"),
        error: member(record, "/status/errorMessage"),
        created_at: created_at(record),
    }
}

pub(super) fn csr(record: &DynamicObject) -> ListedCsr {
    let conditions = conditions(record);
    let decided = ["Approved", "Denied", "Failed"];
    ListedCsr {
        name: name(record),
        signer: member(record, "/spec/signerName"),
        requestor: member(record, "/spec/username"),
        is_pending: !decided.iter().any(|one| conditions.contains_key(*one)),
        created_at: created_at(record),
    }
}

fn operator(kind: &ResourceKind, record: &DynamicObject) -> OperatorView {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct NodeStatus {
        node_name: String,
        current_revision: i64,
    }
    let nodes: Vec<NodeStatus> = member(record, "/status/nodeStatuses");
    let revisions = nodes.into_iter();
    OperatorView {
        kind: kind.kind,
        revisions: revisions
            .map(|node| (node.node_name, node.current_revision))
            .collect(),
        latest_revision: member(record, "/status/latestAvailableRevision"),
        conditions: conditions(record),
    }
}

fn platform(
    version: Option<&DynamicObject>,
    infrastructure: Option<&DynamicObject>,
) -> PlatformView {
    let upgrade = version.and_then(|record| conditions(record).remove("Progressing"));
    let topology = "/status/controlPlaneTopology";
    PlatformView {
        version: version
            .map(|record| member(record, "/status/desired/version"))
            .unwrap_or_default(),
        upgrade: upgrade.and_then(|(is_progressing, message)| is_progressing.then_some(message)),
        control_plane_topology: infrastructure
            .map(|record| member(record, topology))
            .unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_node_that_is_not_ready_has_a_reason() {
        let found = node(&record(json!({
            "metadata": {
                "name": "master-1",
                "labels": { "node-role.kubernetes.io/control-plane": "" },
                "creationTimestamp": "2026-01-02T03:04:05Z",
            },
            "spec": { "unschedulable": true },
            "status": {
                "conditions": [
                    { "type": "MemoryPressure", "status": "Unknown" },
                    { "type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status." },
                ],
                "addresses": [{ "type": "InternalIP", "address": "192.0.2.11" }],
            },
        })));
        let expected = ListedNode {
            name: "master-1".to_owned(),
            is_ready: false,
            reason: "Kubelet stopped posting node status.".to_owned(),
            is_cordoned: true,
            is_control_plane: true,
            addresses: vec![NodeAddress {
                kind: "InternalIP".to_owned(),
                address: "192.0.2.11".to_owned(),
            }],
            created_at: "2026-01-02T03:04:05Z".to_owned(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn members_of_another_form_are_left_out() {
        let strange = record(json!({
            "metadata": { "name": "x" },
            "spec": { "unschedulable": "yes", "online": 1, "consumerRef": [] },
            "status": { "conditions": {}, "addresses": "192.0.2.1", "phase": 3 },
        }));
        assert_eq!(node(&strange).name, "x");
        assert_eq!(machine(&strange).phase, "");
        assert_eq!(host(&strange).consumer, None);
        assert!(csr(&strange).is_pending);
    }

    #[test]
    fn hosts_machines_and_requests_are_read() {
        let found = machine(&record(json!({
            "metadata": {
                "name": "demo-master-1",
                "labels": { ROLE_LABEL: "master" },
                "annotations": { HOST_ANNOTATION: "openshift-machine-api/master-1" },
                "deletionTimestamp": "2026-01-02T03:04:05Z",
            },
            "spec": { "lifecycleHooks": { "preDrain": [{ "name": "EtcdQuorumOperator", "owner": "clusteroperator/etcd" }] } },
            "status": { "phase": "Deleting", "nodeRef": { "kind": "Node", "name": "master-1" } },
        })));
        assert!(found.is_deleting);
        assert_eq!(
            found.host.as_deref(),
            Some("openshift-machine-api/master-1")
        );
        assert_eq!(found.node.as_deref(), Some("master-1"));
        assert_eq!(found.pre_drain_hooks, ["EtcdQuorumOperator"]);
        let found = host(&record(json!({
            "metadata": { "name": "master-1" },
            "spec": { "online": true, "consumerRef": { "name": "demo-master-1" } },
            "status": { "provisioning": { "state": "registering" }, "errorType": "registration error", "errorMessage": "no answer", "poweredOn": false },
        })));
        assert_eq!(found.state, "registering");
        assert_eq!((found.is_online, found.is_powered_on), (true, Some(false)));
        let found = csr(&record(json!({
            "metadata": { "name": "csr-x" },
            "spec": { "signerName": "kubernetes.io/kubelet-serving", "username": "system:node:master-1" },
            "status": { "conditions": [{ "type": "Approved", "status": "True" }] },
        })));
        assert!(!found.is_pending);
    }

    #[test]
    fn an_operator_that_rolls_out_is_not_on_one_revision() {
        let status = |current: i64| {
            record(json!({
                "metadata": { "name": "cluster" },
                "status": {
                    "latestAvailableRevision": 7,
                    "nodeStatuses": [
                        { "nodeName": "master-0", "currentRevision": 7 },
                        { "nodeName": "master-1", "currentRevision": current, "targetRevision": 7 },
                    ],
                },
            }))
        };
        let kind = &STATIC_POD_OPERATORS[0];
        assert!(operator(kind, &status(7)).is_on_one_revision());
        assert!(!operator(kind, &status(6)).is_on_one_revision());
        assert!(!OperatorView::default().is_on_one_revision());
    }

    #[test]
    fn an_upgrade_under_way_is_seen() {
        let version = record(json!({
            "metadata": { "name": "version" },
            "status": {
                "desired": { "version": "4.18.30" },
                "conditions": [{ "type": "Progressing", "status": "True", "message": "Working towards 4.18.30" }],
            },
        }));
        let infrastructure = record(json!({
            "metadata": { "name": "cluster" },
            "status": { "controlPlaneTopology": "DualReplica" },
        }));
        let found = platform(Some(&version), Some(&infrastructure));
        assert_eq!(found.upgrade.as_deref(), Some("Working towards 4.18.30"));
        assert_eq!(found.control_plane_topology, "DualReplica");
        assert_eq!(platform(None, None), PlatformView::default());
    }
}
