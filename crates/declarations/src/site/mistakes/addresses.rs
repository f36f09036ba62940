//! Mistakes in addresses: those of hosts, routers and virtual addresses.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::Place;
use crate::site::{Site, SiteHost};

pub(super) fn duplicates(site: &Site) -> Vec<Place> {
    let mut owners: BTreeMap<IpAddr, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for (host, address) in addresses(site) {
        if let Some(other) = owners.insert(address.addr(), &host.name) {
            let observed = format!("{} is the address of {other}, too", address.addr());
            found.push(Place::at(&host.name, observed));
        }
    }
    found
}

pub(super) fn reserved(site: &Site) -> Vec<Place> {
    let mut found = Vec::new();
    for (host, network) in addresses(site) {
        let address = network.addr();
        let mut routes = host.network.iter().flat_map(|one| &one.routes);
        // Networks of one or two addresses have no reserved ones (RFC 3021).
        let is_wide = network.max_prefix_len() - network.prefix_len() > 1;
        let role = if is_wide && address == network.network() {
            "the address of its network"
        } else if is_wide && address.is_ipv4() && address == network.broadcast() {
            "the broadcast address of its network"
        } else if routes.any(|route| route.gateway == Some(address)) {
            "the address of its own router"
        } else {
            continue;
        };
        let observed = format!("{network} is {role}");
        found.push(Place::at(&host.name, observed));
    }
    found
}

pub(super) fn other_prefixes(site: &Site) -> Vec<Place> {
    let machine = site.machine_networks();
    let mut found = Vec::new();
    for (host, address) in addresses(site) {
        let mut around = machine.iter().filter(|one| one.contains(&address.addr()));
        if let Some(network) = around.next()
            && network.prefix_len() != address.prefix_len()
        {
            let observed = format!("{address} in the machine network {network}");
            found.push(Place::at(&host.name, observed));
        }
    }
    found
}

pub(super) fn far_gateways(site: &Site) -> Vec<Place> {
    let mut found = Vec::new();
    for host in &site.hosts {
        let Some(network) = &host.network else {
            continue;
        };
        for route in &network.routes {
            let named = network
                .interfaces
                .iter()
                .find(|one| one.name == route.interface);
            // An interface with DHCP may get an address beside the router.
            let (Some(gateway), false) = (
                route.gateway,
                named.is_some_and(|one| one.automatic.is_any()),
            ) else {
                continue;
            };
            let own: Vec<IpNet> = match named {
                Some(interface) => interface.addresses.clone(),
                None => network.addresses().collect(),
            };
            if !own.iter().any(|one| one.contains(&gateway)) && !is_link_local(gateway) {
                let observed = format!(
                    "next hop {gateway} of {} by {}, which has {}",
                    route.destination,
                    route.interface,
                    listed(&own)
                );
                found.push(Place::at(&host.name, observed));
            }
        }
    }
    found
}

pub(super) fn taken_vips(site: &Site) -> Vec<Place> {
    // The addresses of a single node are its virtual addresses: it has no others.
    let mut found = Vec::new();
    for (member, vip) in site.vips() {
        let owner = addresses(site).find(|(_, address)| address.addr() == vip);
        let router = site.hosts.iter().find(|host| is_router_of(host, vip));
        if let Some((host, _)) = owner {
            let observed = format!("{member} {vip} is the address of {}", host.name);
            found.push(Place::cluster(observed));
        } else if let Some(host) = router {
            let observed = format!("{member} {vip} is the router of {}", host.name);
            found.push(Place::cluster(observed));
        }
    }
    found
}

fn is_router_of(host: &SiteHost, address: IpAddr) -> bool {
    let mut routes = host.network.iter().flat_map(|one| &one.routes);
    routes.any(|route| route.gateway == Some(address))
}

pub(super) fn mixed_mtus(site: &Site) -> Vec<Place> {
    let mut first: BTreeMap<IpNet, (u64, &str)> = BTreeMap::new();
    let mut found = Vec::new();
    for host in &site.hosts {
        let interfaces = host.network.iter().flat_map(|one| &one.interfaces);
        for interface in interfaces {
            for network in interface.addresses.iter().map(IpNet::trunc) {
                let (mtu, other) = *first
                    .entry(network)
                    .or_insert((interface.mtu, host.name.as_str()));
                if mtu != interface.mtu {
                    let observed = format!(
                        "{} has MTU {} in {network}, {other} has {mtu}",
                        interface.name, interface.mtu
                    );
                    found.push(Place::at(&host.name, observed));
                }
            }
        }
    }
    found
}

fn addresses(site: &Site) -> impl Iterator<Item = (&SiteHost, IpNet)> {
    let hosts = site.hosts.iter();
    hosts.flat_map(|host| host.addresses().map(move |address| (host, address)))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

fn listed(addresses: &[IpNet]) -> String {
    let texts: Vec<String> = addresses.iter().map(IpNet::to_string).collect();
    if texts.is_empty() {
        "no address".to_owned()
    } else {
        texts.join(", ")
    }
}
