//! Network interfaces and routes of the host.
//!
//! Source: assisted-installer-agent, src/inventory/interfaces.go and routes.go.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use model::inventory::{Interface, Route};

use crate::HostFiles;
use crate::links::{LinkTable, NetworkLink, RouteEntry};

/// Address families of Linux.
const INET: i64 = 2;
const INET6: i64 = 10;

pub(super) fn interfaces(files: &HostFiles, table: &LinkTable) -> Vec<Interface> {
    table
        .links
        .iter()
        .map(|link| interface(files, table, link))
        .collect()
}

fn interface(files: &HostFiles, table: &LinkTable, link: &NetworkLink) -> Interface {
    let file = |path: &str| files.text(&format!("/sys/class/net/{}/{path}", link.name));
    let mut record = Interface {
        name: link.name.clone(),
        mac_address: link.mac_address.clone(),
        mtu: i64::from(link.mtu),
        has_carrier: file("carrier").as_deref() == Some("1"),
        product: file("device/device").unwrap_or_default(),
        vendor: file("device/vendor").unwrap_or_default(),
        speed_mbps: file("speed")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0),
        flags: link.flags.iter().map(|flag| (*flag).to_owned()).collect(),
        r#type: link.kind.clone(),
        ..Interface::default()
    };
    for address in &link.addresses {
        match address {
            IpNet::V4(address) if !address.addr().is_link_local() => {
                record.ipv4_addresses.push(address.to_string());
            }
            IpNet::V6(address) if !address.addr().is_unicast_link_local() => {
                let address = with_advertised_prefix(*address, link, table);
                record.ipv6_addresses.push(address.to_string());
            }
            _ => {}
        }
    }
    record
}

/// DHCPv6 gives single addresses; the router advertises the length of their prefix.
fn with_advertised_prefix(address: Ipv6Net, link: &NetworkLink, table: &LinkTable) -> Ipv6Net {
    let advertised = table
        .routes
        .iter()
        .filter(|route| route.link == link.index && route.is_advertised)
        .find_map(|route| match route.destination {
            Some(IpNet::V6(network)) if network.contains(&address.addr()) => Some(network),
            _ => None,
        });
    let length = advertised.map_or(address.prefix_len(), |network| network.prefix_len());
    Ipv6Net::new(address.addr(), length).unwrap_or(address)
}

pub(super) fn routes(table: &LinkTable) -> Vec<Route> {
    let route = |entry: &RouteEntry| {
        let link = table.links.iter().find(|link| link.index == entry.link)?;
        let destination = entry.destination.unwrap_or(if entry.is_ipv6 {
            IpNet::V6(Ipv6Net::default())
        } else {
            IpNet::V4(Ipv4Net::default())
        });
        Some(Route {
            interface: link.name.clone(),
            gateway: entry
                .gateway
                .map_or_else(String::new, |gateway: IpAddr| gateway.to_string()),
            destination: destination.addr().to_string(),
            family: if entry.is_ipv6 { INET6 } else { INET },
            metric: i64::from(entry.metric),
        })
    };
    table.routes.iter().filter_map(route).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> LinkTable {
        LinkTable {
            links: vec![NetworkLink {
                index: 2,
                name: "eno1".to_owned(),
                mac_address: "52:54:00:00:00:01".to_owned(),
                mtu: 1500,
                kind: "physical".to_owned(),
                flags: vec!["up", "broadcast"],
                addresses: [
                    "192.168.1.5/24",
                    "169.254.1.1/16",
                    "fe80::1/64",
                    "2001:db8::5/128",
                    "2001:db9::5/128",
                ]
                .iter()
                .map(|text| text.parse().unwrap())
                .collect(),
            }],
            routes: vec![
                RouteEntry {
                    link: 2,
                    destination: Some("2001:db8::/64".parse().unwrap()),
                    gateway: None,
                    metric: 100,
                    is_ipv6: true,
                    is_advertised: true,
                },
                RouteEntry {
                    link: 2,
                    destination: None,
                    gateway: Some("192.168.1.1".parse().unwrap()),
                    metric: 101,
                    is_ipv6: false,
                    is_advertised: false,
                },
            ],
        }
    }

    #[test]
    fn addresses_of_the_link_itself_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        let found = interfaces(&HostFiles::below(root.path()), &table());
        assert_eq!(found[0].ipv4_addresses, ["192.168.1.5/24"]);
        assert_eq!(
            found[0].ipv6_addresses,
            ["2001:db8::5/64", "2001:db9::5/128"]
        );
    }

    #[test]
    fn default_routes_have_a_zero_destination() {
        let routes = routes(&table());
        assert_eq!(
            (routes[0].destination.as_str(), routes[0].family),
            ("2001:db8::", 10)
        );
        assert_eq!(
            (routes[1].destination.as_str(), routes[1].family),
            ("0.0.0.0", 2)
        );
        assert_eq!(routes[1].gateway, "192.168.1.1");
    }
}
