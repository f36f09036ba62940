//! A host with its parsed texts.

use std::sync::{Arc, OnceLock};

use model::host::Host;
use model::inventory::Inventory;
use model::time::Timestamp;
use serde::Deserialize;

use crate::snapshot::reach::Reaches;

/// Names, addresses and small reports of a host. Units: bytes.
const OTHER_TEXTS_BYTES: usize = 4 << 10;

/// Times since which the server's clock measures silence and delays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObservedTime {
    /// Start of uninterrupted reception of heartbeats; none without an outage.
    pub heartbeats_since: Option<Timestamp>,
    /// When the clock was set forward: the time before, as the clock shows it, is longer than it was. None without a step.
    pub clock_set_at: Option<Timestamp>,
}

/// A host with its parsed texts. A change of a text in the record needs a new value.
#[derive(Debug, Clone, Default)]
pub struct HostState {
    /// The host's record.
    pub record: Host,
    /// The parsed `record.inventory`; none before the first reply or when it is malformed.
    pub inventory: Option<Arc<Inventory>>,
    /// Since when the server has observed it.
    pub observed: ObservedTime,
    /// Revision of the cluster at which the record changed last, heartbeats aside; 0 when it is not stored.
    pub revision: i64,
    /// The parsed `record.connectivity`, once read.
    reaches: OnceLock<Option<Arc<Reaches>>>,
    /// The host as other hosts try to reach it, as JSON; derived from `inventory` once.
    check_target: OnceLock<Arc<str>>,
}

impl HostState {
    /// Parses the record's texts.
    pub fn new(record: Host) -> Self {
        let inventory = record.inventory.parse().map(Arc::new);
        Self {
            record,
            inventory,
            observed: ObservedTime::default(),
            revision: 0,
            reaches: OnceLock::new(),
            check_target: OnceLock::new(),
        }
    }

    /// Memory that the host takes, estimated from its record alone. Units: bytes.
    pub fn memory_bytes(&self) -> usize {
        let record = &self.record;
        let texts = [
            &record.inventory,
            &record.connectivity,
            &record.validations_info,
            &record.free_addresses,
        ];
        let compressed: usize = texts.iter().map(|text| text.compressed_bytes()).sum();
        // Parsed, an inventory takes more than its text, and reachability less.
        let parsed = 2 * record.inventory.text_bytes() + record.connectivity.text_bytes() / 4;
        size_of::<Self>() + OTHER_TEXTS_BYTES + compressed + parsed
    }

    /// Reachability of the other hosts; none before the first report. Parsed once.
    pub(crate) fn reaches(&self) -> Option<Arc<Reaches>> {
        let read = || Reaches::read(&self.record.connectivity.text()).map(Arc::new);
        self.reaches.get_or_init(read).clone()
    }

    /// Drops the parsed report; required after each change of `record.connectivity`.
    pub(crate) fn clear_reaches(&mut self) {
        self.reaches = OnceLock::new();
    }

    /// The host as other hosts try to reach it, as JSON: printed by `print` once for each inventory, since each poll of
    /// each other host carries it.
    pub(crate) fn check_target(&self, print: impl FnOnce() -> String) -> &str {
        self.check_target.get_or_init(|| print().into())
    }

    /// Drops the printed target; required after each change of `inventory`.
    pub(crate) fn clear_check_target(&mut self) {
        self.check_target = OnceLock::new();
    }

    /// Name of the host: the one that its user set, else the inventory's, else its id. Only the first is stored, so that
    /// a later inventory may bring another name.
    /// Source: assisted-service, internal/host/hostutil/host_utils.go, GetHostnameForMsg.
    pub fn name(&self) -> String {
        let reported = self.inventory.as_ref();
        let reported = reported.map_or("", |inventory| inventory.hostname.as_str());
        first_name(&self.record, reported)
    }
}

/// [`HostState::name`] of a record, without parsing the rest of its inventory.
pub fn name_of(record: &Host) -> String {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        hostname: String,
    }
    if !record.requested_hostname.is_empty() {
        return record.requested_hostname.clone();
    }
    let named: Option<Named> = record.inventory.parse();
    first_name(record, &named.map_or_else(String::new, |one| one.hostname))
}

fn first_name(record: &Host, reported: &str) -> String {
    let names = [record.requested_hostname.as_str(), reported];
    let known = names.into_iter().find(|name| !name.is_empty());
    known.map_or_else(|| record.id.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_set_by_users_before_inventories() {
        let named = |requested: &str, inventory: &str| {
            let record = Host {
                requested_hostname: requested.to_owned(),
                inventory: inventory.into(),
                ..Host::default()
            };
            assert_eq!(name_of(&record), HostState::new(record.clone()).name());
            name_of(&record)
        };
        let id = Host::default().id.to_string();
        assert_eq!(named("alpha", r#"{"hostname":"node-1"}"#), "alpha");
        assert_eq!(named("", r#"{"hostname":"node-1"}"#), "node-1");
        assert_eq!(named("", r#"{"hostname":""}"#), id);
        assert_eq!(named("", "{}"), id);
        assert_eq!(named("", ""), id);
    }
}
