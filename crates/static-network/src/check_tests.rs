//! Mistakes of configurations, each with its position.

use std::collections::BTreeSet;

use located_yaml::v1_2::from_yaml;
use proptest::prelude::*;

use super::problems;

/// The mistakes of a configuration on a host with NICs `eth0` and `eth1`.
fn mistakes(yaml: &str) -> Vec<String> {
    let nics = BTreeSet::from(["eth0", "eth1", "management-interface"]);
    let document = from_yaml(yaml).unwrap();
    let found = problems(&document, Some(&nics));
    found.iter().map(ToString::to_string).collect()
}

fn of_interface(members: &str) -> Vec<String> {
    mistakes(&format!(
        "interfaces: [{{name: eth0, type: ethernet, {members}}}]"
    ))
}

#[test]
fn values_are_checked() {
    for (members, expected) in [
        (
            "ipv4: {enabled: true, address: [{ip: 192.0.2.256, prefix-length: 24}]}",
            "ipv4.address[0].ip: is \"192.0.2.256\": write an address",
        ),
        (
            "ipv4: {enabled: true, address: [{ip: 192.0.2.25, prefix-length: 33}]}",
            "ipv4.address[0].prefix-length: is too long: ipv4 has at most 32 bits",
        ),
        (
            "ipv6: {enabled: true, address: [{ip: 'fd00::1', prefix-length: 129}]}",
            "ipv6 has at most 128 bits",
        ),
        (
            "ipv4: {enabled: true, address: [{ip: 192.0.2.25/24, prefix-length: 24}]}",
            "without the prefix",
        ),
        (
            "ipv4: {enabled: true, dchp: true}",
            "ipv4.dchp: is unknown: its name is dhcp",
        ),
        (
            "ipv4: {enabled: maybe}",
            "ipv4.enabled: is \"maybe\": write true or false",
        ),
        ("ipv6: {address: [{prefix-length: 64}]}", "has no ip"),
        ("mtu: many", "mtu: is \"many\""),
        (
            "mtu: 1000, ipv6: {enabled: true}",
            "IPv6 needs at least 1280",
        ),
        ("state: absnt", "state: is \"absnt\": write one of"),
        (
            "vlan: {base-iface: eth1, id: 7}",
            "vlan: belongs to type vlan",
        ),
        (
            "mac-address: 52:54:00:00:00",
            "mac-address: \"52:54:00:00:00\" is no MAC address",
        ),
        (
            "mac-address: zz:54:00:00:00:01",
            "is no MAC address: write 52:54:00:12:34:56",
        ),
        ("lldp: true", "lldp: is \"true\": write an object"),
    ] {
        let found = of_interface(members);
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{members}: {found:?}"
        );
    }
}

#[test]
fn interfaces_are_not_below_themselves() {
    for (interface, expected) in [
        (
            "{name: v, type: vlan, vlan: {base-iface: v, id: 5}}",
            "vlan.base-iface: \"v\" is based on itself",
        ),
        (
            "{name: b, type: bond, link-aggregation: {mode: 1, port: [b]}}",
            "link-aggregation.port[0]: \"b\" is a port of itself",
        ),
        (
            "{name: b, type: bond, link-aggregation: {mode: 1, options: {miimon: '100', arp_interval: 5}, port: [eth0]}}",
            "link-aggregation.options: has miimon and arp_interval",
        ),
        (
            "{name: b, type: bond, link-aggregation: {mode: 1, port: [null]}}",
            "link-aggregation.port[0]: is null",
        ),
    ] {
        let found = mistakes(&format!(
            "interfaces: [{{name: eth0, type: ethernet}}, {interface}]"
        ));
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{interface}: {found:?}"
        );
    }
    let route = "interfaces: [{name: eth0, type: ethernet, ipv4: {enabled: true}, ipv6: {enabled: true}}]\nroutes: {config: [{destination: 0.0.0.0/0, next-hop-address: 'fd00::1', next-hop-interface: eth0}]}";
    let found = mistakes(route);
    assert!(
        found.len() == 1
            && found[0].contains("next-hop-address: fd00::1 is of another family than 0.0.0.0/0"),
        "{found:?}"
    );
}

