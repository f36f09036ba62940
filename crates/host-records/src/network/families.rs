//! Addresses, gateways, name servers and routes of one family.

use std::net::IpAddr;

use ipnet::IpNet;
use located_yaml::v1_1::Value;

use super::source::InterfaceSource;
use crate::check::finding::{FindingList, shown};

/// The settings of an interface in one family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FamilySettings {
    pub(super) method: FamilyMethod,
    /// With the gateway that is on the network of the address.
    pub(super) addresses: Vec<(IpNet, Option<IpAddr>)>,
    pub(super) dns: Vec<IpAddr>,
    pub(super) search: Vec<String>,
    pub(super) routes: Vec<NodeRoute>,
}

/// Origin of the addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum FamilyMethod {
    /// Not mentioned.
    #[default]
    Unset,
    Manual,
    Auto,
    Disabled,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeRoute {
    pub(super) to: IpNet,
    pub(super) via: Option<IpAddr>,
    pub(super) metric: Option<u32>,
}

/// The settings of IPv4 and IPv6.
pub(super) fn read(
    source: &InterfaceSource<'_>,
    findings: &mut FindingList<'_>,
) -> [FamilySettings; 2] {
    let mut families = <[FamilySettings; 2]>::default();
    for (path, address) in source.parsed::<IpNet>("addresses", "10.0.0.20/24", findings) {
        let family = &mut families[index(address.addr())];
        if !is_host(address) {
            let reason = format!("{address} is no address of a host");
            source.error_at(
                &path,
                &reason,
                "write the address with its prefix",
                findings,
            );
        }
        family.method = FamilyMethod::Manual;
        family.addresses.push((address, None));
    }
    gateways(source, &mut families, findings);
    automatic(source, &mut families, findings);
    servers(source, &mut families, findings);
    routes(source, &mut families, findings);
    families
}

fn index(address: IpAddr) -> usize {
    usize::from(address.is_ipv6())
}

/// Neither unspecified nor multicast, nor the network itself.
fn is_host(address: IpNet) -> bool {
    let ip = address.addr();
    let hosts = address.max_prefix_len() - address.prefix_len();
    let is_network = hosts > 1 && ip == address.network();
    let is_broadcast = hosts > 1 && ip.is_ipv4() && ip == address.broadcast();
    !ip.is_unspecified() && !ip.is_multicast() && !ip.is_loopback() && !is_network && !is_broadcast
}

fn gateways(
    source: &InterfaceSource<'_>,
    families: &mut [FamilySettings; 2],
    findings: &mut FindingList<'_>,
) {
    for (path, gateway) in source.parsed::<IpAddr>("gateways", "10.0.0.1", findings) {
        let family = &mut families[index(gateway)];
        if family.addresses.iter().any(|(_, other)| other.is_some()) {
            let reason = "is the second gateway of its family";
            source.error_at(
                &path,
                reason,
                "leave one of them out, or write a route",
                findings,
            );
            continue;
        }
        let is_link_local = matches!(gateway, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let mut addresses = family.addresses.iter_mut();
        let near = addresses.find(|(network, _)| is_link_local || network.contains(&gateway));
        match near {
            Some((network, _)) if network.addr() == gateway => {
                let reason = "is the address of the node itself";
                source.error_at(&path, reason, "write the address of the router", findings);
            }
            Some((_, slot)) => *slot = Some(gateway),
            None => {
                let reason = format!("{gateway} is on the network of no address");
                source.error_at(&path, &reason, "correct it, or the prefix", findings);
            }
        }
    }
}

fn automatic(
    source: &InterfaceSource<'_>,
    families: &mut [FamilySettings; 2],
    findings: &mut FindingList<'_>,
) {
    let is_wanted = match (source.flag("dhcp"), source.text(&["dhcp"])) {
        (Some(flag), _) => [flag; 2],
        (None, "") => [false; 2],
        (None, "ipv4") => [true, false],
        (None, "ipv6") => [false, true],
        (None, other) => {
            let reason = format!("{} is none of true, false, ipv4, ipv6", shown(other));
            source.error(&["dhcp"], &reason, "write one of them", findings);
            [false; 2]
        }
    };
    let names = ["ipv4", "ipv6"];
    for ((family, is_automatic), name) in families.iter_mut().zip(is_wanted).zip(names) {
        let is_off = source.flag(name) == Some(false);
        if is_off && (is_automatic || family.method == FamilyMethod::Manual) {
            let reason = "is false, and the interface has addresses of the family";
            source.error(&[name], reason, "remove one of them", findings);
        }
        if is_automatic {
            family.method = FamilyMethod::Auto;
        } else if is_off {
            family.method = FamilyMethod::Disabled;
        }
    }
}

fn servers(
    source: &InterfaceSource<'_>,
    families: &mut [FamilySettings; 2],
    findings: &mut FindingList<'_>,
) {
    let is_on = |family: &FamilySettings| {
        [FamilyMethod::Manual, FamilyMethod::Auto].contains(&family.method)
    };
    let own = source.parsed::<IpAddr>("dns", "10.0.0.2", findings);
    for (path, server) in &own {
        let family = &mut families[index(*server)];
        if is_on(family) {
            family.dns.push(*server);
        } else {
            let reason = format!("{server} is of a family without addresses here");
            source.error_at(path, &reason, "add an address, or remove it", findings);
        }
    }
    if own.is_empty() {
        // Servers of all interfaces are for those of their family.
        for server in source.common_dns() {
            let family = &mut families[index(server)];
            if family.method == FamilyMethod::Manual {
                family.dns.push(server);
            }
        }
    }
    let search = source.search(findings);
    for family in families.iter_mut().filter(|family| is_on(family)) {
        family.search.clone_from(&search);
    }
}

fn routes(
    source: &InterfaceSource<'_>,
    families: &mut [FamilySettings; 2],
    findings: &mut FindingList<'_>,
) {
    for number in (0..source.list(&["routes"]).len()).map(|number| number.to_string()) {
        let at = |member: &'static str| ["routes", &number, member];
        let (to, via) = (source.text(&at("to")), source.text(&at("via")));
        let Ok(to) = to.parse::<IpNet>() else {
            if !to.is_empty() {
                let reason = format!("{} is no network", shown(to));
                source.error(&at("to"), &reason, "write it as 10.1.0.0/16", findings);
            }
            continue;
        };
        let router = via.parse::<IpAddr>().ok();
        if !via.is_empty() && router.is_none_or(|router| router.is_ipv6() != to.addr().is_ipv6()) {
            let reason = format!("{} is no address of the family of the route", shown(via));
            source.error(
                &at("via"),
                &reason,
                "write the address of the router",
                findings,
            );
            continue;
        }
        let metric = match source.get(&at("metric")).map(|it| &it.value) {
            Some(Value::Integer(metric)) => u32::try_from(*metric).ok(),
            _ => None,
        };
        let family = &mut families[index(to.addr())];
        if family.method == FamilyMethod::Unset || family.method == FamilyMethod::Disabled {
            let reason = format!("{to} is of a family without addresses here");
            source.error(&at("to"), &reason, "add an address, or remove it", findings);
        }
        family.routes.push(NodeRoute {
            to: to.trunc(),
            via: router,
            metric,
        });
    }
}
