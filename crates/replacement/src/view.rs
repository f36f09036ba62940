//! The world as a replacement sees it, read again before each change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use etcd::EtcdView;
use etcd::quorum::MemberRole;
use kubernetes::CertificateRequest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Power of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PowerState {
    /// It runs, or changes its state.
    On,
    /// It is off.
    Off,
}

/// Name and address of a control node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePlace {
    /// Name of the node.
    pub name: String,
    /// Its internal address, which is that of its member.
    pub address: IpAddr,
}

/// A Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeView {
    /// Internal address.
    pub address: Option<IpAddr>,
    /// Whether its condition Ready is true.
    pub is_ready: bool,
    /// Whether it has a role of the control plane.
    pub is_control_plane: bool,
}

/// A Machine of the control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MachineView {
    /// Internal addresses.
    pub addresses: Vec<IpAddr>,
    /// Name of its Node.
    pub node: Option<String>,
    /// Name of its BareMetalHost.
    pub host: Option<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Its phase.
    pub phase: String,
}

/// A BareMetalHost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostView {
    /// Its provisioning state.
    pub state: String,
    /// Name of the Secret with its BMC's credentials.
    pub credentials: Option<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
}

/// Revisions of an operator's static pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RolloutView {
    /// Name of the operator.
    pub operator: String,
    /// Current revision by node.
    pub revisions: BTreeMap<String, i64>,
    /// Newest revision.
    pub latest: i64,
}

/// The Kubernetes side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KubernetesView {
    /// Topology of the control plane. Source: Infrastructure, status.controlPlaneTopology.
    pub topology: String,
    /// Wanted control nodes. Source: install-config, controlPlane.replicas.
    pub desired_replicas: usize,
    /// The version of an upgrade under way.
    pub upgrade: Option<String>,
    /// Whether a Machine runs, as etcd's operator asks.
    pub has_machine_api: bool,
    /// Whether etcd's operator is managed.
    pub is_operator_managed: bool,
    /// Addresses in the ConfigMap `etcd-endpoints`: voters, as the operator knows them.
    pub etcd_endpoints: BTreeSet<IpAddr>,
    /// Static pods of the control plane.
    pub rollouts: Vec<RolloutView>,
    /// The override that lets etcd's rollout continue with two voters; null where it is absent.
    pub rollout_override: Value,
    /// Whether the master MachineConfigPool is paused.
    pub is_pool_paused: bool,
    /// All nodes.
    pub nodes: BTreeMap<String, NodeView>,
    /// Machines of the control plane.
    pub machines: BTreeMap<String, MachineView>,
    /// Hosts of the machine-management namespace.
    pub hosts: BTreeMap<String, HostView>,
    /// Names of Secrets in etcd's namespace.
    pub etcd_secrets: BTreeSet<String>,
    /// Requests without a decision.
    pub pending_csrs: Vec<CertificateRequest>,
}

impl KubernetesView {
    /// Whether Pacemaker owns etcd's membership.
    pub fn is_dual_replica(&self) -> bool {
        self.topology == "DualReplica"
    }

    /// The Machine of a node, by the name of the node or else by its address.
    pub fn machine_of(&self, place: &NodePlace) -> Option<(&String, &MachineView)> {
        let is_named = |it: &MachineView| it.node.as_ref() == Some(&place.name);
        let mut machines = self.machines.iter();
        let named = machines.clone().find(|(_, it)| is_named(it));
        named.or_else(|| machines.find(|(_, it)| it.addresses.contains(&place.address)))
    }
}

/// All that decides about the next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplacementView {
    /// etcd, spoken to directly.
    pub etcd: EtcdView,
    /// The Kubernetes side; none while its API does not answer.
    pub kubernetes: Option<KubernetesView>,
    /// The failure of its API then.
    pub kubernetes_failure: Option<String>,
    /// Power of the node that leaves; none where it cannot be read.
    pub old_power: Option<PowerState>,
    /// Power of the node that joins, likewise.
    pub new_power: Option<PowerState>,
}

impl ReplacementView {
    /// Addresses of the voters.
    pub fn voter_addresses(&self) -> BTreeSet<IpAddr> {
        let members = self.etcd.members.iter().map(|it| &it.member);
        let voters = members.filter(|it| it.role == MemberRole::Voter);
        let addresses = voters.filter_map(|it| it.peer_host()?.parse().ok());
        addresses.collect()
    }
}
