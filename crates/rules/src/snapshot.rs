//! The input of decisions: a cluster with its hosts, as of one instant of the database.

pub(crate) mod host_state;
pub(crate) mod host_texts;
pub mod hosts;
pub(crate) mod networks;
pub(crate) mod reach;
pub mod roles;
use model::cluster::Cluster;
use model::ids::HostId;
use model::release_payload::ComponentImages;
use model::time::DateTime;
use serde::{Deserialize, Serialize};

use crate::snapshot::host_state::{HostState, ObservedTime};
use crate::snapshot::hosts::HostList;

/// Input and output of every decision about a cluster.
///
/// `cluster.hosts` stays empty and its counters unset: both are filled when a response is rendered.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The cluster's record.
    pub cluster: Cluster,
    /// Its hosts, in the order of their creation.
    pub hosts: HostList,
    /// State of its file store.
    pub files: StoredFiles,
    /// Leases of its virtual addresses.
    pub vip_leases: VipLeases,
    /// Images that its hosts run.
    pub components: ComponentImages,
    /// Since when the server has observed it.
    pub observed: ObservedTime,
}

/// State of a cluster's leases. It is stored beside the cluster's record and is in no response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VipLeases {
    /// Machine network that the addresses are leased from; empty while it is undefined.
    pub network: String,
    /// When that network was defined.
    pub requested_at: DateTime,
    /// No lease arrived in time.
    pub timed_out: bool,
    /// Last lease of the API's address, as dhclient stores it; empty if the agent sent none.
    pub api: String,
    /// Last lease of the ingress address.
    pub ingress: String,
}

/// State of a cluster's stored files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredFiles {
    /// The kubeconfig with the cluster's ingress certificate exists (the certificate has been uploaded).
    pub kubeconfig: bool,
    /// Manifests of the user exist.
    pub user_manifests: bool,
}

impl Snapshot {
    /// A cluster whose file store is empty.
    pub fn new(cluster: Cluster, hosts: impl Into<HostList>) -> Self {
        Self {
            cluster,
            hosts: hosts.into(),
            files: StoredFiles::default(),
            vip_leases: VipLeases::default(),
            components: ComponentImages::default(),
            observed: ObservedTime::default(),
        }
    }

    /// The host of that id.
    pub fn host(&self, id: HostId) -> Option<&HostState> {
        self.hosts.by_id(id)
    }

    /// The host of that id, to change.
    pub fn host_mut(&mut self, id: HostId) -> Option<&mut HostState> {
        self.hosts.by_id_mut(id)
    }
}
