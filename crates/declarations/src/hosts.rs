//! Hosts of an agent-config: expected hosts with their static networks.

use std::collections::{BTreeMap, BTreeSet};

use located_yaml::v1_2::{ConfigNode, NodeValue};
use model::Error;
use model::expected_hosts::{DiskHints, ExpectedHost};
use model::host::HostRole;
use model::infra_env::{HostStaticNetworkConfig, MacInterfaceMapItem};
use rules::input;
use rules::input::is_mac;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::members::FileMembers;
use crate::problems::SiteProblems;

/// Roles that files declare.
const ROLES: [HostRole; 3] = [HostRole::Master, HostRole::Arbiter, HostRole::Worker];

/// A host as the file has it. Interfaces are sorted by MAC address.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredHost {
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// Role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<HostRole>,
    /// Installation disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_device_hints: Option<RootDeviceHints>,
    /// Interfaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<DeclaredInterface>,
    /// Static network in nmstate's format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_config: Option<Value>,
}

/// An interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeclaredInterface {
    /// Name in the static network.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// MAC address.
    pub mac_address: String,
}

/// Hints in the file's spelling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RootDeviceHints {
    #[serde(skip_serializing_if = "String::is_empty")]
    device_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    hctl: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    model: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    vendor: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    serial_number: String,
    #[serde(skip_serializing_if = "is_zero")]
    min_size_gigabytes: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    wwn: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    rotational: Option<bool>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(value: &i64) -> bool {
    *value == 0
}

impl From<DiskHints> for RootDeviceHints {
    fn from(hints: DiskHints) -> Self {
        Self {
            device_name: hints.device_name,
            hctl: hints.hctl,
            model: hints.model,
            vendor: hints.vendor,
            serial_number: hints.serial_number,
            min_size_gigabytes: hints.min_size_gigabytes,
            wwn: hints.wwn,
            rotational: hints.rotational,
        }
    }
}

impl From<RootDeviceHints> for DiskHints {
    fn from(hints: RootDeviceHints) -> Self {
        Self {
            device_name: hints.device_name,
            hctl: hints.hctl,
            model: hints.model,
            vendor: hints.vendor,
            serial_number: hints.serial_number,
            min_size_gigabytes: hints.min_size_gigabytes,
            wwn: hints.wwn,
            rotational: hints.rotational,
        }
    }
}

/// The list that declares hosts, with the names of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostSource {
    /// `platform.baremetal.hosts`.
    InstallConfig,
    /// `hosts` of the agent-config.
    AgentConfig,
}

impl HostSource {
    /// Path of the list.
    pub(crate) fn list(self) -> &'static str {
        match self {
            Self::InstallConfig => "platform.baremetal.hosts",
            Self::AgentConfig => "hosts",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::InstallConfig => "name",
            Self::AgentConfig => "hostname",
        }
    }
}

/// Reads the hosts of a file, and refuses names and MAC addresses that two of them have.
pub(crate) fn read(
    members: &FileMembers,
    source: HostSource,
    problems: &mut SiteProblems,
) -> Vec<DeclaredHost> {
    let mut reader = HostReader {
        members,
        source,
        problems,
        seen: BTreeMap::new(),
    };
    let paths = (0..members.count(source.list())).map(|at| format!("{}[{at}]", source.list()));
    paths.map(|path| reader.host(&path).normalised()).collect()
}

struct HostReader<'a> {
    members: &'a FileMembers,
    source: HostSource,
    problems: &'a mut SiteProblems,
    /// Paths by name or MAC address.
    seen: BTreeMap<String, String>,
}

