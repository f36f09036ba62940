//! The static networks of an infra-env's hosts: checks of a request, and the form that its images apply.

use std::collections::BTreeSet;

use model::Error;
use model::infra_env::{HostStaticNetworkConfig, InfraEnv};
use static_network::{NetworkForm, files, parse, problems};

use crate::bounds::{NETWORK_NICS, NETWORK_YAML_BYTES, NETWORKS, NIC_NAME_BYTES};
use crate::input::{is_mac, refuse};
use crate::versions::Number;

const FIELD: &str = "static_network_config";
/// Mistakes of one host that a refusal lists.
const LISTED: usize = 20;

/// Checks the static network configuration of all hosts, whichever form their image takes.
/// Source: assisted-service, pkg/staticnetworkconfig/generator.go, ValidateStaticConfigParamsYAML.
pub fn static_network_config(hosts: &[HostStaticNetworkConfig]) -> Result<(), Error> {
    if hosts.len() > NETWORKS {
        return Err(Error::invalid(
            FIELD,
            format!(
                "has {} hosts, the limit of an infra-env is {NETWORKS}",
                hosts.len()
            ),
        ));
    }
    let mut macs = BTreeSet::new();
    for (index, host) in hosts.iter().enumerate() {
        let at = format!("{FIELD}[{index}]");
        let names = nics(&format!("{at}.mac_interface_map"), host, &mut macs)?;
        let field = format!("{at}.network_yaml");
        let size = host.network_yaml.len();
        if size > NETWORK_YAML_BYTES {
            return Err(Error::invalid(
                field,
                format!("has {size} bytes, the limit of a host is {NETWORK_YAML_BYTES}"),
            ));
        }
        let mistakes = problems(&parse(&field, &host.network_yaml)?, Some(&names));
        if !mistakes.is_empty() {
            let texts: Vec<String> = mistakes
                .iter()
                .take(LISTED)
                .map(ToString::to_string)
                .collect();
            return Err(Error::invalid(field, texts.join("\n")));
        }
    }
    Ok(())
}

/// Checks that the infra-env's images can apply its static networks: those without nmstate's service need keyfiles,
/// which cannot express everything.
pub fn applicable_static_network(infra_env: &InfraEnv, service_from: &str) -> Result<(), Error> {
    let form = form_of(&infra_env.openshift_version, service_from);
    if form == NetworkForm::Policy || infra_env.static_network_config.is_empty() {
        return Ok(());
    }
    let hosts: Vec<HostStaticNetworkConfig> =
        serde_json::from_str(&infra_env.static_network_config)
            .map_err(|error| Error::internal("reading the static networks", error))?;
    hosts
        .iter()
        .enumerate()
        .try_for_each(|(index, host)| files(index, host, form).map(drop))
}

/// The form for images of `version`; `first` is the first version with nmstate's service. Empty versions and those
/// that do not parse have keyfiles, which every image reads.
pub fn form_of(version: &str, first: &str) -> NetworkForm {
    match (version.parse::<Number>(), first.parse::<Number>()) {
        (Ok(version), Ok(first)) if version.precedence(&first).is_ge() => NetworkForm::Policy,
        _ => NetworkForm::Keyfiles,
    }
}

/// The logical names of a host's NICs; `macs` has those of the hosts before.
fn nics<'a>(
    field: &str,
    host: &'a HostStaticNetworkConfig,
    macs: &mut BTreeSet<String>,
) -> Result<BTreeSet<&'a str>, Error> {
    let map = &host.mac_interface_map;
    if map.is_empty() {
        return Err(Error::invalid(
            field,
            "is empty: name at least one MAC address, which identifies the host",
        ));
    }
    if map.len() > NETWORK_NICS {
        return Err(Error::invalid(
            field,
            format!(
                "has {} entries, the limit of a host is {NETWORK_NICS}",
                map.len()
            ),
        ));
    }
    let mut names = BTreeSet::new();
    for entry in map {
        let (mac, name) = (&entry.mac_address, entry.logical_nic_name.as_str());
        if !is_mac(mac) {
            return Err(refuse(
                field,
                mac,
                "is not a MAC address: write 52:54:00:12:34:56",
            ));
        }
        if !macs.insert(mac.to_ascii_lowercase()) {
            return Err(refuse(
                field,
                mac,
                "is duplicated: a MAC address belongs to one interface of one host",
            ));
        }
        if !is_nic_name(name) {
            return Err(refuse(
                field,
                name,
                "is no name of an interface: use at most 64 letters, digits, '.', '_', '-', '@' or ':'",
            ));
        }
        if !names.insert(name) {
            return Err(refuse(
                field,
                name,
                "is duplicated: each interface of a host has its own logical_nic_name",
            ));
        }
    }
    Ok(names)
}

