//! Connectivity groups and IP collisions of a cluster's hosts.
//!
//! The work is linear in the size of the reports, for a bounded number of networks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use ipnet::IpNet;
use model::ids::HostId;
use serde::{Deserialize, Serialize};

use crate::snapshot::Snapshot;
use crate::snapshot::host_texts::HostTexts;
use crate::snapshot::hosts::HostPositions;
use crate::snapshot::networks::{self, is_v4};
use crate::snapshot::reach::Mac;
use crate::snapshot::roles;

/// Least size of a majority group. Units: hosts.
const GROUP: usize = 3;
/// Networks with groups of their own: each takes a bit for every pair of hosts, and hosts may claim any number of
/// networks.
const NETWORKS: usize = 64;
/// Stored collisions, the lowest addresses first: the record of the cluster holds them.
const COLLISIONS: usize = 1000;
/// Least size with fencing, where two masters are a cluster.
const FENCED_GROUP: usize = 2;

/// Content of `connectivity_majority_groups`: for each network, and for IPv4 and IPv6 as such, the largest group of
/// hosts that all reach each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Groups {
    /// Addresses of each host that every other host reaches.
    #[serde(default)]
    pub l3_connected_addresses: BTreeMap<HostId, BTreeSet<String>>,
    /// Members by network, `IPv4` or `IPv6`.
    #[serde(default, rename = "majority_groups")]
    pub groups: BTreeMap<String, Vec<HostId>>,
}

impl Groups {
    /// Parses the text of a cluster's record.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// Least size of a group in this cluster. Units: hosts.
pub(crate) fn least(snapshot: &Snapshot) -> usize {
    if roles::is_fenced(snapshot) {
        FENCED_GROUP
    } else {
        GROUP
    }
}

/// Computes the groups.
/// Source: assisted-service, internal/network/connectivity_groups.go, CreateL2MajorityGroup, CreateL3MajorityGroup.
pub(crate) fn groups(snapshot: &Snapshot, texts: &[HostTexts]) -> Groups {
    let least = least(snapshot);
    let positions = HostPositions::new(&snapshot.hosts);
    let mut graphs = ReachGraphs::new(texts, least);
    let mut reached: Vec<BTreeMap<IpAddr, Tally>> = Vec::new();
    reached.resize_with(snapshot.hosts.len(), BTreeMap::new);
    for (from, one) in texts.iter().enumerate() {
        let Some(reaches) = &one.reaches else {
            continue;
        };
        for (to, reach) in positions.of_reaches(reaches) {
            for (address, _, _) in reach.layer2.iter().filter(|link| link.1) {
                graphs.layer2(from, to, *address);
            }
            for &(address, answered) in reach.layer3 {
                let tally = reached[to].entry(address).or_default();
                if answered {
                    graphs.layer3(from, to, address);
                    tally.good += 1;
                } else {
                    tally.bad += 1;
                }
            }
        }
    }
    Groups {
        groups: graphs.groups(snapshot, least),
        l3_connected_addresses: reached
            .into_iter()
            .enumerate()
            .filter(|(_, addresses)| !addresses.is_empty())
            .map(|(to, addresses)| {
                let good = addresses
                    .into_iter()
                    .filter(|(_, tally)| tally.good > 0 && tally.bad == 0);
                (
                    snapshot.hosts[to].record.id,
                    good.map(|(address, _)| address.to_string()).collect(),
                )
            })
            .collect(),
    }
}

/// Hosts that reach an address, and hosts that do not.
#[derive(Default)]
struct Tally {
    good: usize,
    bad: usize,
}

/// One graph per network and family.
struct ReachGraphs {
    networks: Vec<(IpNet, ReachGraph)>,
    v4: ReachGraph,
    v6: ReachGraph,
}

/// Directed edges between hosts, one bit each.
struct ReachGraph {
    members: Vec<bool>,
    edges: Vec<Vec<u64>>,
}

impl ReachGraphs {
    fn new(texts: &[HostTexts], least: usize) -> Self {
        let hosts = texts.len();
        let mut members: BTreeMap<IpNet, Vec<bool>> = BTreeMap::new();
        let mut families = [vec![false; hosts], vec![false; hosts]];
        for (at, one) in texts.iter().enumerate() {
            for address in &one.addresses {
                let net = address.net.trunc();
                families[usize::from(!is_v4(&net))][at] = true;
                members.entry(net).or_insert_with(|| vec![false; hosts])[at] = true;
            }
        }
        let [v4, v6] = families;
        let count = |members: &Vec<bool>| members.iter().filter(|one| **one).count();
        let mut networks: Vec<(IpNet, Vec<bool>)> = members
            .into_iter()
            .filter(|(_, members)| count(members) >= least)
            .collect();
        // The networks of most hosts; of equally many the first.
        networks.sort_by_key(|(_, members)| std::cmp::Reverse(count(members)));
        networks.truncate(NETWORKS);
        networks.sort_by_key(|(net, _)| *net);
        Self {
            networks: networks
                .into_iter()
                .map(|(net, members)| (net, ReachGraph::new(members)))
                .collect(),
            v4: ReachGraph::new(v4),
            v6: ReachGraph::new(v6),
        }
    }

