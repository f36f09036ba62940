//! The kinds of records that a repair reads and writes, in one place: their groups are those of OpenShift and metal3.

use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};

/// Namespace of machines and hosts.
pub const MACHINES_NAMESPACE: &str = "openshift-machine-api";
/// Namespace of etcd.
pub const ETCD_NAMESPACE: &str = "openshift-etcd";

/// A kind of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResourceKind {
    /// Empty: the core group.
    pub group: &'static str,
    /// As `v1`.
    pub version: &'static str,
    /// As `Node`.
    pub kind: &'static str,
    /// As `nodes`.
    pub plural: &'static str,
    /// Namespace in which a repair looks for them; none for kinds without namespaces.
    pub namespace: Option<&'static str>,
}

impl ResourceKind {
    const fn cluster(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            namespace: None,
        }
    }

    /// The kind in another namespace.
    #[must_use]
    pub const fn within(self, namespace: &'static str) -> Self {
        Self {
            namespace: Some(namespace),
            ..self
        }
    }

    /// `v1`, or `group/v1`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The content of a record with its kind: lists and reads of some servers leave it out.
    pub fn content(&self, record: &DynamicObject) -> Value {
        let mut value = record.data.clone();
        value["apiVersion"] = self.api_version().into();
        value["kind"] = self.kind.into();
        value["metadata"] = json!(record.metadata);
        value
    }

    pub(super) fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: self.api_version(),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }
}

/// Nodes.
pub const NODES: ResourceKind = ResourceKind::cluster("", "v1", "Node", "nodes");
/// Secrets of etcd.
pub const SECRETS: ResourceKind =
    ResourceKind::cluster("", "v1", "Secret", "secrets").within(ETCD_NAMESPACE);
/// Secrets of BMCs.
pub const BMC_SECRETS: ResourceKind = SECRETS.within(MACHINES_NAMESPACE);
/// Settings of etcd.
pub const CONFIG_MAPS: ResourceKind =
    ResourceKind::cluster("", "v1", "ConfigMap", "configmaps").within(ETCD_NAMESPACE);
/// Certificate signing requests.
pub const CSRS: ResourceKind = ResourceKind::cluster(
    "certificates.k8s.io",
    "v1",
    "CertificateSigningRequest",
    "certificatesigningrequests",
);
/// Hosts with their BMCs.
pub const HOSTS: ResourceKind =
    ResourceKind::cluster("metal3.io", "v1alpha1", "BareMetalHost", "baremetalhosts")
        .within(MACHINES_NAMESPACE);
/// Machines.
pub const MACHINES: ResourceKind =
    ResourceKind::cluster("machine.openshift.io", "v1beta1", "Machine", "machines")
        .within(MACHINES_NAMESPACE);
/// Configurations of nodes, by role.
pub(super) const MACHINE_CONFIGS: ResourceKind = ResourceKind::cluster(
    "machineconfiguration.openshift.io",
    "v1",
    "MachineConfig",
    "machineconfigs",
);
/// Namespace that every cluster has.
const SYSTEM_NAMESPACE: &str = "kube-system";
/// Leases.
pub(super) const LEASES: ResourceKind =
    ResourceKind::cluster("coordination.k8s.io", "v1", "Lease", "leases").within(SYSTEM_NAMESPACE);
/// Progress of repairs, beside their lease.
pub(super) const PROGRESS: ResourceKind = CONFIG_MAPS.within(SYSTEM_NAMESPACE);
/// Programs that run in pods.
pub(super) const DEPLOYMENTS: ResourceKind =
    ResourceKind::cluster("apps", "v1", "Deployment", "deployments").within(MACHINES_NAMESPACE);
/// Operators of the platform.
pub(super) const CLUSTER_OPERATORS: ResourceKind = ResourceKind::cluster(
    "config.openshift.io",
    "v1",
    "ClusterOperator",
    "clusteroperators",
);
/// Settings of etcd's operator.
pub const ETCDS: ResourceKind =
    ResourceKind::cluster("operator.openshift.io", "v1", "Etcd", "etcds");
/// Roll-outs of node configurations, by role.
pub const MACHINE_CONFIG_POOLS: ResourceKind = ResourceKind::cluster(
    "machineconfiguration.openshift.io",
    "v1",
    "MachineConfigPool",
    "machineconfigpools",
);
/// Operators of the platform that run static pods.
pub(super) const STATIC_POD_OPERATORS: [ResourceKind; 4] = [
    ETCDS,
    ResourceKind::cluster(
        "operator.openshift.io",
        "v1",
        "KubeAPIServer",
        "kubeapiservers",
    ),
    ResourceKind::cluster(
        "operator.openshift.io",
        "v1",
        "KubeControllerManager",
        "kubecontrollermanagers",
    ),
    ResourceKind::cluster(
        "operator.openshift.io",
        "v1",
        "KubeScheduler",
        "kubeschedulers",
    ),
];
pub(super) const CLUSTER_VERSIONS: ResourceKind = ResourceKind::cluster(
    "config.openshift.io",
    "v1",
    "ClusterVersion",
    "clusterversions",
);
pub(super) const INFRASTRUCTURES: ResourceKind = ResourceKind::cluster(
    "config.openshift.io",
    "v1",
    "Infrastructure",
    "infrastructures",
);
