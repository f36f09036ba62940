//! A cluster with its hosts, as of one instant of the database.

use std::sync::{Arc, OnceLock};

use model::cluster::Cluster;
use model::host::Host;
use model::ids::HostId;
use model::inventory::Inventory;
use model::time::Timestamp;

use crate::hosts::HostList;
use crate::reach::{self, Reach};

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
}

/// State of a cluster's stored files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredFiles {
    /// The kubeconfig with the cluster's ingress certificate exists (the certificate has been uploaded).
    pub kubeconfig: bool,
    /// Manifests of the user exist.
    pub user_manifests: bool,
}

/// A host with its parsed texts. A change of a text in the record needs a new value.
#[derive(Debug, Clone, Default)]
pub struct HostState {
    /// The host's record.
    pub record: Host,
    /// The parsed `record.inventory`; none before the first reply or when it is malformed.
    pub inventory: Option<Inventory>,
    /// Start of uninterrupted reception of heartbeats; none without an outage.
    pub heartbeats_since: Option<Timestamp>,
    /// The parsed `record.connectivity`, once read.
    reaches: OnceLock<Option<Arc<[Reach]>>>,
}

impl HostState {
    /// Parses the record's texts.
    pub fn new(record: Host) -> Self {
        let inventory = serde_json::from_str(&record.inventory).ok();
        Self {
            record,
            inventory,
            heartbeats_since: None,
            reaches: OnceLock::new(),
        }
    }

    /// Reachability of the other hosts; none before the first report. Parsed once.
    pub(crate) fn reaches(&self) -> Option<Arc<[Reach]>> {
        let read = || reach::read(&self.record.connectivity).map(Arc::from);
        self.reaches.get_or_init(read).clone()
    }

    /// Drops the parsed report; required after each change of `record.connectivity`.
    pub(crate) fn clear_reaches(&mut self) {
        self.reaches = OnceLock::new();
    }

    /// Name of the host: the requested one, else the inventory's, else its id.
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
    pub fn new(cluster: Cluster, hosts: impl Into<HostList>) -> Self {
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

    /// The host of that id, to change.
    pub fn host_mut(&mut self, id: HostId) -> Option<&mut HostState> {
        self.hosts.by_id_mut(id)
    }
}
