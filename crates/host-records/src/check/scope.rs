//! The records of all files, by kind and by name.

use std::collections::HashMap;

use super::finding::RecordCounts;
use crate::{ApiGroups, BmcAddress, MacAddress, RecordFile, RecordNode};

/// Settings of the checks.
#[derive(Debug, Clone, Default)]
pub struct CheckSettings {
    /// API versions and the namespace of machines.
    pub groups: ApiGroups,
    /// Whether the secrets of the BMCs are kept elsewhere: a missing one is no mistake.
    pub has_secrets_elsewhere: bool,
}

/// Kind of the records of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckedKind {
    /// All documents.
    Any,
    /// BareMetalHost.
    Host,
    /// Secret.
    Secret,
    /// Machine.
    Machine,
}

/// The set that is checked.
pub(super) struct CheckScope<'a> {
    pub(super) settings: &'a CheckSettings,
    all: Vec<RecordNode<'a>>,
    hosts: Vec<RecordNode<'a>>,
    secrets: Vec<RecordNode<'a>>,
    machines: Vec<RecordNode<'a>>,
    /// The first record of each kind, namespace and name.
    by_name: HashMap<(&'a str, &'a str, &'a str), RecordNode<'a>>,
    /// The first record of each kind and name, in any namespace.
    in_any_namespace: HashMap<[&'a str; 2], RecordNode<'a>>,
    /// The first host of each boot MAC address.
    by_mac: HashMap<MacAddress, RecordNode<'a>>,
    /// The first host of each system.
    by_system: HashMap<(bool, String, u16, String), RecordNode<'a>>,
    /// The first host of each consumer.
    by_consumer: HashMap<[&'a str; 3], RecordNode<'a>>,
    /// The first host of each credentials secret.
    by_secret: HashMap<[&'a str; 2], RecordNode<'a>>,
}

impl<'a> CheckScope<'a> {
    pub(super) fn new(files: &'a [RecordFile], settings: &'a CheckSettings) -> Self {
        let all: Vec<_> = files.iter().flat_map(RecordFile::records).collect();
        let of_kind = |kind: &str| -> Vec<RecordNode<'a>> {
            let some = all.iter().filter(|record| record.kind() == kind);
            some.copied().collect()
        };
        let mut scope = Self {
            settings,
            hosts: of_kind(ApiGroups::HOST),
            secrets: of_kind(ApiGroups::SECRET),
            machines: of_kind(ApiGroups::MACHINE),
            by_name: HashMap::new(),
            in_any_namespace: HashMap::new(),
            by_mac: HashMap::new(),
            by_system: HashMap::new(),
            by_consumer: HashMap::new(),
            by_secret: HashMap::new(),
            all,
        };
        for record in &scope.all {
            let key = (record.kind(), namespace_of(record, settings), record.name());
            scope.by_name.entry(key).or_insert(*record);
            let key = [record.kind(), record.name()];
            scope.in_any_namespace.entry(key).or_insert(*record);
        }
        for host in &scope.hosts {
            if let Some(mac) = boot_mac(host) {
                scope.by_mac.entry(mac).or_insert(*host);
            }
            if let Some(address) = bmc_address(host) {
                scope.by_system.entry(system(&address)).or_insert(*host);
            }
            if let Some(consumer) = consumer(host) {
                scope.by_consumer.entry(consumer).or_insert(*host);
            }
            let name = host.text(&["spec", "bmc", "credentialsName"]);
            let secret = [namespace_of(host, settings), name];
            scope.by_secret.entry(secret).or_insert(*host);
        }
        scope
    }

    /// Records of a kind.
    pub(super) fn records(&self, kind: CheckedKind) -> &[RecordNode<'a>] {
        match kind {
            CheckedKind::Any => &self.all,
            CheckedKind::Host => &self.hosts,
            CheckedKind::Secret => &self.secrets,
            CheckedKind::Machine => &self.machines,
        }
    }

    pub(super) fn groups(&self) -> &'a ApiGroups {
        &self.settings.groups
    }

    /// The namespace of a record. One without is reported once, and taken for one of the default namespace.
    pub(super) fn namespace<'b>(&'b self, record: &RecordNode<'b>) -> &'b str {
        namespace_of(record, self.settings)
    }

    pub(super) fn counts(&self) -> RecordCounts {
        let [hosts, secrets, machines] = [&self.hosts, &self.secrets, &self.machines].map(Vec::len);
        RecordCounts {
            hosts,
            secrets,
            machines,
            others: self.all.len() - hosts - secrets - machines,
        }
    }

    /// The first record of that kind, namespace and name.
    pub(super) fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<RecordNode<'a>> {
        self.by_name.get(&(kind, namespace, name)).copied()
    }

    /// The first record of that kind and name, in any namespace.
    pub(super) fn find_elsewhere(&self, kind: &str, name: &str) -> Option<RecordNode<'a>> {
        self.in_any_namespace.get(&[kind, name]).copied()
    }

    /// An earlier host with the boot MAC address.
    pub(super) fn first_of_mac(
        &self,
        mac: MacAddress,
        host: &RecordNode<'_>,
    ) -> Option<RecordNode<'a>> {
        other(self.by_mac.get(&mac), host)
    }

    /// An earlier host with the system of this address.
    pub(super) fn first_of_system(
        &self,
        address: &BmcAddress,
        host: &RecordNode<'_>,
    ) -> Option<RecordNode<'a>> {
        other(self.by_system.get(&system(address)), host)
    }

    /// An earlier host with the consumer.
    pub(super) fn first_of_consumer(&self, host: &RecordNode<'a>) -> Option<RecordNode<'a>> {
        other(self.by_consumer.get(&consumer(host)?), host)
    }

    /// The host that a machine consumes. Source: cluster-api-provider-baremetal, `consumerRefMatches`.
    pub(super) fn host_of_machine(&self, machine: &RecordNode<'_>) -> Option<RecordNode<'a>> {
        let key = [ApiGroups::MACHINE, self.namespace(machine), machine.name()];
        let host = self.by_consumer.get(&key).copied();
        host.filter(|host| !host.name().is_empty())
    }

    /// The host that names the secret for its credentials.
    pub(super) fn host_of_secret(&self, secret: &RecordNode<'a>) -> Option<RecordNode<'a>> {
        let key = [self.namespace(secret), secret.name()];
        self.by_secret.get(&key).copied()
    }
}

fn namespace_of<'a>(record: &RecordNode<'a>, settings: &'a CheckSettings) -> &'a str {
    match record.namespace() {
        "" => &settings.groups.namespace,
        namespace => namespace,
    }
}

/// The boot MAC address of a host, in whichever form.
pub(super) fn boot_mac(host: &RecordNode<'_>) -> Option<MacAddress> {
    match host.text(&["spec", "bootMACAddress"]).parse() {
        Ok(mac) | Err(crate::MacAddressError::Form(mac)) => Some(mac),
        Err(_) => None,
    }
}

/// The BMC address of a host, if it is one.
pub(super) fn bmc_address(host: &RecordNode<'_>) -> Option<BmcAddress> {
    host.text(&["spec", "bmc", "address"]).parse().ok()
}

fn system(address: &BmcAddress) -> (bool, String, u16, String) {
    let (is_redfish, host, port, system) = address.identity();
    (is_redfish, host, port, system.to_owned())
}

fn consumer<'a>(host: &RecordNode<'a>) -> Option<[&'a str; 3]> {
    let [kind, namespace, name] =
        ["kind", "namespace", "name"].map(|member| host.text(&["spec", "consumerRef", member]));
    (!name.is_empty()).then_some([kind, namespace, name])
}

fn other<'a>(first: Option<&RecordNode<'a>>, host: &RecordNode<'_>) -> Option<RecordNode<'a>> {
    let first = first.copied()?;
    (!std::ptr::eq(first.root, host.root)).then_some(first)
}

/// `name (file:line)`, for findings about another record.
pub(super) fn reference(record: &RecordNode<'_>) -> String {
    let name = record.name().escape_debug();
    format!("{name} ({}:{})", record.file, record.root.place.line)
}
