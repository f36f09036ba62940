//! Expected hosts: checks of a list, the entry that a host matches, and their differences.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::Error;
use model::cluster::Cluster;
use model::events::EventSeverity;
use model::expected_hosts::{
    ComparedHost, DiskHints, ExpectedHost, ExpectedHostState, HostExpectation,
};
use model::host::HostRole;
use model::inventory::{Disk, DriveType, Inventory};

use crate::event::{NewEvent, about_host};
use crate::hardware::disks::{device_path, installation_disk};
use crate::host::identity::{mac_addresses, serial_number};
use crate::host::inventory::is_open;
use crate::input;
use crate::snapshot::host_state::HostState;

/// Longest list of an infra-env.
pub const MAX_HOSTS: usize = 1000;
/// Longest list of MAC addresses of one entry.
pub const MAX_MAC_ADDRESSES: usize = 64;
/// Longest text of an entry. Units: bytes.
pub const TEXT_BYTES: usize = 256;
/// Bytes of a gigabyte in disk hints. Source: assisted-service, internal/common/conversions.
const GB: i64 = 1_000_000_000;

/// Checks a list and normalises its MAC addresses.
///
/// Errors: Invalid – too long, an entry without identity, or an identity or name that two entries have.
pub fn check(list: Vec<ExpectedHost>) -> Result<Vec<ExpectedHost>, Error> {
    if list.len() > MAX_HOSTS {
        let reason = format!(
            "has {} entries, at most {MAX_HOSTS} are possible",
            list.len()
        );
        return Err(Error::invalid("hosts", reason));
    }
    let mut seen = BTreeMap::new();
    list.into_iter()
        .enumerate()
        .map(|(at, host)| {
            let host = check_entry(&format!("hosts[{at}]"), host)?;
            for key in keys(&host) {
                if let Some(other) = seen.insert(key.clone(), at) {
                    let (kind, value) = key;
                    return Err(input::refuse(
                        &format!("hosts[{at}].{kind}"),
                        &value,
                        &format!("is that of hosts[{other}], too: each machine has its own"),
                    ));
                }
            }
            Ok(host)
        })
        .collect()
}

/// Values that no two entries may share.
fn keys(host: &ExpectedHost) -> Vec<(&'static str, String)> {
    let macs = host.mac_addresses.iter().cloned();
    let mut keys: Vec<_> = macs.map(|mac| ("mac_addresses", mac)).collect();
    if !host.serial_number.is_empty() {
        keys.push(("serial_number", host.serial_number.clone()));
    }
    if !host.name.is_empty() {
        keys.push(("name", host.name.clone()));
    }
    keys
}

fn check_entry(at: &str, mut host: ExpectedHost) -> Result<ExpectedHost, Error> {
    if host.serial_number.is_empty() && host.mac_addresses.is_empty() {
        return Err(Error::invalid(
            at,
            "identifies no machine: set serial_number or mac_addresses",
        ));
    }
    if host.mac_addresses.len() > MAX_MAC_ADDRESSES {
        return Err(Error::invalid(
            format!("{at}.mac_addresses"),
            format!(
                "has {} entries, at most {MAX_MAC_ADDRESSES} are possible",
                host.mac_addresses.len()
            ),
        ));
    }
    let hints = host.installation_disk.clone().unwrap_or_default();
    for (field, text) in [
        ("serial_number", &host.serial_number),
        ("installation_disk.device_name", &hints.device_name),
        ("installation_disk.hctl", &hints.hctl),
        ("installation_disk.model", &hints.model),
        ("installation_disk.vendor", &hints.vendor),
        ("installation_disk.serial_number", &hints.serial_number),
        ("installation_disk.wwn", &hints.wwn),
    ] {
        if text.len() > TEXT_BYTES {
            let reason = format!(
                "has {} bytes, at most {TEXT_BYTES} are possible",
                text.len()
            );
            return Err(Error::invalid(format!("{at}.{field}"), reason));
        }
    }
    if hints.min_size_gigabytes < 0 {
        let field = format!("{at}.installation_disk.min_size_gigabytes");
        return Err(Error::invalid(
            field,
            "is negative: set a size in gigabytes",
        ));
    }
    if !host.name.is_empty() {
        input::hostname(&host.name)?;
    }
    if host.role == Some(HostRole::Bootstrap) {
        let remedy = "is chosen by the installation: use auto-assign, master, arbiter or worker";
        return Err(input::refuse(&format!("{at}.role"), "bootstrap", remedy));
    }
    let mut own = BTreeSet::new();
    for mac in &mut host.mac_addresses {
        let normal = mac.replace('-', ":").to_ascii_lowercase();
        if !input::is_mac(&normal) {
            let remedy = "is not a MAC address: write 52:54:00:12:34:56";
            return Err(input::refuse(&format!("{at}.mac_addresses"), mac, remedy));
        }
        *mac = normal;
    }
    host.mac_addresses.retain(|mac| own.insert(mac.clone()));
    Ok(host)
}

