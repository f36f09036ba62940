//! A host with its parsed texts.

use std::sync::{Arc, OnceLock};

use model::host::Host;
use model::inventory::Inventory;
use model::time::Timestamp;

use crate::reach::{self, Reach};

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