impl HostReader<'_> {
    fn host(&mut self, path: &str) -> DeclaredHost {
        let text = |path: String| self.members.text(&path).unwrap_or_default();
        let given = text(format!("{path}.{}", self.source.name()));
        let hostname = given.to_ascii_lowercase();
        if hostname != given {
            let path = format!("{path}.{}", self.source.name());
            let text = format!("is read as {hostname}: nodes have lower-case names");
            self.problems.note(self.members.file, &path, text);
        }
        let network = self.members.node(&format!("{path}.networkConfig"));
        let network = network.filter(|node| !node.members().is_empty()).cloned();
        if !hostname.is_empty() {
            let path = format!("{path}.{}", self.source.name());
            let checked = input::hostname(&hostname);
            self.members.check(self.problems, &path, checked);
            self.unique(&hostname, &path);
        }
        let host = DeclaredHost {
            role: self.role(path),
            root_device_hints: self.hints(path),
            interfaces: match self.source {
                HostSource::AgentConfig => self.interfaces(path),
                HostSource::InstallConfig => self.boot_interface(path, network.as_ref()),
            },
            network_config: network.as_ref().map(ConfigNode::to_json),
            hostname,
        };
        if let Some(network) = &network {
            self.network(path, network, &host);
        }
        host
    }

    /// Refuses a value that another host has.
    fn unique(&mut self, value: &str, path: &str) {
        if let Some(other) = self.seen.insert(value.to_owned(), path.to_owned())
            && self.problems.refuses_disagreements()
        {
            let remedy = format!("is that of {other}, too: each host has its own");
            self.members
                .refuse_value(self.problems, path, (value, &remedy));
        }
    }

    fn role(&mut self, path: &str) -> Option<HostRole> {
        let path = format!("{path}.role");
        let text = self.members.text(&path).filter(|text| !text.is_empty())?;
        let role = text.parse().ok().filter(|role| ROLES.contains(role));
        if role.is_none() {
            let remedy = "is unknown: write master, arbiter or worker";
            self.members
                .refuse_value(self.problems, &path, (&text, remedy));
        }
        role
    }

    fn hints(&mut self, path: &str) -> Option<RootDeviceHints> {
        let path = format!("{path}.rootDeviceHints");
        let hints: RootDeviceHints =
            serde_json::from_value(self.members.node(&path)?.to_json()).unwrap_or_default();
        let device = &hints.device_name;
        if !device.is_empty() && !device.starts_with("/dev/") {
            let path = format!("{path}.deviceName");
            let remedy = "is no device: write /dev/sda or /dev/disk/by-path/…";
            self.members
                .refuse_value(self.problems, &path, (device, remedy));
        }
        Some(hints)
    }

    fn mac(&mut self, path: &str) -> Option<String> {
        let text = self.members.text(path)?;
        let mac = text.replace('-', ":").to_ascii_lowercase();
        if !is_mac(&mac) {
            let remedy = "is not a MAC address: write 52:54:00:12:34:56";
            self.members
                .refuse_value(self.problems, path, (&text, remedy));
            return None;
        }
        self.unique(&mac, path);
        Some(mac)
    }

    fn interfaces(&mut self, path: &str) -> Vec<DeclaredInterface> {
        let list = format!("{path}.interfaces");
        let mut interfaces = Vec::new();
        for at in 0..self.members.count(&list) {
            let path = format!("{list}[{at}]");
            let name = self.members.text(&format!("{path}.name"));
            let member = format!("{path}.macAddress");
            if self.members.node(&member).is_none() {
                let reason = "has no macAddress, which identifies the host";
                self.members.refuse(self.problems, &path, reason);
            }
            if let Some(mac_address) = self.mac(&member) {
                interfaces.push(DeclaredInterface {
                    name: name.unwrap_or_default(),
                    mac_address,
                });
            }
        }
        interfaces
    }

    /// The interfaces of networkConfig that have MAC addresses, or else the one that boots. Source: openshift/installer,
    /// pkg/asset/agent/manifests/network.go.
    fn boot_interface(
        &mut self,
        path: &str,
        network: Option<&ConfigNode>,
    ) -> Vec<DeclaredInterface> {
        let boot = self.mac(&format!("{path}.bootMACAddress"));
        let interfaces = network.and_then(|node| node.get("interfaces"));
        let interfaces = interfaces.map(ConfigNode::items).unwrap_or_default();
        let text = |node: &ConfigNode, member: &str| node.get(member)?.as_text().map(str::to_owned);
        let known = interfaces.iter().filter_map(|node| {
            let mac_address = text(node, "mac-address")?.to_ascii_lowercase();
            is_mac(&mac_address).then(|| DeclaredInterface {
                name: text(node, "name").unwrap_or_default(),
                mac_address,
            })
        });
        let mut known: Vec<DeclaredInterface> = known.collect();
        known.dedup_by(|left, right| left.mac_address == right.mac_address);
        let is_known = |mac: &String| known.iter().any(|one| one.mac_address == *mac);
        if let Some(mac) = boot.filter(|mac| !is_known(mac)) {
            let name = if network.is_some() { "boot" } else { "" };
            known.push(DeclaredInterface {
                name: name.to_owned(),
                mac_address: mac,
            });
        }
        known
    }

    /// Names of interfaces that the static network does not use: all of them are a mistake, some are other NICs.
    fn unused_names(&mut self, path: &str, network: &ConfigNode, host: &DeclaredHost) {
        let mut used = BTreeSet::new();
        add_texts(network, &mut used);
        let named = host.interfaces.iter().map(|one| one.name.as_str());
        let named: Vec<&str> = named.filter(|name| !name.is_empty()).collect();
        let unused: Vec<&str> = named
            .iter()
            .copied()
            .filter(|name| !used.contains(name))
            .collect();
        // The one that boots has no name of its own in an install-config.
        if unused.is_empty() || self.source == HostSource::InstallConfig {
            return;
        }
        let path = format!("{path}.interfaces");
        let names = unused.join(", ");
        if unused.len() < named.len() {
            let text =
                format!("{names}: not in networkConfig, the MAC address identifies the host alone");
            self.problems.note(self.members.file, &path, text);
        } else if self.problems.refuses_disagreements() {
            let reason = format!(
                "names {names}, and networkConfig has other names: write the same name in both"
            );
            self.members.refuse(self.problems, &path, reason);
        }
    }

    fn network(&mut self, path: &str, network: &ConfigNode, host: &DeclaredHost) {
        self.unused_names(path, network, host);
        let names: BTreeSet<&str> = host
            .interfaces
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        for problem in static_network::problems(network, Some(&names)) {
            if problem.is_disagreement && !self.problems.refuses_disagreements() {
                continue;
            }
            let path = format!("{path}.networkConfig{}", problem.path);
            self.problems
                .refuse(self.members.file, problem.at, path, problem.reason);
        }
    }
}