/// Positions of the entries by MAC address and serial number.
struct EntryIndex<'a> {
    by_mac: HashMap<&'a str, usize>,
    by_serial: HashMap<&'a str, usize>,
}

impl<'a> EntryIndex<'a> {
    fn new(list: &'a [ExpectedHost]) -> Self {
        let mut index = Self {
            by_mac: HashMap::new(),
            by_serial: HashMap::new(),
        };
        for (at, entry) in list.iter().enumerate() {
            let macs = entry.mac_addresses.iter().map(|mac| (mac.as_str(), at));
            index.by_mac.extend(macs);
            if !entry.serial_number.is_empty() {
                index.by_serial.insert(&entry.serial_number, at);
            }
        }
        index
    }

    /// Position of a machine's entry: by a MAC address, else by its serial number.
    fn find(&self, inventory: &Inventory) -> Option<usize> {
        let macs = mac_addresses(inventory);
        let by_mac = macs.iter().filter_map(|mac| self.by_mac.get(mac.as_str()));
        let by_serial = || self.by_serial.get(serial_number(inventory)?);
        by_mac.min().or_else(by_serial).copied()
    }
}

/// Compares a host with the list of its infra-env, none without one. A host that matches an entry for the first time
/// takes its name, role and disk over. Returns the event of the match.
pub fn assign(
    host: &mut HostState,
    cluster: Option<&Cluster>,
    list: Option<&[ExpectedHost]>,
) -> Option<NewEvent> {
    let Some(list) = list else {
        host.record.expectation = None;
        return None;
    };
    // Unknown before its inventory: neither present nor unexpected.
    let inventory = host.inventory.as_ref()?;
    let found = EntryIndex::new(list).find(inventory);
    let found = found.map(|at| list[at].clone());
    let known = host.record.expectation.take();
    let known = known.and_then(|known| known.expected);
    host.record.expectation = Some(HostExpectation {
        expected: found.clone(),
        listed: i64::try_from(list.len()).unwrap_or(i64::MAX),
    });
    let entry = found.filter(|entry| known.as_ref() != Some(entry))?;
    if !is_open(host.record.status) {
        return None;
    }
    take_over(host, cluster, &entry);
    let message = format!("matches expected host {}", label(&entry));
    let event = about_host(host, "expected_host_matched", EventSeverity::Info, &message);
    Some(event.prop("expected_host", label(&entry)))
}

fn take_over(host: &mut HostState, cluster: Option<&Cluster>, entry: &ExpectedHost) {
    if !entry.name.is_empty() {
        host.record.requested_hostname.clone_from(&entry.name);
    }
    // An arbiter that the cluster does not support stays a difference.
    let is_possible = |role: &HostRole| {
        *role != HostRole::Arbiter || crate::host::role_support::check_arbiter(cluster).is_ok()
    };
    if let Some(role) = entry.role.filter(is_possible) {
        host.record.role = Some(role);
    }
    let Some((hints, inventory)) = entry
        .installation_disk
        .as_ref()
        .zip(host.inventory.as_ref())
    else {
        return;
    };
    let mut disks = inventory.disks.iter();
    let chosen = disks.find(|disk| disk.installation_eligibility.eligible && fits(hints, disk));
    if let Some((id, path)) = chosen.map(|disk| (disk.id.clone(), device_path(disk))) {
        host.record.installation_disk_id = id;
        host.record.installation_disk_path = path;
    }
}

