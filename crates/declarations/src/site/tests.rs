//! A good site has no mistakes; each seeded one is named, at its host.

use super::*;

const SITE: &str = include_str!("../../../../docs/examples/site.yaml");

/// Id of the mistake, its host, and the changes of the good site.
type Seeded = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// A change applies to the first place of its text.
static SEEDED: &[Seeded] = &[
    (
        "host-record-unknown",
        "",
        &[
            ("  name: control-1\nspec", "  name: control-9\nspec"),
            (
                "bootMACAddress: 52:54:00:aa:00:11",
                "bootMACAddress: 52:54:00:aa:00:99",
            ),
        ],
    ),
    (
        "mac-duplicate",
        "control-1",
        &[(
            "macAddress: 52:54:00:aa:00:11",
            "macAddress: 52-54-00-AA-00-10",
        )],
    ),
    (
        "mac-not-in-hardware",
        "control-0",
        &[(
            "mac: 52:54:00:aa:00:10\n    storage",
            "mac: 52:54:00:aa:00:77\n    storage",
        )],
    ),
    (
        "boot-mac-unknown",
        "control-1",
        &[(
            "bootMACAddress: 52:54:00:aa:00:11",
            "bootMACAddress: 52:54:00:aa:00:99",
        )],
    ),
    (
        "bmc-duplicate",
        "control-1",
        &[("https://192.0.2.211/", "https://192.0.2.210/")],
    ),
    (
        "interface-unknown",
        "control-0",
        &[(
            "    - name: eno1\n      type",
            "    - name: eth0\n      type",
        )],
    ),
    (
        "port-unknown",
        "control-2",
        &[("port: [eno1, eno2]", "port: [eno1, eno3]")],
    ),
    (
        "route-interface",
        "control-0",
        &[("next-hop-interface: eno1", "next-hop-interface: eno9")],
    ),
    (
        "root-device-not-found",
        "control-0",
        &[("deviceName: /dev/sda", "deviceName: /dev/nvme0n1")],
    ),
    (
        "architecture-mismatch",
        "control-0",
        &[("arch: x86_64", "arch: aarch64")],
    ),
    (
        "worker-count",
        "",
        &[(
            "- name: worker\n  replicas: 1",
            "- name: worker\n  replicas: 2",
        )],
    ),
    (
        "address-duplicate",
        "control-1",
        &[("ip: 192.0.2.11", "ip: 192.0.2.10")],
    ),
    (
        "address-reserved",
        "control-0",
        &[("ip: 192.0.2.10", "ip: 192.0.2.255")],
    ),
    (
        "prefix-mismatch",
        "control-0",
        &[("prefix-length: 24", "prefix-length: 25")],
    ),
    (
        "gateway-outside-network",
        "control-0",
        &[("next-hop-address: 192.0.2.1", "next-hop-address: 192.0.3.1")],
    ),
    (
        "vip-taken",
        "",
        &[("apiVIPs: [192.0.2.5]", "apiVIPs: [192.0.2.11]")],
    ),
    ("mtu-mismatch", "control-1", &[("mtu: 1500", "mtu: 9000")]),
    (
        "dns-missing",
        "control-0",
        &[("server: [192.0.2.3]", "server: []")],
    ),
    (
        "dns-unreachable",
        "control-0",
        &[
            ("server: [192.0.2.3]", "server: [10.9.9.9]"),
            ("destination: 0.0.0.0/0", "destination: 10.8.0.0/16"),
        ],
    ),
    (
        "time-source-missing",
        "",
        &[("additionalNTPSources: [192.0.2.2]", "minimalISO: true")],
    ),
    (
        "pull-secret-registry",
        "",
        &[(
            "{\"auths\":{\"mirror.example.com:8443\"",
            "{\"auths\":{\"mirror.example.com\"",
        )],
    ),
];

