//! The case: which node leaves, why, and which one takes its place.

use std::collections::{BTreeMap, BTreeSet};

use etcd::ObservedMember;
use etcd::quorum::{MemberId, MembershipGoal};
use model::node_replacement::ReplacementKind;
use serde::{Deserialize, Serialize};

use super::view::{KubernetesView, NodePlace, ReplacementView};

/// The wish of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacementRequest {
    /// Name of the node that leaves.
    pub node: String,
    /// Name and address of the new one; none for those of the old one.
    pub new: Option<NodePlace>,
    /// Whether the node leaves although its member is healthy.
    pub is_unwanted: bool,
    /// Name of the person that confirmed that the node is off, where its power state cannot be read.
    pub confirmed_off_by: Option<String>,
    /// Other nodes that are lost. Their members leave, too, before one joins; the nodes are replaced later.
    pub also_lost: BTreeSet<String>,
    /// Whether to continue without a snapshot.
    pub skips_snapshot: bool,
}

/// A replacement, with all that must not be read again after its first change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacementCase {
    /// Order of the changes.
    pub kind: ReplacementKind,
    /// The node that leaves.
    pub old: NodePlace,
    /// The node that joins.
    pub new: NodePlace,
    /// Members that leave: ids, since names and addresses are used again.
    pub targets: BTreeSet<MemberId>,
    /// Nodes of the targets.
    pub lost: BTreeSet<String>,
    /// Voters of the complete cluster.
    pub desired_voters: usize,
    /// Whether the Machine API works: etcd's operator takes nodes with a Machine only.
    pub has_machine_api: bool,
    /// Whether etcd's operator changes the membership; otherwise it is done here.
    pub is_operator_managed: bool,
    /// Name of the old node's Machine.
    pub machine: Option<String>,
    /// Name of the old node's BareMetalHost.
    pub host: Option<String>,
}

impl ReplacementCase {
    /// Whether the new node has the old one's name or address.
    pub fn reuses_place(&self) -> bool {
        self.old.name == self.new.name || self.old.address == self.new.address
    }

    /// The purpose of changes of the membership.
    pub fn goal(&self) -> MembershipGoal {
        MembershipGoal {
            desired_voters: self.desired_voters,
            targets: self.targets.clone(),
        }
    }

    /// The new node's member, which is not the old one at the same address.
    pub fn new_member<'a>(&self, view: &'a ReplacementView) -> Option<&'a ObservedMember> {
        let member = view.etcd.member_at(&self.new.address.to_string());
        member.filter(|it| !self.targets.contains(&it.member.id))
    }
}

/// The reason against a replacement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum CaseRefusal {
    /// The API server does not answer; it is needed once for the plan.
    #[error("the Kubernetes API does not answer, and a plan needs it: {failure}")]
    NoKubernetes {
        /// The failure.
        failure: String,
    },
    /// No such node, Machine or member.
    #[error("neither a node nor a Machine is called {node}")]
    UnknownNode { node: String },
    /// A worker has no member.
    #[error("{node} is no control node")]
    NotControlPlane { node: String },
    /// Without an address its member cannot be found.
    #[error("{node} has no internal address in its Node or Machine")]
    NoAddress { node: String },
    /// Pacemaker owns the membership.
    #[error("topology DualReplica: Pacemaker owns the membership of etcd")]
    DualReplica,
    /// One control node cannot be replaced while it is the only one.
    #[error(
        "the cluster has {desired} control nodes: at least 3 are needed, restore it from a snapshot instead"
    )]
    TooFew { desired: usize },
    /// A majority is lost.
    #[error(
        "quorum of etcd is lost ({healthy} of {voters} voters healthy): restore it from a snapshot"
    )]
    QuorumLost { healthy: usize, voters: usize },
    /// A healthy member leaves only by request.
    #[error(
        "the member of {node} is healthy: state that the node is unwanted, or wait for its failure"
    )]
    Healthy { node: String },
    /// A healthy node keeps its place until another has joined.
    #[error(
        "{node} is healthy: its name and address are free only when it is off. Choose others, or power it off"
    )]
    HealthyInPlace { node: String },
    /// Only lost members leave beside the target.
    #[error("{node} is named as lost, and its member is healthy")]
    NotLost { node: String },
    /// Another node has the name or address.
    #[error("{place} belongs to {node}")]
    PlaceTaken { place: String, node: String },
}

