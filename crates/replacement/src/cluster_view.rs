//! The Kubernetes side of a replacement, as the cluster's records show it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use kube::core::DynamicObject;
use kubernetes::{
    CONFIG_MAPS, ETCDS, KubernetesCluster, ListedHost, ListedMachine, ListedNode,
    MACHINE_CONFIG_POOLS, NodeAddress, OperatorView, SECRETS, member,
};
use model::Error;
use serde::Deserialize;
use serde_json::Value;

use crate::{HostView, KubernetesView, MachineView, NodeView, RolloutView};

/// The pool of the control plane.
pub(super) const POOL: &str = "master";
/// The one record of etcd's operator.
pub(super) const ETCD: &str = "cluster";
/// Member of its overrides with which it rolls out although a failure would cost quorum.
/// Source: openshift/cluster-etcd-operator, pkg/operator/ceohelpers.
pub(super) const ROLLOUT_OVERRIDE: &str = "useUnsupportedUnsafeNonHANonProductionUnstableEtcd";
/// ConfigMap with the addresses of the voters, as etcd's operator knows them.
const ENDPOINTS: &str = "etcd-endpoints";
/// ConfigMap with the install-config.
const INSTALLATION: &str = "cluster-config-v1";
const INSTALLATION_NAMESPACE: &str = "kube-system";
const CONTROL_PLANE_ROLE: &str = "master";

/// The part of an install-config that a replacement reads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InstalledTopology {
    control_plane: InstalledPool,
}

#[derive(Deserialize)]
struct InstalledPool {
    replicas: usize,
}

/// Reads all that a replacement needs.
///
/// Errors: Conflict – the install-config is missing or cannot be read; as [`KubernetesCluster::list`].
pub(super) async fn read(cluster: &KubernetesCluster) -> Result<KubernetesView, Error> {
    let installation = CONFIG_MAPS.within(INSTALLATION_NAMESPACE);
    let (platform, installation, etcd, pool) = tokio::try_join!(
        cluster.platform(),
        cluster.find(&installation, INSTALLATION),
        cluster.find(&ETCDS, ETCD),
        cluster.find(&MACHINE_CONFIG_POOLS, POOL),
    )?;
    let (operators, nodes, machines, hosts) = tokio::try_join!(
        cluster.static_pod_operators(),
        cluster.nodes(),
        cluster.machines(),
        cluster.hosts(),
    )?;
    let (endpoints, secrets, pending) = tokio::try_join!(
        cluster.find(&CONFIG_MAPS, ENDPOINTS),
        cluster.names(&SECRETS),
        cluster.pending_requests(),
    )?;
    let machines = machines.unwrap_or_default();
    Ok(KubernetesView {
        topology: platform.control_plane_topology,
        desired_replicas: replicas(installation.as_ref())?,
        upgrade: platform.upgrade,
        has_machine_api: machines.iter().any(|it| it.phase == "Running"),
        is_operator_managed: etcd.as_ref().is_some_and(is_managed),
        etcd_endpoints: endpoints.as_ref().map(addresses).unwrap_or_default(),
        rollouts: operators.into_iter().map(rollout).collect(),
        rollout_override: etcd.as_ref().map(rollout_override).unwrap_or_default(),
        is_pool_paused: pool.is_some_and(|pool| member(&pool, "/spec/paused")),
        nodes: nodes.into_iter().map(node).collect(),
        machines: machines
            .into_iter()
            .filter(|it| it.role == CONTROL_PLANE_ROLE)
            .map(machine)
            .collect(),
        hosts: hosts.unwrap_or_default().into_iter().map(host).collect(),
        etcd_secrets: secrets.into_iter().collect(),
        pending_csrs: pending.into_iter().map(|it| it.request).collect(),
    })
}

fn replicas(installation: Option<&DynamicObject>) -> Result<usize, Error> {
    let text: String = installation
        .map(|record| member(record, "/data/install-config"))
        .unwrap_or_default();
    let parsed = serde_yaml::from_str::<InstalledTopology>(&text);
    match parsed {
        Ok(topology) => Ok(topology.control_plane.replicas),
        // The parser's error may quote a secret.
        Err(_) => Err(Error::conflict(format!(
            "the number of control nodes is unknown: ConfigMap {INSTALLATION_NAMESPACE}/{INSTALLATION} has no \
             install-config with controlPlane.replicas"
        ))),
    }
}

