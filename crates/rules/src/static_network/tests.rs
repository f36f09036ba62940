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

#[test]
fn inexpressible_interfaces_are_refused() {
    for (yaml, part) in [
        ("interfaces: [{name: o, type: ovs-bridge}]", "ovs-bridge"),
        (
            "interfaces: [{name: e, ethtool: {pause: {rx: true}}}]",
            "ethtool",
        ),
        ("interfaces: [{name: e, mtu: much}]", "at interfaces[0].mtu"),
        (
            "interfaces: [{name: e, vlan: {base-iface: a, id: 1}}]",
            "another type",
        ),
        ("interfaces: [{name: v, type: vlan}]", "has no vlan"),
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
            "group-addr",
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
        ("interfaces: []", "no interface is up"),
        (
            "interfaces: [{name: e, identifier: mac-address}]",
            "mac-address:",
        ),
    ] {
        let error = rendered(yaml).unwrap_err().to_string();
        assert!(
            error.starts_with("static_network_config[0].network_yaml: "),
            "{error}"
        );
        assert!(error.contains(part), "{yaml}: {error}");
    }
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
        ("routes: {config: [{route-type: blackhole}]}", "route-type"),
        ("route-rules: {config: [{route-table: 5}]}", "needs ip-from"),
        ("route-rules: {config: [{ip-from: '::/0'}]}", "no interface"),
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
        assert_eq!(
            NetworkForm::of(version, NMSTATE_SERVICE_FROM),
            form,
            "{version}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn rendering_never_panics(name in "[a-z:{}\\[\\], -]{0,40}", value in "\\PC{0,40}") {
        let _ = rendered(&format!("interfaces: [{{name: {name}, mtu: {value}}}]"));
        let _ = rendered(&value);
    }
}
