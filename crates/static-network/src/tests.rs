use std::fmt::Write as _;

use model::infra_env::MacInterfaceMapItem;

use super::*;

fn host(yaml: &str) -> HostStaticNetworkConfig {
    let item = |index: u8| MacInterfaceMapItem {
        mac_address: format!("52:54:00:aa:00:0{index}"),
        logical_nic_name: format!("eth{index}"),
    };
    HostStaticNetworkConfig {
        network_yaml: yaml.to_owned(),
        mac_interface_map: vec![item(1), item(0)],
    }
}

/// The keyfiles as one text.
fn rendered(yaml: &str) -> Result<String, Error> {
    let files = files(0, &host(yaml), NetworkForm::Keyfiles)?;
    let texts: Vec<String> = files
        .iter()
        .filter(|file| file.name != "mac_interface.ini")
        .map(|file| format!("=== {}\n{}", file.name, file.content))
        .collect();
    Ok(texts.join("\n"))
}

/// The golden files are the output of nmstate 2.2.62 (`NetworkState::gen_conf`) for the samples, with the line
/// `autoconnect-priority=1` that assisted-service adds.
#[test]
fn keyfiles_are_those_of_nmstate() {
    for (name, yaml) in [
        ("automatic", include_str!("samples/automatic.yaml")),
        ("bond", include_str!("samples/bond.yaml")),
        ("bridge", include_str!("samples/bridge.yaml")),
        ("by_mac", include_str!("samples/by_mac.yaml")),
        ("ethernet", include_str!("samples/ethernet.yaml")),
        ("rules", include_str!("samples/rules.yaml")),
    ] {
        insta::assert_snapshot!(name, rendered(yaml).unwrap());
    }
}

/// As nmstate writes it, also for a family that is not configured.
#[test]
fn awaited_families_may_not_fail() {
    for (wait, v4, v6) in [
        ("any", "true", "true"),
        ("ipv4", "false", "true"),
        ("ipv6", "true", "false"),
        ("ipv4+ipv6", "false", "false"),
    ] {
        for ip in [
            "",
            ", ipv4: {enabled: true, dhcp: true}",
            ", ipv6: {enabled: true}",
        ] {
            let text =
                rendered(&format!("interfaces: [{{name: e, wait-ip: {wait}{ip}}}]")).unwrap();
            let (before, after) = text.split_once("[ipv6]").unwrap();
            for (section, may_fail) in [(before, v4), (after, v6)] {
                let line = format!("\nmay-fail={may_fail}\n");
                assert!(section.contains(&line), "{wait}{ip}: {text}");
            }
        }
    }
}