/// Whether etcd's operator acts. Source: openshift/api, operator/v1, ManagementState.
fn is_managed(etcd: &DynamicObject) -> bool {
    let state: String = member(etcd, "/spec/managementState");
    matches!(state.as_str(), "" | "Managed")
}

fn rollout_override(etcd: &DynamicObject) -> Value {
    let pointer = format!("/spec/unsupportedConfigOverrides/{ROLLOUT_OVERRIDE}");
    member(etcd, &pointer)
}

fn addresses(endpoints: &DynamicObject) -> BTreeSet<IpAddr> {
    let addresses: BTreeMap<String, String> = member(endpoints, "/data");
    let parsed = addresses.values().map(|text| text.parse());
    parsed.filter_map(Result::ok).collect()
}

fn internal(addresses: &[NodeAddress]) -> impl Iterator<Item = IpAddr> {
    let internal = addresses.iter().filter(|it| it.kind == "InternalIP");
    internal.filter_map(|it| it.address.parse().ok())
}

fn node(node: ListedNode) -> (String, NodeView) {
    let view = NodeView {
        address: internal(&node.addresses).next(),
        is_ready: node.is_ready,
        is_control_plane: node.is_control_plane,
    };
    (node.name, view)
}

fn machine(machine: ListedMachine) -> (String, MachineView) {
    let host = machine.host.as_deref();
    let host = host.map(|host| host.rsplit('/').next().unwrap_or(host));
    let view = MachineView {
        addresses: internal(&machine.addresses).collect(),
        host: host.map(str::to_owned),
        node: machine.node,
        is_deleting: machine.is_deleting,
        phase: machine.phase,
    };
    (machine.name, view)
}

fn host(host: ListedHost) -> (String, HostView) {
    let view = HostView {
        state: host.state,
        credentials: host.credentials,
        is_deleting: host.is_deleting,
    };
    (host.name, view)
}

fn rollout(operator: OperatorView) -> RolloutView {
    RolloutView {
        operator: operator.kind.to_owned(),
        revisions: operator.revisions,
        latest: operator.latest_revision,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(content: &Value) -> DynamicObject {
        let mut record = json!({ "metadata": { "name": "one" } });
        record
            .as_object_mut()
            .unwrap()
            .extend(content.as_object().unwrap().clone());
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn the_number_of_control_nodes_is_that_of_the_install_config() {
        let config = |text: &str| record(&json!({ "data": { "install-config": text } }));
        let text = "apiVersion: v1\ncontrolPlane:\n  name: master\n  replicas: 3\n";
        assert_eq!(replicas(Some(&config(text))).unwrap(), 3);
        for missing in [None, Some(config("")), Some(config("controlPlane: {}"))] {
            let error = replicas(missing.as_ref()).unwrap_err().to_string();
            assert!(error.contains("kube-system/cluster-config-v1"), "{error}");
        }
    }

    #[test]
    fn settings_of_the_operator_are_read() {
        let etcd = |spec: Value| record(&json!({ "spec": spec }));
        assert!(is_managed(&etcd(json!({ "managementState": "Managed" }))));
        assert!(is_managed(&etcd(json!({}))));
        for state in ["Unmanaged", "Removed", "Force"] {
            assert!(!is_managed(&etcd(json!({ "managementState": state }))));
        }
        assert_eq!(rollout_override(&etcd(json!({}))), Value::Null);
        let set = etcd(json!({ "unsupportedConfigOverrides": { ROLLOUT_OVERRIDE: true } }));
        assert_eq!(rollout_override(&set), true);
    }

    #[test]
    fn places_are_internal_addresses_and_names_without_namespace() {
        let addresses = vec![
            NodeAddress {
                kind: "Hostname".to_owned(),
                address: "192.0.2.1".to_owned(),
            },
            NodeAddress {
                kind: "InternalIP".to_owned(),
                address: "192.0.2.11".to_owned(),
            },
        ];
        let (_, view) = machine(ListedMachine {
            host: Some("openshift-machine-api/host-1".to_owned()),
            addresses,
            ..ListedMachine::default()
        });
        assert_eq!(view.host.as_deref(), Some("host-1"));
        assert_eq!(view.addresses, ["192.0.2.11".parse::<IpAddr>().unwrap()]);
    }
}
