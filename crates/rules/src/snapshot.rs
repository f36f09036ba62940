//! A cluster with its hosts, as they stand in the database at one instant.

use std::sync::{Arc, OnceLock};

use model::cluster::Cluster;
use model::host::Host;
use model::ids::HostId;
use model::inventory::Inventory;
use model::time::Timestamp;

use crate::hosts::Hosts;
use crate::reach::{self, Reach};

/// What every decision about a cluster looks at, and what it changes.
///
/// `cluster.hosts` stays empty and its counters unset: both are filled when an answer is rendered.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The cluster's record.
    pub cluster: Cluster,
    /// Its hosts, in the order of their creation.
    pub hosts: Hosts,
    /// What its file store holds.
    pub files: StoredFiles,
}

/// What decisions need to know of a cluster's stored files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredFiles {
    /// The kubeconfig that trusts the cluster's ingress is there (the ingress certificate has been uploaded).
    pub kubeconfig: bool,
    /// The user has added manifests.
    pub user_manifests: bool,
}

/// A host and what its texts hold when parsed. Whoever changes a text of the record makes a new one of it.
#[derive(Debug, Clone, Default)]
pub struct HostState {
    /// The host's record.
    pub record: Host,
    /// The parsed `record.inventory`; none before the first reply or when it does not parse.
    pub inventory: Option<Inventory>,
    /// Since when hosts can be heard without a break; none when they always could.
    pub heard_since: Option<Timestamp>,
    /// What `record.connectivity` says, once somebody asked.
    reaches: OnceLock<Option<Arc<[Reach]>>>,
}

impl HostState {
    /// Parses what the record holds as text.
    pub fn new(record: Host) -> Self {
        let inventory = serde_json::from_str(&record.inventory).ok();
        Self {
            record,
            inventory,
            heard_since: None,
            reaches: OnceLock::new(),
        }
    }

    /// Whom the host reaches; none before its first report. Read once, however often the record is looked at.
    pub(crate) fn reaches(&self) -> Option<Arc<[Reach]>> {
        let read = || reach::read(&self.record.connectivity).map(Arc::from);
        self.reaches.get_or_init(read).clone()
    }

    /// To be called whenever `record.connectivity` has changed.
    pub(crate) fn forget_reaches(&mut self) {
        self.reaches = OnceLock::new();
    }

    /// The name the host goes by: the requested one, else the inventory's, else its id.
    pub fn name(&self) -> String {
        if !self.record.requested_hostname.is_empty() {
            return self.record.requested_hostname.clone();
        }
        match &self.inventory {
            Some(inventory) if !inventory.hostname.is_empty() => inventory.hostname.clone(),
            _ => self.record.id.to_string(),
        }
    }
}

impl Snapshot {
    /// A cluster whose file store is empty.
    pub fn new(cluster: Cluster, hosts: impl Into<Hosts>) -> Self {
        Self {
            cluster,
            hosts: hosts.into(),
            files: StoredFiles::default(),
        }
    }

    /// The host of that id.
    pub fn host(&self, id: HostId) -> Option<&HostState> {
        self.hosts.iter().find(|host| host.record.id == id)
    }

    /// The host of that id, to be changed.
    pub fn host_mut(&mut self, id: HostId) -> Option<&mut HostState> {
        self.hosts.by_id_mut(id)
    }
}