/// Names are lines of a file and patterns of the script that replaces them.
fn is_nic_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@:".contains(&byte);
    (1..=NIC_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use model::infra_env::MacInterfaceMapItem;
    use proptest::prelude::*;

    use super::*;
    use crate::versions::offer::NMSTATE_SERVICE_FROM;

    #[test]
    fn the_version_decides_on_the_form() {
        for (version, form) in [
            ("4.14.9", NetworkForm::Keyfiles),
            ("4.17.40", NetworkForm::Keyfiles),
            ("4.18", NetworkForm::Policy),
            ("4.18.0-ec.2", NetworkForm::Policy),
            ("4.19.1", NetworkForm::Policy),
            ("5.0", NetworkForm::Policy),
            ("", NetworkForm::Keyfiles),
            ("newest", NetworkForm::Keyfiles),
        ] {
            assert_eq!(form_of(version, NMSTATE_SERVICE_FROM), form, "{version}");
        }
    }

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

    const YAML: &str = "interfaces:\n- name: eth0\n  type: ethernet\n- name: bond0\n  type: bond\n  link-aggregation: {mode: 802.3ad}\n";

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
            (
                "port unknown",
                vec![host(
                    "interfaces:\n- name: bond0\n  type: bond\n  link-aggregation:\n    mode: 1\n    port: [eth1]\n",
                    &[one],
                )],
            ),
            (
                "name with a space",
                vec![host(YAML, &[("52:54:00:aa:00:01", "eth0 ")])],
            ),
            ("no yaml", vec![host("[", &[one])]),
            ("no interfaces", vec![host("routes: {}", &[one])]),
        ] {
            assert!(static_network_config(&hosts).is_err(), "{name}");
        }
    }

    #[test]
    fn names_by_place_and_by_mac_need_no_map() {
        let one = [("52:54:00:aa:00:01", "eth0")];
        for yaml in [
            "interfaces: [{name: eno1, type: ethernet}]",
            "interfaces: [{name: lan, type: ethernet, identifier: mac-address}]",
            "interfaces: [{name: wlan0, type: wifi}]",
            "interfaces: [{name: b, type: bond, link-aggregation: {mode: active-backup, port: [eth0, ens3]}}]",
        ] {
            static_network_config(&[host(yaml, &one)]).unwrap();
        }
    }

    // limit: static networks of an infra-env
    // limit: static network of a host
    // limit: NICs of a static network
    #[test]
    fn networks_are_bounded() {
        let hosts = |count: usize| -> Vec<HostStaticNetworkConfig> {
            let mac = |index: usize| format!("52:54:00:00:{:02x}:{:02x}", index / 256, index % 256);
            (0..count)
                .map(|index| host(YAML, &[(&mac(index), "eth0")]))
                .collect()
        };
        static_network_config(&hosts(NETWORKS)).unwrap();
        let error = static_network_config(&hosts(NETWORKS + 1)).unwrap_err();
        assert!(
            error.to_string().contains("limit of an infra-env"),
            "{error}"
        );

        let one = [("52:54:00:aa:00:01", "eth0")];
        let padded = |size: usize| format!("{YAML}#{}", "x".repeat(size - YAML.len() - 1));
        static_network_config(&[host(&padded(NETWORK_YAML_BYTES), &one)]).unwrap();
        let error = static_network_config(&[host(&padded(NETWORK_YAML_BYTES + 1), &one)]);
        assert!(error.unwrap_err().to_string().contains("limit of a host"));

        let many = |count: usize| {
            let mut host = host(YAML, &one);
            host.mac_interface_map = (0..count)
                .map(|index| MacInterfaceMapItem {
                    mac_address: format!("52:54:00:bb:{:02x}:{:02x}", index / 256, index % 256),
                    logical_nic_name: format!("eth{index}"),
                })
                .collect();
            static_network_config(&[host])
        };
        many(NETWORK_NICS).unwrap();
        let error = many(NETWORK_NICS + 1).unwrap_err();
        assert!(error.to_string().contains("limit of a host"), "{error}");
    }

    proptest! {
        #[test]
        fn no_check_panics(yaml in "\\PC*", mac in "\\PC*") {
            let _ = static_network_config(&[host(&yaml, &[(&mac, "eth0")])]);
        }
    }
}
