//! The parts of the world that steps act on, beside etcd: exactly the operations that they need.
//!
//! Every operation is idempotent: a run that was killed repeats the last one.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use etcd::EtcdCluster;
use kubernetes::CertificateRequest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::case::ReplacementCase;
use super::view::{KubernetesView, NodePlace, PowerState};
use super::wait::StepPatience;

/// A failed operation.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {reason}")]
pub struct WorldError {
    /// The operation.
    pub doing: String,
    /// The cause.
    pub reason: String,
    /// Whether the same operation may succeed later.
    pub is_transient: bool,
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RecordKind {
    /// A Secret of etcd's namespace.
    EtcdSecret,
    /// A BareMetalHost.
    BareMetalHost,
    /// A Machine.
    Machine,
    /// A Node.
    Node,
}

/// The Kubernetes API.
#[async_trait]
pub trait KubernetesSide: Send + Sync {
    /// Reads all that a replacement needs.
    async fn observe(&self) -> Result<KubernetesView, WorldError>;

    /// The records of a node, in the order of their creation: Secret of the BMC's credentials, BareMetalHost, Machine.
    /// Those that do not exist are left out.
    async fn node_records(&self, case: &ReplacementCase) -> Result<Vec<Value>, WorldError>;

    /// Creates a record. One that exists with this name is kept.
    async fn create(&self, record: &Value) -> Result<(), WorldError>;

    /// Deletes a record. One that does not exist is deleted already.
    async fn delete(&self, kind: RecordKind, name: &str) -> Result<(), WorldError>;

    /// Removes the finalizers of a record that is being deleted.
    async fn drop_finalizers(&self, kind: RecordKind, name: &str) -> Result<(), WorldError>;

    /// Pauses or resumes the master MachineConfigPool.
    async fn pause_pool(&self, paused: bool) -> Result<(), WorldError>;

    /// Sets `useUnsupportedUnsafeNonHANonProductionUnstableEtcd` of Etcd/cluster, or removes it when `value` is null.
    async fn set_rollout_override(&self, value: &Value) -> Result<(), WorldError>;

    /// Approves exactly this certificate request, with the reason in its condition. Another one of its name is not
    /// approved.
    async fn approve_csr(
        &self,
        request: &CertificateRequest,
        reason: &str,
    ) -> Result<(), WorldError>;
}

/// A machine of a replacement. Both may have one name and address, and be one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineSide {
    /// Of the node that leaves.
    Old,
    /// Of the node that joins.
    New,
}

/// The machines of the nodes, by their BMCs or by the hands of a person.
#[async_trait]
pub trait NodeHardware: Send + Sync {
    /// Power of a node's machine; none where it cannot be read.
    async fn power(
        &self,
        side: MachineSide,
        node: &NodePlace,
    ) -> Result<Option<PowerState>, WorldError>;

    /// Turns the old machine off. Where there is no BMC, nothing: the person's word counts.
    async fn power_off(&self, node: &NodePlace) -> Result<(), WorldError>;

    /// Boots the new machine with the image of its node, or leaves that to a person.
    async fn boot(&self, node: &NodePlace) -> Result<(), WorldError>;

    /// Ejects the image of the new machine, and checks that it boots from its disk.
    async fn eject(&self, node: &NodePlace) -> Result<(), WorldError>;
}

/// The world of a run.
#[derive(Clone, Copy)]
pub struct ReplacementWorld<'a> {
    /// etcd.
    pub etcd: &'a EtcdCluster,
    /// The Kubernetes API.
    pub kubernetes: &'a dyn KubernetesSide,
    /// The machines.
    pub hardware: &'a dyn NodeHardware,
    /// The clock of the journal's entries.
    pub now: &'a (dyn Fn() -> DateTime<Utc> + Sync),
    /// Times of waits.
    pub patience: StepPatience,
}