    fn layer2(&mut self, from: usize, to: usize, address: IpAddr) {
        for (net, graph) in &mut self.networks {
            if net.contains(&address) {
                graph.connect(from, to);
            }
        }
    }

    /// Neighbour discovery is often filtered: for IPv6 an answer to ping counts as being on the same network.
    fn layer3(&mut self, from: usize, to: usize, address: IpAddr) {
        if address.is_ipv4() {
            self.v4.connect(from, to);
            return;
        }
        self.v6.connect(from, to);
        self.layer2(from, to, address);
    }

    fn groups(self, snapshot: &Snapshot, least: usize) -> BTreeMap<String, Vec<HostId>> {
        let named = self
            .networks
            .into_iter()
            .map(|(net, graph)| (net.to_string(), graph));
        let families = [("IPv4".to_owned(), self.v4), ("IPv6".to_owned(), self.v6)];
        named
            .chain(families)
            .map(|(name, graph)| {
                let group = graph.largest_group();
                let group = if group.len() >= least {
                    group
                } else {
                    Vec::new()
                };
                let ids = group.into_iter().map(|at| snapshot.hosts[at].record.id);
                (name, ids.collect())
            })
            .collect()
    }
}

impl ReachGraph {
    fn new(members: Vec<bool>) -> Self {
        let words = members.len().div_ceil(64);
        Self {
            edges: vec![vec![0; words]; members.len()],
            members,
        }
    }

    fn connect(&mut self, from: usize, to: usize) {
        self.edges[from][to / 64] |= 1 << (to % 64);
    }

    fn sees(&self, from: usize, to: usize) -> bool {
        self.edges[from][to / 64] & (1 << (to % 64)) != 0
    }

    fn both(&self, left: usize, right: usize) -> bool {
        self.sees(left, right) && self.sees(right, left)
    }

    /// The largest full mesh found. Well connected hosts are tried first, so a complete mesh is found at once; only
    /// missing links cost further starts, at most `STARTS`.
    fn largest_group(&self) -> Vec<usize> {
        const STARTS: usize = 8;
        let mut order: Vec<(usize, usize)> = (0..self.members.len())
            .filter(|at| self.members[*at])
            .map(|at| {
                (
                    at,
                    self.edges[at]
                        .iter()
                        .map(|word| word.count_ones() as usize)
                        .sum(),
                )
            })
            .collect();
        order.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(&right.0)));
        let mut best: Vec<usize> = Vec::new();
        for &(start, degree) in order.iter().take(STARTS.max(order.len().min(64))) {
            if degree < best.len() {
                break;
            }
            if best.contains(&start) && best.len() == degree + 1 {
                continue;
            }
            let mut group = vec![start];
            for &(at, _) in &order {
                if at != start && group.iter().all(|one| self.both(*one, at)) {
                    group.push(at);
                }
            }
            if group.len() > best.len() {
                best = group;
            }
        }
        best.sort_unstable();
        best
    }
}

/// Addresses that several machines claim, with the MACs that answered.
/// Source: assisted-service, internal/cluster/cluster.go, getCollidingIPs.
pub(crate) fn ip_collisions(texts: &[HostTexts]) -> BTreeMap<String, Vec<String>> {
    let mut owners: HashMap<Mac, usize> = HashMap::new();
    let mut claims: BTreeMap<IpAddr, BTreeSet<Mac>> = BTreeMap::new();
    for (at, one) in texts.iter().enumerate() {
        for address in &one.addresses {
            if let Some(mac) = address.mac {
                owners.insert(mac, at);
                claims.entry(address.net.addr()).or_default().insert(mac);
            }
        }
    }
    let reaches = texts.iter().flat_map(|one| &one.reaches);
    let links = reaches.flat_map(|reaches| reaches.layer2());
    for (address, _, mac) in links {
        if let Some(mac) = mac
            && networks::is_routable(*address)
        {
            claims.entry(*address).or_default().insert(*mac);
        }
    }
    claims
        .into_iter()
        .filter(|(_, macs)| {
            // One machine may answer on several of its own interfaces.
            let machines: BTreeSet<Result<usize, &Mac>> = macs
                .iter()
                .map(|mac| owners.get(mac).copied().ok_or(mac))
                .collect();
            machines.len() > 1
        })
        .take(COLLISIONS)
        .map(|(address, macs)| {
            let macs = macs.iter().map(ToString::to_string);
            (address.to_string(), macs.collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn groups_are_below_a_member_of_their_own() {
        let snapshot = fixtures::snapshot(3, 0);
        let texts: Vec<HostTexts> = snapshot.hosts.iter().map(HostTexts::of).collect();
        let json = serde_json::to_value(groups(&snapshot, &texts)).unwrap();
        let members: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(members, ["l3_connected_addresses", "majority_groups"]);
        assert_eq!(json["majority_groups"]["IPv4"].as_array().unwrap().len(), 3);
    }
}