/// Configurations that keyfiles cannot express, each with a part of the refusal.
static INEXPRESSIBLE: &[(&str, &str)] = &[
    (
        "interfaces: [{name: e, dispatch: {post-activation: x}}]",
        "1:34: interfaces[0].dispatch: interface e of type ethernet: keyfiles cannot express the member dispatch",
    ),
    (
        "interfaces: [{name: e}, {name: t, type: team}]",
        "1:41: interfaces[1].type: interface t of type team: keyfiles cannot express the type team",
    ),
    (
        "interfaces: [{name: e, ethtool: {tunable: {rx: true}}}]",
        "interfaces[0].ethtool.tunable: interface e of type ethernet",
    ),
    (
        "interfaces: [{name: e, ethtool: {feature: {rx-magic: true}}}]",
        "rx-magic is unknown",
    ),
    (
        "interfaces: [{name: e, mtu: much}]",
        "1:29: interfaces[0].mtu: interface e of type ethernet: \"much\" is not",
    ),
    (
        "interfaces: [{name: e, vlan: {base-iface: a, id: 1}}]",
        "another type",
    ),
    ("interfaces: [{name: v, type: vlan}]", "has no vlan"),
    (
        "interfaces: [{name: v, type: vrf, vrf: {port: [a], route-table-id: 0}}]",
        "1:68: interfaces[0].vrf.route-table-id: interface v of type vrf: is 0",
    ),
    ("interfaces: [{name: v, type: vrf}]", "has no vrf"),
    (
        "interfaces: [{name: v, type: vrf, vrf: {port: a, route-table-id: 1}}]",
        "no list",
    ),
    (
        "interfaces: [{name: m, type: mac-vlan, mac-vlan: {mode: vepa}}]",
        "has no base-iface",
    ),
    (
        "interfaces: [{name: m, type: mac-vlan, mac-vlan: {base-iface: e, mode: hairpin}}]",
        "interfaces[0].mac-vlan.mode: interface m of type mac-vlan: mode cannot be \"hairpin\": write one of [vepa bridge",
    ),
    (
        "interfaces: [{name: m, type: mac-vlan, mac-vlan: {base-iface: e, mode: vepa, promiscuous: no}}]",
        "promiscuous can be false in the mode passthru alone",
    ),
    (
        "interfaces: [{name: m, mac-vlan: {base-iface: e, mode: vepa}}]",
        "another type",
    ),
    (
        "interfaces: [{name: i, type: infiniband, infiniband: {mode: fast}}]",
        "mode cannot be",
    ),
    (
        "interfaces: [{name: i, type: infiniband, infiniband: {mode: datagram, pkey: '0x10000'}}]",
        "pkey cannot be \"0x10000\": write a number from 0 to 65535",
    ),
    (
        "interfaces: [{name: e, ethernet: {sr-iov: {vfs: [{trust: true}]}}}]",
        "has no id",
    ),
    (
        "interfaces: [{name: e, ethernet: {sr-iov: {vfs: [{id: 0, vlan-proto: 802.1ad}]}}}]",
        "interfaces[0].ethernet.sr-iov.vfs[0].vlan-proto: interface e",
    ),
    (
        "interfaces: [{name: e, ethernet: {sr-iov: {vfs: 4}}}]",
        "vfs is 4: write a list",
    ),
    (
        "interfaces: [{name: e, ethernet: {sr-iov: {vfs: [{id: 0, x: 1}]}}}]",
        "option x",
    ),
    (
        "interfaces: [{name: e, 802.1x: {password: 12345}}]",
        "802.1x.password: interface e",
    ),
    (
        "interfaces: [{name: e, 802.1x: {password: '<_password_hid_by_nmstate>'}}]",
        "not the text that nmstate shows",
    ),
    (
        "interfaces: [{name: e, 802.1x: {eap-methods: tls}}]",
        "is not a list of texts",
    ),
    (
        "interfaces: [{name: e, 802.1x: {pin: a}}]",
        "pin cannot be rendered",
    ),
    (
        "interfaces: [{name: v, type: veth, veth: {peer: 3}}]",
        "veth.peer",
    ),
    (
        "interfaces: [{name: o, type: ovs-bridge, mac-address: x}]",
        "no MAC address",
    ),
    (
        "interfaces: [{name: o, type: ovs-bridge, bridge: {port: [{name: b, bond: {mode: x, port: []}}]}}]",
        "mode cannot be \"x\"",
    ),
    (
        "interfaces: [{name: o, type: ovs-bridge, bridge: {options: {group-addr: x}}}]",
        "interfaces[0].bridge.options.group-addr: interface o of type ovs-bridge",
    ),
    (
        "interfaces: [{name: o, type: ovs-interface, patch: {peer: p}, mtu: 1500}]",
        "neither addresses nor an MTU",
    ),
    (
        "interfaces: [{name: d, type: ovs-interface, dpdk: {devargs: a, n_rxq_desc: 3}}]",
        "power of two",
    ),
    (
        "interfaces: [{name: b, type: linux-bridge, bridge: {port: [{name: p, link-aggregation: {}}]}}]",
        "interfaces[0].bridge.port[0].link-aggregation",
    ),
    (
        "interfaces: [{name: b, type: ovs-bridge, bridge: {port: [{name: p}]}}, {name: e, controller: b}]",
        "e is no port of b",
    ),
    (
        "interfaces: [{name: b, type: bond, copy-mac-from: e, link-aggregation: {mode: 1, port: [e]}}]",
        "interfaces[0].copy-mac-from: interface b of type bond: the MAC address of e is unknown",
    ),
    (
        "interfaces: [{name: lo, type: loopback, ipv4: {enabled: false}}]",
        "static addresses",
    ),
    (
        "interfaces: [{name: h, type: hsr, hsr: {port1: a, port2: b, interlink: c, multicast-spec: 0, protocol: prp}}]",
        "PRP has no interlink",
    ),
    (
        "interfaces: [{name: s, type: macsec, macsec: {base-iface: e, encrypt: true, mka-cak: short, mka-ckn: ab, port: 0, validation: check, send-sci: true}}]",
        "mka-cak needs 32",
    ),
    (
        "interfaces: [{name: v, type: vlan, vlan: {base-iface: a, id: 4095}}]",
        "4095 is no VLAN id",
    ),
    ("interfaces: [{name: b, type: bond}]", "a mode"),
    (
        "interfaces: [{name: b, type: bond, link-aggregation: {mode: 1, options: {lacp_rate: 7}}}]",
        "lacp_rate cannot be 7",
    ),
    (
        "interfaces: [{name: b, type: linux-bridge, bridge: {options: {group-addr: x}}}]",
        "group-addr cannot be \"x\": write a MAC address",
    ),
    (
        "interfaces: [{name: e, ipv6: {enabled: true, autoconf: true}}]",
        "autoconf without dhcp",
    ),
    (
        "interfaces: [{name: e, mtu: 1000, ipv6: {enabled: true}}]",
        "at least 1280",
    ),
    (
        "interfaces: [{name: e, ipv4: {enabled: true, address: [{ip: '::1', prefix-length: 64}]}}]",
        "other family",
    ),
    (
        "interfaces: [{name: e, ipv4: {enabled: true, address: [{ip: 192.0.2.1, prefix-length: 33}]}}]",
        "prefix length 33",
    ),
    ("interfaces: [{name: e}, {name: e}]", "listed twice"),
    (
        "interfaces: [{name: e, controller: f}]",
        "controller f of e",
    ),
    (
        "interfaces: [{name: e, description: \"a\\nb\"}]",
        "control character",
    ),
    ("interfaces: [{name: e, profile-name: ../x}]", "file name"),
    (
        "interfaces: [{name: a}, {name: b, profile-name: a}]",
        "a.nmconnection",
    ),
    (
        "interfaces: [{name: e, mptcp: {address-flags: [signal, fullmesh]}}]",
        "interfaces[0].mptcp.address-flags: interface e of type ethernet: address-flags has both signal and fullmesh",
    ),
    ("interfaces: []", "no interface is up"),
    (
        "interfaces: [{name: e, identifier: mac-address}]",
        "mac-address:",
    ),
];

