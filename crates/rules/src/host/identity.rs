//! Identity of machines: serial numbers and MAC addresses, and host ids that two machines use.

use chrono::TimeDelta;
use model::expected_hosts::IdentityChange;
use model::host::Host;
use model::inventory::Inventory;
use model::time::Timestamp;

use crate::host::timeout::older;
use crate::snapshot::host_state::{HostState, name_of};

/// Time without a change of the machine after which a conflict has ended. Agents send an inventory each minute.
const SETTLED_AFTER: TimeDelta = TimeDelta::minutes(10);
/// Number of changes that prove two machines: one change may be a replaced network card.
const PROOF: i64 = 2;

/// Texts that vendors store in place of a serial number.
/// Source: assisted-installer-agent, src/inventory and src/scanners, for the most part.
const PLACEHOLDERS: &[&str] = &[
    "0",
    "00000000",
    "default string",
    "empty",
    "none",
    "not applicable",
    "not specified",
    "system serial number",
    "to be filled by o.e.m.",
    "unknown",
    "unspecified base board serial number",
    "unspecified system serial number",
];

/// Serial number of a machine; none for a placeholder.
pub(crate) fn serial_number(inventory: &Inventory) -> Option<&str> {
    let serial = inventory.system_vendor.as_ref()?.serial_number.trim();
    let is_real = !serial.is_empty() && !PLACEHOLDERS.contains(&&*serial.to_ascii_lowercase());
    is_real.then_some(serial)
}

/// MAC addresses of a machine, in lower case, sorted.
pub(crate) fn mac_addresses(inventory: &Inventory) -> Vec<String> {
    let nics = inventory.interfaces.iter();
    let mut macs: Vec<String> = nics
        .map(|nic| nic.mac_address.to_ascii_lowercase())
        .filter(|mac| !mac.is_empty())
        .collect();
    macs.sort_unstable();
    macs.dedup();
    macs
}

/// Whether a registered host is the machine with these MAC addresses, in lower case; if those of one side are not known, the
/// machine of this name.
pub fn is_machine(host: &HostState, name: &str, macs: &[String]) -> bool {
    let own = host.inventory.as_deref().map(mac_addresses);
    let own = own.unwrap_or_default();
    if own.is_empty() || macs.is_empty() {
        return name_of(&host.record) == name;
    }
    !are_different(&own, macs)
}

/// Whether two machines are different ones: both have MAC addresses, and none in common.
pub(crate) fn are_different(left: &[String], right: &[String]) -> bool {
    !left.is_empty() && !right.is_empty() && !left.iter().any(|mac| right.contains(mac))
}

/// Notes a change of the machine behind a host's id, before the new inventory replaces the known one.
pub(crate) fn note_inventory(
    record: &mut Host,
    known: Option<&Inventory>,
    new: &Inventory,
    now: Timestamp,
) {
    let before = known.map(mac_addresses).unwrap_or_default();
    let after = mac_addresses(new);
    if !are_different(&before, &after) {
        if record
            .identity_change
            .as_ref()
            .is_some_and(|change| is_settled(change, now))
        {
            record.identity_change = None;
        }
        return;
    }
    // The same change twice is a return, too: a registration in between has removed the inventory.
    let is_of_both = |change: &IdentityChange| {
        let machines = [&change.mac_addresses, &change.other_mac_addresses];
        [&before, &after]
            .iter()
            .all(|macs| machines.iter().any(|known| !are_different(known, macs)))
    };
    let earlier = record.identity_change.take().filter(is_of_both);
    record.identity_change = Some(IdentityChange {
        mac_addresses: after,
        other_mac_addresses: before,
        changes: earlier
            .map_or(0, |earlier| earlier.changes)
            .saturating_add(1),
        changed_at: now.into(),
    });
}