/// Whether a disk has all properties. Source: assisted-service, internal/host/hostutil/host_utils.go,
/// GetAcceptableDisksWithHints.
pub fn fits(hints: &DiskHints, disk: &Disk) -> bool {
    let same = |hint: &str, value: &str| hint.is_empty() || hint == value;
    let part = |hint: &str, value: &str| value.contains(hint);
    let is_device = hints.device_name.is_empty()
        || [&disk.path, &disk.by_path, &disk.by_id].contains(&&hints.device_name)
        || hints.device_name == device_path(disk);
    is_device
        && same(&hints.hctl, &disk.hctl)
        && part(&hints.model, &disk.model)
        && part(&hints.vendor, &disk.vendor)
        && same(&hints.serial_number, &disk.serial)
        && disk.size_bytes / GB >= hints.min_size_gigabytes
        && same(&hints.wwn, &disk.wwn)
        && hints
            .rotational
            .is_none_or(|rotational| rotational == (disk.known_type() == DriveType::HDD))
}

/// Name of an entry in texts.
fn label(entry: &ExpectedHost) -> String {
    let mac = entry.mac_addresses.first().map(String::as_str);
    let names = [
        Some(entry.name.as_str()),
        Some(entry.serial_number.as_str()),
        mac,
    ];
    let mut names = names.into_iter().flatten();
    let found = names.find(|name| !name.is_empty());
    found.unwrap_or_default().to_owned()
}

/// A property in which a host differs from its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) observed: String,
    pub(crate) required: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, expected {}", self.observed, self.required)
    }
}

/// The differences between a host and its entry.
pub(crate) fn differences(host: &HostState, entry: &ExpectedHost) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut add =
        |observed: String, required: String| found.push(Difference { observed, required });
    let record = &host.record;
    if let Some(inventory) = &host.inventory {
        let serial = serial_number(inventory).unwrap_or("none");
        if !entry.serial_number.is_empty() && serial != entry.serial_number {
            let required = format!("serial number {}", entry.serial_number);
            add(format!("serial number {serial}"), required);
        }
        let own = mac_addresses(inventory);
        let missing = entry.mac_addresses.iter().filter(|mac| !own.contains(*mac));
        let missing: Vec<&str> = missing.map(String::as_str).collect();
        if !missing.is_empty() {
            let required = format!("MAC address {}", missing.join(", "));
            add(format!("no MAC address {}", missing.join(", ")), required);
        }
    }
    let name = host.name();
    if !entry.name.is_empty() && name != entry.name {
        add(format!("name {name}"), format!("name {}", entry.name));
    }
    let role = record.role.unwrap_or_default();
    if let Some(expected) = entry.role.filter(|expected| *expected != role) {
        add(format!("role {role}"), format!("role {expected}"));
    }
    if let Some(hints) = &entry.installation_disk {
        let disk = installation_disk(host);
        if !disk.is_some_and(|disk| fits(hints, disk)) {
            let observed = disk.map_or("none", |disk| disk.name.as_str());
            add(
                format!("installation disk {observed}"),
                format!("installation disk with {}", hints_text(hints)),
            );
        }
    }
    found
}

/// The properties as one text.
pub fn hints_text(hints: &DiskHints) -> String {
    // Records of texts cannot fail to be printed.
    let value = serde_json::to_value(hints).unwrap_or_default();
    let members = value.as_object().into_iter().flatten();
    let texts: Vec<String> = members
        .map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name} {text}"),
            None => format!("{name} {value}"),
        })
        .collect();
    texts.join(", ")
}

/// Compares the hosts of an infra-env with its list: the entries in their order, then unexpected hosts.
pub fn compare(list: &[ExpectedHost], hosts: &[HostState]) -> Vec<ComparedHost> {
    let mut present: Vec<Vec<ComparedHost>> = list.iter().map(|_| Vec::new()).collect();
    let mut unexpected = Vec::new();
    let index = EntryIndex::new(list);
    for host in hosts {
        let Some(inventory) = &host.inventory else {
            continue;
        };
        let compared = ComparedHost {
            state: ExpectedHostState::Unexpected,
            host_id: Some(host.record.id),
            host_name: host.name(),
            ..ComparedHost::default()
        };
        let Some(at) = index.find(inventory) else {
            unexpected.push(compared);
            continue;
        };
        let found = differences(host, &list[at]);
        present[at].push(ComparedHost {
            state: ExpectedHostState::Present,
            expected: Some(list[at].clone()),
            differences: found.iter().map(ToString::to_string).collect(),
            ..compared
        });
    }
    for (entry, present) in list.iter().zip(&mut present) {
        if present.is_empty() {
            present.push(ComparedHost {
                expected: Some(entry.clone()),
                ..ComparedHost::default()
            });
        }
    }
    present.into_iter().flatten().chain(unexpected).collect()
}

#[cfg(test)]
#[path = "expected_hosts_tests.rs"]
mod tests;