#[test]
fn inexpressible_interfaces_are_refused() {
    let mut wrong = String::new();
    for (yaml, part) in INEXPRESSIBLE {
        match rendered(yaml) {
            Err(error) if error.to_string().contains(part) => {}
            other => writeln!(wrong, "{yaml}: {other:?}, not {part}").unwrap(),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    let error = rendered("interfaces: []").unwrap_err().to_string();
    let field = "static_network_config[0].network_yaml: ";
    assert!(error.starts_with(field), "{error}");
}

#[test]
fn inexpressible_routes_and_servers_are_refused() {
    let interface =
        "interfaces: [{name: eth0, type: ethernet, ipv4: {enabled: true, dhcp: true}}]\n";
    for (yaml, part) in [
        (
            "routes: {config: [{destination: 10.0.0.0/8}]}",
            "next-hop-interface",
        ),
        (
            "routes: {config: [{destination: 10.0.0.0/8, next-hop-interface: x}]}",
            "not in interfaces",
        ),
        (
            "routes: {config: [{destination: '::/0', next-hop-interface: eth0}]}",
            "disabled",
        ),
        (
            "routes: {config: [{destination: 10.0.0.0/8, next-hop-address: '::1', next-hop-interface: eth0}]}",
            "mixes",
        ),
        (
            "routes: {config: [{route-type: blackhole}]}",
            "no valid destination",
        ),
        (
            "routes: {config: [{destination: 10.0.0.0/8, route-type: blackhole, next-hop-interface: eth0}]}",
            "2:19: routes.config[0]: the route to \"10.0.0.0/8\" is of type blackhole, which has no next hop",
        ),
        (
            "routes: {config: [{destination: 10.0.0.0/8, next-hop-interface: eth0, vrf-name: eth0}]}",
            "no VRF",
        ),
        ("route-rules: {config: [{route-table: 5}]}", "needs ip-from"),
        (
            "route-rules: {config: [{ip-from: '::/0', iif: x}]}",
            "an interface in iif that is not in interfaces",
        ),
        ("dns-resolver: {config: {server: [x]}}", "no address"),
        ("dns-resolver: {config: {server: ['::1']}}", "their family"),
        (
            "dns-resolver: {config: {server: [192.0.2.1, '::1', 192.0.2.2]}}",
            "between",
        ),
    ] {
        let error = rendered(&format!("{interface}{yaml}"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{yaml}: {error}");
    }
}

/// Passwords and values of kilobytes are in no message.
#[test]
fn values_in_refusals_are_short() {
    let long = "x".repeat(5000);
    for yaml in [
        format!("interfaces: [{{name: e, mtu: {long}}}]"),
        format!("interfaces: [{{name: e, mtu: [{long}, {{a: {long}}}]}}]"),
        format!("interfaces: [{{name: e, type: {long}}}]"),
        format!("interfaces: [{{name: e, {long}: 1}}]"),
        format!("interfaces: [{{name: e, ipv4: {{dhcp: {long}}}}}]"),
        format!("interfaces: [{{name: e, ipv4: {{address: [{{ip: {long}, prefix-length: 1}}]}}}}]"),
        format!("interfaces: [{{name: e, 802.1x: {{{long}: 1}}}}]"),
        format!("interfaces: [{{name: e, type: vrf, vrf: {{route-table-id: {long}}}}}]"),
        format!("interfaces: [{{name: e, 802.1x: {{password: [{long}]}}}}]"),
        format!("interfaces: [{{name: e}}]\nroutes: {{config: [{{destination: {long}}}]}}"),
        format!("interfaces: [{{name: e}}]\ndns-resolver: {{config: {{server: [{long}]}}}}"),
        format!("interfaces: [{{name: e, profile-name: /{long}}}]"),
        format!("interfaces: [{{name: e, description: \"{long}\\n\"}}]"),
    ] {
        let error = rendered(&yaml).unwrap_err().to_string();
        assert!(error.len() < 900, "{error}");
    }
    for value in ["12345678", "[Geheim]", "{Geheim: 1}", "\"Geheim\\t\""] {
        let yaml = format!("interfaces: [{{name: e, 802.1x: {{password: {value}}}}}]");
        let error = rendered(&yaml).unwrap_err().to_string();
        assert!(error.contains("password"), "{error}");
        assert!(
            !error.contains("Geheim") && !error.contains("1234"),
            "{error}"
        );
    }
}

#[test]
fn values_are_escaped_as_networkmanager_reads_them() {
    let yaml = "interfaces: [{name: e, 802.1x: {identity: 'CORP\\user', password: '  a\\b c', eap-methods: [peap]}}]";
    let text = rendered(yaml).unwrap();
    assert!(text.contains("identity=CORP\\\\user\n"), "{text}");
    assert!(text.contains("password=\\s\\sa\\\\b c\n"), "{text}");
}

/// Members without a value are as good as absent, and numbers and truth values may be text.
#[test]
fn nulls_and_texts_are_read() {
    let plain = "interfaces: [{name: e, mtu: 1400, ipv4: {enabled: true, dhcp: false, address: [{ip: 192.0.2.1, prefix-length: 24}]}}]";
    let odd = "interfaces: [{name: e, type: ethernet, state: null, mac-address: null, mtu: '1400', description: null, lldp: null,
      ethernet: null, 802.1x: null, ethtool: null, ipv6: null, ipv4: {enabled: 'true', dhcp: 'no', dhcp-client-id: null,
      auto-dns: null, address: [{ip: 192.0.2.1, prefix-length: '24', valid-life-time: null}]}}]\nroutes: null\nroute-rules:
      {config: null}\ndns-resolver: {config: {server: null, search: null}}\nhostname: null\novn: null";
    assert_eq!(rendered(odd).unwrap(), rendered(plain).unwrap());
}

#[test]
fn policies_find_nics_by_mac_address() {
    let yaml = "interfaces:\n- name: eth1\n  type: ethernet\n  ipv4: {enabled: true}\n- name: b\n  type: bond\n  \
                link-aggregation: {port: [eth0]}\n";
    let files = files(3, &host(yaml), NetworkForm::Policy).unwrap();
    assert_eq!(files[0].name, "ymlFile3.yml");
    let policy: Value = serde_json::from_str(&files[0].content).unwrap();
    assert_eq!(
        policy["capture"],
        serde_json::json!({
            "iface0": "interfaces.mac-address == \"52:54:00:AA:00:01\"",
            "iface1": "interfaces.mac-address == \"52:54:00:AA:00:00\"",
        })
    );
    let interfaces = &policy["desiredState"]["interfaces"];
    assert_eq!(
        interfaces[0]["name"],
        "{{ capture.iface0.interfaces.0.name }}"
    );
    assert_eq!(interfaces[0]["ipv4"]["dhcp"], false);
    assert_eq!(interfaces[0]["type"], "ethernet");
    assert_eq!(
        interfaces[1]["link-aggregation"]["port"][0],
        "{{ capture.iface1.interfaces.0.name }}"
    );
    assert_eq!(interfaces[1]["name"], "b");
    assert_eq!(
        files[1].content,
        "52:54:00:aa:00:00=eth0\n52:54:00:aa:00:01=eth1\n"
    );
}

proptest::proptest! {
    #[test]
    fn rendering_never_panics(name in "[a-z:{}\\[\\], -]{0,40}", value in "\\PC{0,40}") {
        let _ = rendered(&format!("interfaces: [{{name: {name}, mtu: {value}}}]"));
        let _ = rendered(&value);
    }
}