/// Adds the texts of all values.
fn add_texts<'a>(node: &'a ConfigNode, texts: &mut BTreeSet<&'a str>) {
    match &node.value {
        NodeValue::Scalar { text, .. } => {
            texts.insert(text);
        }
        NodeValue::List(items) => items.iter().for_each(|item| add_texts(item, texts)),
        NodeValue::Object(members) => {
            for member in members {
                add_texts(&member.node, texts);
            }
        }
    }
}

/// BMCs of the hosts as the generated install-config has them; none without any. The list replaces the generated one, so
/// that it has all hosts.
pub(crate) fn machines_with_bmcs(
    members: &FileMembers,
    source: HostSource,
    hosts: &[DeclaredHost],
) -> Option<Value> {
    let bmc = |at: usize| members.node(&format!("{}[{at}].bmc", source.list()));
    let has_address = |at: usize| {
        let address = bmc(at).and_then(|bmc| bmc.get("address")?.as_text());
        address.is_some_and(|address| !address.is_empty())
    };
    if !(0..hosts.len()).any(has_address) {
        return None;
    }
    let machines = hosts.iter().enumerate().map(|(at, host)| {
        let boot = members.text(&format!("{}[{at}].bootMACAddress", source.list()));
        let mode = members.text(&format!("{}[{at}].bootMode", source.list()));
        let boot = boot.or_else(|| host.macs().next().map(str::to_owned));
        let empty = || json!({ "address": "", "username": "", "password": "" });
        json!({
            "name": host.hostname,
            "role": host.role.map_or("", HostRole::as_str),
            "bootMACAddress": boot.unwrap_or_default(),
            "bootMode": mode.unwrap_or_else(|| "UEFI".to_owned()),
            "bmc": bmc(at).map_or_else(empty, ConfigNode::to_json),
        })
    });
    Some(machines.collect())
}