/// The case of a request. Pure.
///
/// Errors: the reason against it.
pub fn open_case(
    request: &ReplacementRequest,
    view: &ReplacementView,
) -> Result<ReplacementCase, CaseRefusal> {
    let kubernetes = view.kubernetes.as_ref();
    let kubernetes = kubernetes.ok_or_else(|| CaseRefusal::NoKubernetes {
        failure: view.kubernetes_failure.clone().unwrap_or_default(),
    })?;
    if kubernetes.is_dual_replica() {
        return Err(CaseRefusal::DualReplica);
    }
    let desired = kubernetes.desired_replicas;
    if desired < 3 {
        return Err(CaseRefusal::TooFew { desired });
    }
    let count = view.etcd.voter_count();
    if !count.has_quorum() {
        let (healthy, voters) = (count.healthy, count.voters);
        return Err(CaseRefusal::QuorumLost { healthy, voters });
    }
    let old = place(&request.node, kubernetes)?;
    let new = request.new.clone().unwrap_or_else(|| old.clone());
    let mut lost = BTreeMap::new();
    for node in &request.also_lost {
        let member = view
            .etcd
            .member_at(&place(node, kubernetes)?.address.to_string());
        if member.is_some_and(ObservedMember::is_healthy) {
            return Err(CaseRefusal::NotLost { node: node.clone() });
        }
        lost.insert(node.clone(), member.map(|it| it.member.id));
    }
    let target = view.etcd.member_at(&old.address.to_string());
    let is_healthy = target.is_some_and(ObservedMember::is_healthy);
    let node = || request.node.clone();
    if is_healthy && !request.is_unwanted {
        return Err(CaseRefusal::Healthy { node: node() });
    }
    let machine = kubernetes.machine_of(&old);
    let case = ReplacementCase {
        kind: if is_healthy {
            ReplacementKind::Unwanted
        } else {
            ReplacementKind::Failed
        },
        targets: lost
            .values()
            .copied()
            .chain([target.map(|it| it.member.id)])
            .flatten()
            .collect(),
        lost: lost.into_keys().chain([node()]).collect(),
        desired_voters: desired,
        has_machine_api: kubernetes.has_machine_api,
        is_operator_managed: kubernetes.is_operator_managed,
        machine: machine.map(|(name, _)| name.clone()),
        host: machine.and_then(|(_, it)| it.host.clone()),
        old,
        new,
    };
    if is_healthy && case.reuses_place() {
        return Err(CaseRefusal::HealthyInPlace { node: node() });
    }
    is_free(&case, kubernetes)?;
    Ok(case)
}

/// Name and address of a control node; of its Machine when the Node is deleted already.
fn place(node: &str, kubernetes: &KubernetesView) -> Result<NodePlace, CaseRefusal> {
    let node = node.to_owned();
    let found = kubernetes.nodes.get(&node);
    if found.is_some_and(|it| !it.is_control_plane) {
        return Err(CaseRefusal::NotControlPlane { node });
    }
    let machine = kubernetes
        .machines
        .values()
        .find(|it| it.node.as_ref() == Some(&node));
    if found.is_none() && machine.is_none() {
        return Err(CaseRefusal::UnknownNode { node });
    }
    let address = found.and_then(|it| it.address);
    let address = address.or_else(|| machine?.addresses.first().copied());
    match address {
        Some(address) => Ok(NodePlace {
            name: node,
            address,
        }),
        None => Err(CaseRefusal::NoAddress { node }),
    }
}

fn is_free(case: &ReplacementCase, kubernetes: &KubernetesView) -> Result<(), CaseRefusal> {
    let others = kubernetes
        .nodes
        .iter()
        .filter(|(name, _)| **name != case.old.name);
    for (node, other) in others {
        let place = if *node == case.new.name {
            case.new.name.clone()
        } else if other.address == Some(case.new.address) {
            case.new.address.to_string()
        } else {
            continue;
        };
        let node = node.clone();
        return Err(CaseRefusal::PlaceTaken { place, node });
    }
    Ok(())
}