#[test]
fn kinds_have_what_they_need() {
    let base = "interfaces: [{name: eth0, type: ethernet}, ";
    for (interface, expected) in [
        (
            "{name: v, type: vlan, vlan: {base-iface: eth0, id: 5000}}",
            "vlan.id: is \"5000\": write a number from 0 to 4094",
        ),
        ("{name: v, type: vlan, vlan: {id: 5}}", "has no base-iface"),
        (
            "{name: v, type: vlan, vlan: {base-iface: bond7, id: 5}}",
            "\"bond7\" is no interface",
        ),
        ("{name: v, type: vlan}", "has no vlan"),
        (
            "{name: b, type: bond, link-aggregation: {mode: lacp, port: [eth0]}}",
            "link-aggregation.mode: is \"lacp\": write one of",
        ),
        (
            "{name: b, type: bond, link-aggregation: {mode: 7, port: [eth0]}}",
            "mode: is \"7\"",
        ),
        (
            "{name: b, type: bond, link-aggregation: {port: [eth0]}}",
            "has no mode",
        ),
        (
            "{name: b, type: bond, link-aggregation: {mode: 1, port: [eth0, bond7]}}",
            "\"bond7\" is no interface",
        ),
        (
            "{name: b, type: bond, link-aggregation: {mode: 1, port: [eth1, eth1]}}",
            "\"eth1\" is a port of b twice",
        ),
        (
            "{name: b, type: bond, link-aggregation: {mode: 1, port: [eth1]}}, {name: c, type: linux-bridge, bridge: {port: [{name: eth1}]}}",
            "\"eth1\" is a port of b, too",
        ),
        (
            "{name: a-name-of-20-letters, type: dummy}",
            "use at most 15 bytes",
        ),
        (
            "{name: eth0, type: dummy}",
            "is the name of an interface above",
        ),
        (
            "{name: 7, type: dummy}",
            "has no name: add \"name:\", a number in quotes",
        ),
        (
            "{name: eno9x, type: ethernet}], routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: eth9}]}",
            "\"eth9\" is no interface of this configuration",
        ),
        (
            "{name: eth1, type: ethernet, state: absent}], routes: {config: [{destination: 0.0.0.0/0, next-hop-interface: eth1}]}",
            "\"eth1\" is absent",
        ),
        (
            "{name: eth1, type: ethernet, ipv4: {enabled: true}}], routes: {config: [{destination: '::/0', next-hop-interface: eth1}]}",
            "\"eth1\" has no ipv6",
        ),
        (
            "{name: eth1}], dns-resolver: {config: {server: [dns.example.com]}}",
            "is no address of a DNS server",
        ),
        (
            "{name: eth7, type: ethernet}",
            "\"eth7\" is not in mac_interface_map",
        ),
    ] {
        // Rows with more than interfaces end their list themselves.
        let end = if interface.contains("], ") { "" } else { "]" };
        let yaml = format!("{{{base}{interface}{end}}}");
        let found = mistakes(&yaml);
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{yaml}: {found:?}"
        );
    }
}

#[test]
fn good_and_newer_configurations_pass() {
    for yaml in [
        "interfaces: [{name: eth0, type: ethernet, mtu: '1500', ipv4: {enabled: 'true', address: [{ip: 192.0.2.5, prefix-length: '24'}]}}]",
        "interfaces: [{name: management-interface, type: ethernet, ipv4: {enabled: true, dhcp: yes}}]",
        "interfaces: [{name: x, type: a-newer-one, its-own: {members: 1}}]",
        "interfaces: [{name: tun7, type: vxlan, state: absent, anything: here}]",
        "interfaces: [{name: bond0, type: bond, link-aggregation: {mode: 4, port: [ens3f0np0, eth1]}}]",
        "interfaces: [{name: br0, type: ovs-bridge, bridge: {port: [{name: br0}]}}, {name: br0, type: ovs-interface}]",
        "interfaces: [{name: eth0, type: ethernet, ipv6: {enabled: true}}]\nroutes: {config: [{destination: '::/0', next-hop-address: 'fe80::1', next-hop-interface: eth0}]}\ndns-resolver: {config: {server: ['fe80::1%eth0']}}",
        "interfaces: [{name: eth0}]\nroutes: {config: [{destination: 198.51.100.0/24, route-type: blackhole}, {state: absent, next-hop-interface: old}]}",
    ] {
        assert_eq!(mistakes(yaml), [] as [&str; 0], "{yaml}");
    }
}

#[test]
fn positions_are_those_of_the_text() {
    let found = mistakes("interfaces:\n- name: eth0\n  type: ethernet\n  ipv4:\n    dchp: true\n");
    assert_eq!(
        found,
        ["5:5: interfaces[0].ipv4.dchp: is unknown: its name is dhcp"]
    );
}

#[test]
fn mistakes_are_bounded() {
    let unknown = "  - {x: 1, name: eth0}\n".repeat(5000);
    let found = mistakes(&format!("interfaces:\n{unknown}"));
    assert_eq!(found.len(), 100);
}

proptest! {
    #[test]
    fn no_configuration_panics(yaml in "\\PC{0,120}") {
        if let Ok(document) = from_yaml(&yaml) {
            problems(&document, None);
        }
    }
}