/// The two machines that use one host id now.
pub(crate) fn conflict(record: &Host, now: Timestamp) -> Option<&IdentityChange> {
    let change = record.identity_change.as_ref()?;
    (change.changes >= PROOF && !is_settled(change, now)).then_some(change)
}

fn is_settled(change: &IdentityChange, now: Timestamp) -> bool {
    older(change.changed_at, now) > SETTLED_AFTER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{inventory, later};

    /// Inventories of two machines in the given minutes.
    fn reported(reports: &[(usize, i64)]) -> Host {
        let mut record = Host::default();
        let mut known: Option<Inventory> = None;
        for (machine, minute) in reports {
            let new = inventory(*machine);
            note_inventory(&mut record, known.as_ref(), &new, later(*minute));
            known = Some(new);
        }
        record
    }

    #[test]
    fn alternating_machines_are_a_conflict_that_names_both() {
        let record = reported(&[(1, 0), (2, 1), (1, 2)]);
        let change = conflict(&record, later(3)).unwrap();
        assert_eq!(change.mac_addresses, ["52:54:00:00:00:01"]);
        assert_eq!(change.other_mac_addresses, ["52:54:00:00:00:02"]);
    }

    #[test]
    fn machines_are_recognised_by_their_addresses_or_else_their_names() {
        let mac = |text: &str| vec![text.to_owned()];
        let host = crate::fixtures::host(1, model::host::HostRole::Master, 1);
        for (name, macs, expected) in [
            ("other", mac("52:54:00:00:00:01"), true),
            ("node-1", mac("52:54:00:00:00:02"), false),
            ("node-1", Vec::new(), true),
            ("other", Vec::new(), false),
        ] {
            assert_eq!(is_machine(&host, name, &macs), expected, "{name} {macs:?}");
        }
        let mut unseen = crate::fixtures::discovering(1);
        assert!(!is_machine(&unseen, "node-1", &mac("52:54:00:00:00:01")));
        unseen.record.requested_hostname = "node-1".to_owned();
        assert!(is_machine(&unseen, "node-1", &mac("52:54:00:00:00:01")));
    }

    #[test]
    fn the_same_change_twice_is_a_conflict() {
        let mut record = Host::default();
        for minute in [0, 2] {
            // A registration removes the inventory.
            note_inventory(&mut record, None, &inventory(2), later(minute));
            let known = inventory(2);
            note_inventory(&mut record, Some(&known), &inventory(1), later(minute + 1));
        }
        assert!(conflict(&record, later(4)).is_some());
    }

    #[test]
    fn a_replaced_card_or_machine_is_no_conflict() {
        for reports in [
            &[(1, 0), (1, 1)][..],
            &[(1, 0), (2, 1), (2, 2)],
            &[(1, 0), (2, 1), (3, 2)],
        ] {
            assert_eq!(conflict(&reported(reports), later(3)), None, "{reports:?}");
        }
    }

    #[test]
    fn a_conflict_ends_when_one_machine_is_silent() {
        let record = reported(&[(1, 0), (2, 1), (1, 2), (1, 11)]);
        assert!(conflict(&record, later(12)).is_some());
        assert_eq!(conflict(&record, later(13)), None);
        let record = reported(&[(1, 0), (2, 1), (1, 2), (1, 13)]);
        assert_eq!(record.identity_change, None);
    }

    #[test]
    fn placeholders_are_no_serial_numbers() {
        let with = |serial: &str| {
            let vendor = model::inventory::SystemVendor {
                serial_number: serial.to_owned(),
                ..model::inventory::SystemVendor::default()
            };
            Inventory {
                system_vendor: Some(vendor),
                ..Inventory::default()
            }
        };
        assert_eq!(serial_number(&with("S1 ")), Some("S1"));
        for placeholder in ["", "None", "Default string", "To Be Filled By O.E.M."] {
            assert_eq!(serial_number(&with(placeholder)), None, "{placeholder}");
        }
        assert_eq!(serial_number(&Inventory::default()), None);
    }
}