impl DeclaredHost {
    /// The host in the form in which hosts are compared.
    fn normalised(mut self) -> Self {
        self.interfaces
            .sort_by(|left, right| left.mac_address.cmp(&right.mac_address));
        self.root_device_hints = self
            .root_device_hints
            .filter(|hints| *hints != RootDeviceHints::default());
        self
    }

    fn macs(&self) -> impl Iterator<Item = &str> {
        self.interfaces.iter().map(|one| one.mac_address.as_str())
    }

    /// The expected host; a known entry of the same machine keeps its serial number, which the file cannot hold.
    pub(crate) fn expected(&self, known: &[ExpectedHost]) -> ExpectedHost {
        let is_same = |entry: &&ExpectedHost| {
            (!self.hostname.is_empty() && entry.name == self.hostname)
                || self
                    .macs()
                    .any(|mac| entry.mac_addresses.iter().any(|one| one == mac))
        };
        let serial = known
            .iter()
            .find(is_same)
            .map(|entry| entry.serial_number.clone());
        ExpectedHost {
            serial_number: serial.unwrap_or_default(),
            mac_addresses: self.macs().map(str::to_owned).collect(),
            name: self.hostname.clone(),
            role: self.role,
            installation_disk: self.root_device_hints.clone().map(Into::into),
        }
    }

    /// The static network; none for a host that has none.
    pub(crate) fn static_network(&self) -> Option<Result<HostStaticNetworkConfig, Error>> {
        let network = self.network_config.as_ref()?;
        let mac_interface_map = self.interfaces.iter().map(|one| MacInterfaceMapItem {
            mac_address: one.mac_address.clone(),
            logical_nic_name: one.name.clone(),
        });
        let text = serde_yaml::to_string(network)
            .map_err(|error| Error::internal("printing a static network", error));
        Some(text.map(|network_yaml| HostStaticNetworkConfig {
            network_yaml,
            mac_interface_map: mac_interface_map.collect(),
        }))
    }
}

/// Hosts of the stored records: the expected ones, then static networks of others.
pub(crate) fn stored(
    expected: Option<&[ExpectedHost]>,
    networks: &[HostStaticNetworkConfig],
) -> Option<Vec<DeclaredHost>> {
    if expected.is_none() && networks.is_empty() {
        return None;
    }
    let mut used = BTreeSet::new();
    let mut hosts = Vec::new();
    for entry in expected.unwrap_or_default() {
        let is_own = |network: &HostStaticNetworkConfig| {
            let mut map = network.mac_interface_map.iter();
            map.any(|one| {
                let mac = one.mac_address.to_ascii_lowercase();
                entry.mac_addresses.contains(&mac)
            })
        };
        let own = networks.iter().position(is_own);
        used.extend(own);
        hosts.push(DeclaredHost {
            hostname: entry.name.clone(),
            role: entry.role,
            root_device_hints: entry.installation_disk.clone().map(Into::into),
            ..with_network(&entry.mac_addresses, own.map(|at| &networks[at]))
        });
    }
    let rest = networks
        .iter()
        .enumerate()
        .filter(|(at, _)| !used.contains(at));
    hosts.extend(rest.map(|(_, network)| with_network(&[], Some(network))));
    Some(hosts.into_iter().map(DeclaredHost::normalised).collect())
}

fn with_network(macs: &[String], network: Option<&HostStaticNetworkConfig>) -> DeclaredHost {
    let mut interfaces: Vec<DeclaredInterface> = Vec::new();
    for one in network
        .iter()
        .flat_map(|network| &network.mac_interface_map)
    {
        interfaces.push(DeclaredInterface {
            name: one.logical_nic_name.clone(),
            mac_address: one.mac_address.to_ascii_lowercase(),
        });
    }
    for mac in macs {
        if !interfaces.iter().any(|one| one.mac_address == *mac) {
            interfaces.push(DeclaredInterface {
                name: String::new(),
                mac_address: mac.clone(),
            });
        }
    }
    DeclaredHost {
        interfaces,
        network_config: network.and_then(|one| serde_yaml::from_str(&one.network_yaml).ok()),
        ..DeclaredHost::default()
    }
}
