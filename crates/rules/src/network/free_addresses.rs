//! Addresses that hosts found free in their networks.

use ipnet::{IpNet, Ipv4Net};
use model::steps::FreeNetworkAddresses;

use crate::HostList;

/// Largest network that is scanned for free addresses. Units: host bits.
const SEARCHED_HOST_BITS: u8 = 10;

/// Whether hosts scan a network of theirs.
pub(crate) fn is_scanned(network: Ipv4Net) -> bool {
    (32 - SEARCHED_HOST_BITS..=30).contains(&network.prefix_len())
}

/// Whether every host that scanned the network found the address free; none without a scan.
/// Source: assisted-service, internal/network/machine_network_cidr.go, IpInFreeList.
pub(crate) fn is_free(hosts: &HostList, network: &IpNet, ip: &str) -> Option<bool> {
    let name = network.to_string();
    let lists: Vec<FreeNetworkAddresses> = hosts
        .iter()
        .filter_map(|host| {
            host.record
                .free_addresses
                .parse::<Vec<FreeNetworkAddresses>>()
        })
        .flatten()
        .filter(|list| list.network == name)
        .collect();
    if lists.is_empty() {
        return None;
    }
    let found = |list: &FreeNetworkAddresses| list.free_addresses.iter().any(|free| free == ip);
    Some(lists.iter().all(found))
}
