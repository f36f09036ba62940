//! Networks and addresses of clusters and hosts, parsed once.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use model::cluster::Cluster;
use model::inventory::{Inventory, Route};

use crate::snapshot::reach::Mac;

/// The networks of a cluster; unparsable texts are kept apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct NetworkSet {
    pub(crate) machine: Vec<IpNet>,
    /// With the host prefix.
    pub(crate) cluster: Vec<(IpNet, i64)>,
    pub(crate) service: Vec<IpNet>,
    pub(crate) unparsable: Vec<String>,
}

impl NetworkSet {
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let mut networks = Self::default();
        let mut parse = |text: &str| {
            let net = text.parse::<IpNet>();
            if net.is_err() {
                networks.unparsable.push(text.to_owned());
            }
            net.ok().map(|net| net.trunc())
        };
        let machine = cluster
            .machine_networks
            .iter()
            .filter_map(|one| parse(&one.cidr))
            .collect();
        let service = cluster
            .service_networks
            .iter()
            .filter_map(|one| parse(&one.cidr))
            .collect();
        let pods = cluster
            .cluster_networks
            .iter()
            .filter_map(|one| Some((parse(&one.cidr)?, one.host_prefix)))
            .collect();
        networks.machine = machine;
        networks.service = service;
        networks.cluster = pods;
        networks
    }

    /// Whether the cluster uses the address family of `net`; one without networks uses both.
    pub(crate) fn speaks(&self, net: &IpNet) -> bool {
        let mut all = self
            .machine
            .iter()
            .chain(&self.service)
            .chain(self.cluster.iter().map(|one| &one.0))
            .peekable();
        all.peek().is_none() || all.any(|one| is_v4(one) == is_v4(net))
    }
}

pub(crate) fn is_v4(net: &IpNet) -> bool {
    matches!(net, IpNet::V4(_))
}

/// An address of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The address with its prefix length.
    pub(crate) net: IpNet,
    pub(crate) interface: String,
    pub(crate) mac: Option<Mac>,
}

/// Every address of the machine that others can reach.
pub(crate) fn addresses(inventory: &Inventory) -> Vec<Address> {
    let of = |nic: &model::inventory::Interface| {
        let texts = nic.ipv4_addresses.iter().chain(&nic.ipv6_addresses);
        let nets = texts
            .filter_map(|text| text.parse::<IpNet>().ok())
            .filter(|net| is_routable(net.addr()));
        nets.map(|net| Address {
            net,
            interface: nic.name.clone(),
            mac: Mac::parse(&nic.mac_address),
        })
        .collect::<Vec<_>>()
    };
    inventory.interfaces.iter().flat_map(of).collect()
}

/// Neither loopback nor link-local.
pub(crate) fn is_routable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !address.is_loopback() && !address.is_unspecified() && !address.is_link_local()
        }
        IpAddr::V6(address) => {
            !address.is_loopback() && !address.is_unspecified() && !address.is_unicast_link_local()
        }
    }
}

/// A route to everywhere, through a gateway.
pub(crate) fn is_default(route: &Route) -> bool {
    let (address, bits) = route
        .destination
        .split_once('/')
        .unwrap_or((&route.destination, "0"));
    let unspecified = |text: &str| text.parse::<IpAddr>().is_ok_and(|one| one.is_unspecified());
    let gateway = route
        .gateway
        .parse::<IpAddr>()
        .is_ok_and(|one| !one.is_unspecified());
    unspecified(address) && bits == "0" && gateway && !route.interface.is_empty()
}

/// The narrowest network that holds an address.
pub(crate) fn holding(networks: &BTreeSet<IpNet>, address: IpAddr) -> Option<IpNet> {
    let holding = networks.iter().filter(|net| net.contains(&address));
    holding.max_by_key(|net| net.prefix_len()).copied()
}

/// Any two that share addresses.
pub(crate) fn overlap(left: &IpNet, right: &IpNet) -> bool {
    left.contains(right) || right.contains(left)
}
