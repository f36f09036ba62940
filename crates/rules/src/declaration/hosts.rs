//! Hosts of an agent-config: expected hosts with their static networks.

use std::collections::BTreeSet;

use model::Error;
use model::expected_hosts::{DiskHints, ExpectedHost};
use model::host::HostRole;
use model::infra_env::{HostStaticNetworkConfig, MacInterfaceMapItem};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::refused;
use crate::input::is_mac;

/// A host as the file has it. Interfaces are sorted by MAC address.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DeclaredInterface {
    /// Name in the static network.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// MAC address.
    pub mac_address: String,
}

/// Hints in the file's spelling.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
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

impl DeclaredHost {
    /// Checks the host and brings it into the form in which hosts are compared.
    ///
    /// Errors: Invalid – a malformed MAC address.
    pub(super) fn normalised(mut self, at: &str) -> Result<Self, Error> {
        for interface in &mut self.interfaces {
            let mac = interface.mac_address.replace('-', ":").to_ascii_lowercase();
            if !is_mac(&mac) {
                let remedy = "is not a MAC address: write 52:54:00:12:34:56";
                let path = format!("{at}.interfaces");
                return Err(refused::value(
                    super::files::AGENT,
                    &path,
                    &interface.mac_address,
                    remedy,
                ));
            }
            interface.mac_address = mac;
        }
        self.interfaces
            .sort_by(|left, right| left.mac_address.cmp(&right.mac_address));
        self.root_device_hints = self
            .root_device_hints
            .filter(|hints| *hints != RootDeviceHints::default());
        Ok(self)
    }

    fn macs(&self) -> impl Iterator<Item = &str> {
        self.interfaces.iter().map(|one| one.mac_address.as_str())
    }

    /// The expected host; a known entry of the same machine keeps its serial number, which the file cannot hold.
    pub(super) fn expected(&self, known: &[ExpectedHost]) -> ExpectedHost {
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
    pub(super) fn static_network(&self) -> Option<Result<HostStaticNetworkConfig, Error>> {
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
pub(super) fn stored(
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
    // The file has no malformed address of a stored record, which was checked.
    hosts
        .into_iter()
        .map(|host| host.normalised("hosts").ok())
        .collect()
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