fn changed(changes: &[(&str, &str)]) -> Site {
    let text = changes.iter().fold(SITE.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    parse(&text).unwrap()
}

#[test]
fn a_good_site_has_no_mistakes() {
    let site = parse(SITE).unwrap();
    assert_eq!(check(&site), []);
    assert_eq!(site.hosts.len(), 4);
    let first = &site.hosts[0];
    assert_eq!(first.record.hardware.as_ref().unwrap().cpu.count, 16);
    assert_eq!(first.installation_disk(), Some(0));
    assert_eq!(first.record.boot_mac.as_deref(), Some("52:54:00:aa:00:10"));
    assert!(site.hosts[3].network.is_none());
    assert_eq!(site.declaration.embedded_agent, Some(true));
}

#[test]
fn each_seeded_mistake_is_named_at_its_host() {
    for (id, host, changes) in SEEDED {
        let found = check(&changed(changes));
        let names: Vec<_> = found
            .iter()
            .map(|one| (one.id.as_str(), one.host.as_str()))
            .collect();
        assert!(names.contains(&(*id, *host)), "{id}: {names:?}");
        let finding = found.iter().find(|one| one.id == *id).unwrap();
        assert!(!finding.observed.is_empty() && !finding.fix.is_empty());
        // A mistake brings at most those that follow from it.
        assert!(found.len() <= 3, "{id}: {found:?}");
    }
}

#[test]
fn every_kind_has_a_seeded_mistake() {
    for kind in KINDS {
        assert!(
            SEEDED.iter().any(|(id, _, _)| *id == kind.id),
            "{} is never seeded",
            kind.id
        );
    }
    assert!(KINDS.len() >= 20);
}

#[test]
fn other_documents_are_refused() {
    let text = format!("{SITE}---\napiVersion: v1\nkind: ConfigMap\n");
    let error = parse(&text).unwrap_err().to_string();
    assert!(error.contains("ConfigMap"), "{error}");
    let text = format!("{SITE}---\napiVersion: v1\nkind: Secret\n");
    assert!(parse(&text).is_ok());
    let text = format!("{SITE}---\nkind: HardwareData\n");
    let error = parse(&text).unwrap_err().to_string();
    assert!(error.contains("metadata.name"), "{error}");
}

#[test]
fn malformed_networks_do_not_panic() {
    for network in [
        "networkConfig: []",
        "networkConfig: {interfaces: 7, routes: {config: [1]}}",
        "networkConfig: {interfaces: [{ipv4: {address: [{ip: x, prefix-length: 400}]}}]}",
    ] {
        let text = SITE.replacen(
            "- hostname: worker-0",
            &format!("- hostname: worker-0\n  {network}"),
            1,
        );
        if let Ok(site) = parse(&text) {
            check(&site);
        }
    }
}

/// nmstate reads numbers and truth values as text, too, and a bond in a bridge of Open vSwitch is no interface.
#[test]
fn networks_are_read_as_nmstate_reads_them() {
    let config = serde_json::json!({ "interfaces": [
        { "name": "eno1", "mtu": "9000", "ipv4": { "enabled": "true", "dhcp": "false", "address": [
            { "ip": "192.0.2.7", "prefix-length": "24" },
        ] } },
        { "name": "eno2", "ipv4": { "enabled": "yes", "dhcp": "yes" } },
        { "name": "eno3", "ipv4": { "enabled": "no", "dhcp": "yes", "address": [
            { "ip": "192.0.2.8", "prefix-length": 24 },
        ] } },
        { "name": "br-ex", "type": "ovs-bridge", "bridge": { "port": [
            { "name": "bond0", "link-aggregation": { "port": [{ "name": "eno4" }, { "name": "eno5" }] } },
            { "name": "br-ex" },
        ] } },
        { "name": "vrf0", "type": "vrf", "vrf": { "ports": ["eno6"], "route-table-id": 7 } },
        { "name": "mv0", "type": "mac-vlan", "mac-vlan": { "base-iface": "eno7", "mode": "bridge" } },
    ] });
    let network = HostNetwork::read(&config);
    let [first, second, third, bridge, vrf, child] = &network.interfaces[..] else {
        panic!("{network:?}");
    };
    assert_eq!((first.mtu, first.automatic.is_any()), (9000, false));
    assert_eq!(first.addresses, ["192.0.2.7/24".parse().unwrap()]);
    assert!(second.automatic.is_any());
    assert!(!third.automatic.is_any() && third.addresses.is_empty());
    assert_eq!(bridge.ports, ["eno4", "eno5", "br-ex"]);
    assert_eq!(vrf.ports, ["eno6"]);
    assert_eq!(child.ports, ["eno7"]);
}
