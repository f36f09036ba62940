use proptest::prelude::*;

use super::*;

const RULES: NetworkRules<'_> = NetworkRules {
    version: "4.16.3",
    single_node: false,
    user_managed_networking: false,
    user_managed_load_balancer: false,
    dhcp: false,
    ipv6_support: true,
    hosts: 5,
};

fn good() -> NetworkInput {
    NetworkInput {
        cluster: vec![("10.128.0.0/14".parse().unwrap(), 23)],
        service: vec!["172.30.0.0/16".parse().unwrap()],
        machine: vec!["192.168.10.0/24".parse().unwrap()],
        api: vec!["192.168.10.100".parse().unwrap()],
        ingress: vec!["192.168.10.101".parse().unwrap()],
    }
}

fn dual() -> NetworkInput {
    NetworkInput {
        cluster: vec![
            ("10.128.0.0/14".parse().unwrap(), 23),
            ("fd01::/48".parse().unwrap(), 64),
        ],
        service: vec![
            "172.30.0.0/16".parse().unwrap(),
            "fd02::/112".parse().unwrap(),
        ],
        machine: vec![
            "192.168.10.0/24".parse().unwrap(),
            "fd10::/64".parse().unwrap(),
        ],
        api: vec![
            "192.168.10.100".parse().unwrap(),
            "fd10::100".parse().unwrap(),
        ],
        ingress: vec![
            "192.168.10.101".parse().unwrap(),
            "fd10::101".parse().unwrap(),
        ],
    }
}

fn nets(list: &[&str]) -> Vec<IpNet> {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

fn ips(list: &[&str]) -> Vec<IpAddr> {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn good_networks_pass() {
    good().check(&RULES).unwrap();
    dual().check(&RULES).unwrap();
    NetworkInput::default().check(&RULES).unwrap();
}

#[test]
fn bad_networks_name_their_field() {
    let with = |change: fn(&mut NetworkInput)| {
        let mut networks = good();
        change(&mut networks);
        networks
    };
    for (field, networks) in [
        (
            "cluster_networks[0].cidr",
            with(|n| n.cluster = vec![("10.0.0.0/26".parse().unwrap(), 25)]),
        ),
        (
            "cluster_networks[0].cidr",
            with(|n| n.cluster = vec![("0.0.0.0/0".parse().unwrap(), 23)]),
        ),
        (
            "cluster_networks[0].host_prefix",
            with(|n| n.cluster[0].1 = 0),
        ),
        (
            "cluster_networks[0].host_prefix",
            with(|n| n.cluster[0].1 = 26),
        ),
        (
            "cluster_networks[0].host_prefix",
            with(|n| n.cluster[0].1 = 16),
        ),
        (
            "cluster_networks[0].host_prefix",
            with(|n| n.cluster[0].1 = 10),
        ),
        (
            "cluster_networks[0].host_prefix",
            with(|n| n.cluster[0].1 = -1),
        ),
        (
            "service_networks[0].cidr",
            with(|n| n.service = nets(&["172.30.0.0/26"])),
        ),
        (
            "machine_networks[0].cidr",
            with(|n| n.machine = nets(&["192.168.10.96/29"])),
        ),
        (
            "service_networks",
            with(|n| n.service = nets(&["10.129.0.0/16"])),
        ),
        (
            "cluster_networks",
            with(|n| n.machine = nets(&["10.0.0.0/8"])),
        ),
        ("api_vips", with(|n| n.api = ips(&["192.168.11.100"]))),
        ("api_vips", with(|n| n.api = ips(&["192.168.10.0"]))),
        (
            "ingress_vips",
            with(|n| n.ingress = ips(&["192.168.10.255"])),
        ),
        (
            "ingress_vips",
            with(|n| n.ingress = ips(&["192.168.10.100"])),
        ),
        ("api_vips and ingress_vips", with(|n| n.ingress.clear())),
        (
            "api_vips",
            with(|n| n.api = ips(&["192.168.10.1", "192.168.10.2"])),
        ),
        (
            "api_vips",
            with(|n| n.api = ips(&["192.168.10.1", "fd10::1", "fd10::2"])),
        ),
    ] {
        let error = networks.check(&RULES).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{field}:")), "{field}: {error}");
    }
}

#[test]
fn dual_stack_needs_both_families_everywhere() {
    let with = |change: fn(&mut NetworkInput)| {
        let mut networks = dual();
        change(&mut networks);
        networks.check(&RULES).unwrap_err().to_string()
    };
    let unknown = |n: &mut NetworkInput| {
        n.machine.clear();
        n.api.truncate(1);
        n.ingress.truncate(1);
    };
    assert!(with(unknown).starts_with("machine_networks:"));
    assert!(with(|n| n.machine.truncate(1)).starts_with("machine_networks:"));
    assert!(with(|n| n.service.truncate(1)).starts_with("service_networks:"));
    assert!(with(|n| n.service.reverse()).starts_with("service_networks:"));
    let mut reversed = dual();
    reversed.cluster.reverse();
    reversed.service.reverse();
    reversed.machine.reverse();
    reversed.api.reverse();
    reversed.ingress.reverse();
    reversed.check(&RULES).unwrap();
    let old = NetworkRules {
        version: "4.11.2",
        ..RULES
    };
    assert!(reversed.check(&old).is_err());
}

#[test]
fn machine_networks_may_follow_from_dual_stack_vips() {
    let mut networks = dual();
    networks.machine.clear();
    networks.check(&RULES).unwrap();
    // The other networks may become dual-stack later.
    networks.cluster.truncate(1);
    networks.service.truncate(1);
    networks.check(&RULES).unwrap();
    networks.api.reverse();
    networks.ingress.reverse();
    networks.check(&RULES).unwrap();
    let old = NetworkRules {
        version: "4.11.2",
        ..RULES
    };
    assert!(networks.check(&old).is_err());
}

#[test]
fn modes_that_exclude_vips() {
    let single_node = NetworkRules {
        single_node: true,
        user_managed_networking: true,
        ..RULES
    };
    good().check(&single_node).unwrap();
    for rules in [
        NetworkRules {
            user_managed_networking: true,
            ..RULES
        },
        NetworkRules {
            dhcp: true,
            ..RULES
        },
    ] {
        assert!(good().check(&rules).is_err());
    }
    let without = NetworkRules {
        ipv6_support: false,
        ..RULES
    };
    assert!(
        dual()
            .check(&without)
            .unwrap_err()
            .to_string()
            .contains("IPV6_SUPPORT")
    );
    good().check(&without).unwrap();
}

#[test]
fn a_user_managed_load_balancer_may_share_an_address() {
    let mut networks = good();
    networks.ingress = networks.api.clone();
    let rules = NetworkRules {
        user_managed_load_balancer: true,
        ..RULES
    };
    networks.check(&rules).unwrap();
}

proptest! {
    #[test]
    fn reading_never_panics(text in "[0-9a-f:./]{0,24}|\\PC*") {
        let _ = cidr("x", &text);
        let _ = ip("x", &text);
    }

    #[test]
    fn checking_never_panics(a: u32, len in 0u8..=32, prefix: i64, b: u32) {
        let net: IpNet = format!("{}/{len}", std::net::Ipv4Addr::from(a)).parse().unwrap();
        let networks = NetworkInput {
            cluster: vec![(net, prefix)],
            machine: vec![net],
            api: vec![IpAddr::from(b.to_be_bytes())],
            ingress: vec![IpAddr::from(a.to_be_bytes())],
            ..NetworkInput::default()
        };
        let _ = networks.check(&RULES);
    }
}
