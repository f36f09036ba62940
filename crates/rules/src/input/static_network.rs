//! Static network configuration of an infra-env's hosts.

use std::collections::BTreeSet;

use model::Error;
use model::infra_env::HostStaticNetworkConfig;
use serde_json::Value;

use super::refusal::refuse;

const FIELD: &str = "static_network_config";
/// Interface types that the network configuration creates, without a MAC address of their own.
const CREATED: &[&str] = &[
    "bond",
    "dummy",
    "linux-bridge",
    "loopback",
    "mac-vlan",
    "mac-vtap",
    "ovs-bridge",
    "ovs-interface",
    "veth",
    "vlan",
    "vrf",
    "vxlan",
];

/// Checks the static network configuration of all hosts.
/// Source: assisted-service, pkg/staticnetworkconfig/generator.go, ValidateStaticConfigParamsYAML.
pub fn static_network_config(hosts: &[HostStaticNetworkConfig]) -> Result<(), Error> {
    let mut macs = BTreeSet::new();
    for (index, host) in hosts.iter().enumerate() {
        let at = format!("{FIELD}[{index}]");
        if host.mac_interface_map.is_empty() {
            return Err(Error::invalid(
                format!("{at}.mac_interface_map"),
                "is empty: name at least one MAC address, which identifies the host",
            ));
        }
        let mut names = BTreeSet::new();
        for entry in &host.mac_interface_map {
            let field = format!("{at}.mac_interface_map");
            if !is_mac(&entry.mac_address) {
                return Err(refuse(
                    &field,
                    &entry.mac_address,
                    "is not a MAC address: write 52:54:00:12:34:56",
                ));
            }
            if !macs.insert(entry.mac_address.to_ascii_lowercase()) {
                return Err(refuse(
                    &field,
                    &entry.mac_address,
                    "is duplicated: a MAC address belongs to one interface of one host",
                ));
            }
            if entry.logical_nic_name.is_empty() || !names.insert(entry.logical_nic_name.as_str()) {
                return Err(refuse(
                    &field,
                    &entry.logical_nic_name,
                    "is empty or duplicated: each interface of a host has its own logical_nic_name",
                ));
            }
        }
        interfaces(&format!("{at}.network_yaml"), &host.network_yaml, &names)?;
    }
    Ok(())
}

/// Source: assisted-service, pkg/staticnetworkconfig/generator.go, validateInterfaceNamesExistenceYAML.
fn interfaces(field: &str, yaml: &str, names: &BTreeSet<&str>) -> Result<(), Error> {
    let state: Value = serde_yaml::from_str(yaml)
        .map_err(|error| Error::invalid(field, format!("is not YAML: {error}")))?;
    let Some(list) = state.get("interfaces").and_then(Value::as_array) else {
        return Err(Error::invalid(
            field,
            "has no list of interfaces: write \"interfaces:\" and one item for each interface",
        ));
    };
    for interface in list {
        let text = |member: &str| {
            interface
                .get(member)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let name = text("name");
        if name.is_empty() {
            return Err(Error::invalid(
                field,
                "an interface has no name: add \"name:\"",
            ));
        }
        if !names.contains(name) && !CREATED.contains(&text("type")) {
            return Err(refuse(
                field,
                name,
                "is not in mac_interface_map: add its MAC address there",
            ));
        }
    }
    Ok(())
}

pub(crate) fn is_mac(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == 6
        && parts
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use model::infra_env::MacInterfaceMapItem;
    use proptest::prelude::*;

    use super::*;

    fn host(yaml: &str, map: &[(&str, &str)]) -> HostStaticNetworkConfig {
        HostStaticNetworkConfig {
            network_yaml: yaml.to_owned(),
            mac_interface_map: map
                .iter()
                .map(|(mac, name)| MacInterfaceMapItem {
                    mac_address: (*mac).to_owned(),
                    logical_nic_name: (*name).to_owned(),
                })
                .collect(),
        }
    }

    const YAML: &str = "interfaces:\n- name: eth0\n  type: ethernet\n- name: bond0\n  type: bond\n";

    #[test]
    fn good_configuration_passes() {
        let map = [("52:54:00:aa:00:01", "eth0")];
        assert!(static_network_config(&[host(YAML, &map)]).is_ok());
        assert!(static_network_config(&[]).is_ok());
    }

    #[test]
    fn bad_configuration_is_refused() {
        let one = ("52:54:00:aa:00:01", "eth0");
        for (name, hosts) in [
            ("no map", vec![host(YAML, &[])]),
            ("bad mac", vec![host(YAML, &[("52:54", "eth0")])]),
            (
                "name twice",
                vec![host(YAML, &[one, ("52:54:00:aa:00:02", "eth0")])],
            ),
            (
                "mac twice",
                vec![
                    host(YAML, &[one]),
                    host(YAML, &[("52:54:00:AA:00:01", "eth0")]),
                ],
            ),
            (
                "name unknown",
                vec![host(YAML, &[("52:54:00:aa:00:01", "eth1")])],
            ),
            ("no yaml", vec![host("[", &[one])]),
            ("no interfaces", vec![host("routes: {}", &[one])]),
        ] {
            assert!(static_network_config(&hosts).is_err(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_check_panics(yaml in "\\PC*", mac in "\\PC*") {
            let _ = static_network_config(&[host(&yaml, &[(&mac, "eth0")])]);
        }
    }
}
