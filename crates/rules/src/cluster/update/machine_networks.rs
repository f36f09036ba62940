//! Networks of the hosts, and the cluster's machine networks among them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use model::cluster::{Cluster, ClusterKind, ClusterStatus};
use model::ids::HostId;
use model::inventory::Inventory;
use model::network::{HostNetwork, MachineNetwork};

use crate::HostList;
use crate::HostState;
use crate::Snapshot;
use crate::input::{Family, family};
use crate::network::networking;

/// The networks of the cluster's hosts, with the hosts that have an address in them, in order.
pub fn host_networks(hosts: &HostList) -> Vec<HostNetwork> {
    let mut networks: BTreeMap<IpNet, Vec<HostId>> = BTreeMap::new();
    for host in hosts {
        for net in networks_of(host) {
            networks.entry(net).or_default().push(host.record.id);
        }
    }
    networks
        .into_iter()
        .map(|(net, ids)| HostNetwork {
            cidr: net.to_string(),
            host_ids: ids.into_iter().map(|id| id.0).collect(),
        })
        .collect()
}

/// Networks of a host's addresses, without link-local ones.
fn networks_of(host: &HostState) -> BTreeSet<IpNet> {
    host.inventory
        .iter()
        .flat_map(|inventory| &inventory.interfaces)
        .flat_map(|nic| nic.ipv4_addresses.iter().chain(&nic.ipv6_addresses))
        .filter_map(|text| text.parse::<IpNet>().ok())
        .filter(|net| !is_link_local(net.addr()) && net.prefix_len() < net.max_prefix_len())
        .map(|net| net.trunc())
        .collect()
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// The hosts' network that holds an address; of several the smallest.
pub(super) fn holding_network(snapshot: &Snapshot, address: IpAddr) -> Option<IpNet> {
    snapshot
        .hosts
        .iter()
        .flat_map(networks_of)
        .filter(|net| net.contains(&address))
        .max_by_key(|net| (net.prefix_len(), std::cmp::Reverse(*net)))
}

/// The hosts' networks, for a text.
pub(super) fn networks_text(snapshot: &Snapshot) -> String {
    let all: BTreeSet<IpNet> = snapshot.hosts.iter().flat_map(networks_of).collect();
    all.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Derives the machine networks from VIPs or hosts; returns whether the record changed.
///
/// Only while the cluster is pending-for-input or insufficient. Without a rule, the networks stay.
/// Source: assisted-service, internal/cluster/cluster.go, autoAssignMachineNetworkCidr.
pub fn derive_machine_networks(snapshot: &mut Snapshot) -> bool {
    let cluster = &snapshot.cluster;
    let may_change = matches!(
        cluster.status,
        ClusterStatus::PendingForInput | ClusterStatus::Insufficient
    );
    if !may_change
        || cluster.kind != ClusterKind::Cluster
        || networking::has_user_load_balancer(cluster)
    {
        return false;
    }
    let derived = if networking::uses_dhcp(cluster) {
        only_common_network(snapshot)
    } else if networking::is_single_node(cluster) || networking::is_user_managed(cluster) {
        one_per_family(snapshot)
    } else {
        holding_vips(snapshot)
    };
    let Some(derived) = derived.filter(|nets| !nets.is_empty()) else {
        return false;
    };
    let id = snapshot.cluster.id;
    let derived: Vec<MachineNetwork> = derived
        .into_iter()
        .map(|net| networking::machine_network(id, net))
        .collect();
    let is_new = derived != snapshot.cluster.machine_networks;
    snapshot.cluster.machine_networks = derived;
    is_new
}

/// Clears machine networks that no host is in, after a host has left: they followed from the virtual addresses and the
/// networks of the hosts.
/// Source: assisted-service, internal/cluster/cluster.go, tryAssignMachineCidrNonDHCPMode.
pub fn release_machine_networks(snapshot: &mut Snapshot) {
    let cluster = &snapshot.cluster;
    let follows = cluster.kind == ClusterKind::Cluster
        && !cluster.api_vips.is_empty()
        && !networking::uses_dhcp(cluster)
        && !networking::has_user_load_balancer(cluster)
        && !networking::is_user_managed(cluster)
        && cluster.machine_networks.len() == 1;
    if follows && holding_vips(snapshot).is_none() {
        snapshot.cluster.machine_networks.clear();
    }
}

/// With DHCP the user chooses, unless there is only one network.
/// Source: assisted-service, internal/cluster/cluster.go, tryAssignMachineCidrDHCPMode.
fn only_common_network(snapshot: &Snapshot) -> Option<Vec<IpNet>> {
    if !snapshot.cluster.machine_networks.is_empty() {
        return None;
    }
    let common: Vec<IpNet> = common_networks(snapshot)
        .into_iter()
        .filter(|net| family(net.addr()) == Family::V4)
        .collect();
    (common.len() == 1).then_some(common)
}

/// Networks of every host with an inventory.
fn common_networks(snapshot: &Snapshot) -> BTreeSet<IpNet> {
    snapshot
        .hosts
        .iter()
        .filter(|host| host.inventory.is_some())
        .map(networks_of)
        .reduce(|left, right| left.intersection(&right).copied().collect())
        .unwrap_or_default()
}

/// One network of each family that the cluster uses; the default route decides between several.
/// Source: assisted-service, internal/cluster/cluster.go, tryAssignMachineCidrSNO.
fn one_per_family(snapshot: &Snapshot) -> Option<Vec<IpNet>> {
    if !snapshot.cluster.machine_networks.is_empty() {
        return None;
    }
    let common = common_networks(snapshot);
    let mut chosen = Vec::new();
    for wanted in families(&snapshot.cluster) {
        let candidates: Vec<IpNet> = common
            .iter()
            .copied()
            .filter(|net| family(net.addr()) == wanted)
            .collect();
        let net = match candidates.as_slice() {
            [only] => Some(*only),
            _ => candidates
                .iter()
                .copied()
                .find(|net| holds_default_route(snapshot, net)),
        };
        chosen.push(net?);
    }
    Some(chosen)
}

/// The families of the cluster's own networks, in their order.
fn families(cluster: &Cluster) -> Vec<Family> {
    let mut families = Vec::new();
    for net in &cluster.cluster_networks {
        let Ok(net) = net.cidr.parse::<IpNet>() else {
            continue;
        };
        if !families.contains(&family(net.addr())) {
            families.push(family(net.addr()));
        }
    }
    families
}

fn holds_default_route(snapshot: &Snapshot, net: &IpNet) -> bool {
    let first = snapshot
        .hosts
        .iter()
        .find_map(|host| host.inventory.as_ref());
    first.is_some_and(|inventory| default_gateways(inventory).any(|gateway| net.contains(&gateway)))
}

fn default_gateways(inventory: &Inventory) -> impl Iterator<Item = IpAddr> {
    let routes = inventory.routes.iter().filter(|route| route.is_default());
    routes.filter_map(|route| route.gateway.parse().ok())
}

/// The networks that hold the virtual addresses; none while a host network is missing.
/// Source: assisted-service, internal/cluster/cluster.go, tryAssignMachineCidrNonDHCPMode.
fn holding_vips(snapshot: &Snapshot) -> Option<Vec<IpNet>> {
    let cluster = &snapshot.cluster;
    let is_dual_stack = networking::read(cluster).is_ok_and(|networks| networks.is_dual_stack());
    let mut chosen = Vec::new();
    for vip in &cluster.api_vips {
        let net = holding_network(snapshot, vip.ip.parse().ok()?)?;
        if !chosen.contains(&net) {
            chosen.push(net);
        }
    }
    // One address does not determine the network of the other family.
    (!is_dual_stack || chosen.len() == 2).then_some(chosen)
}
