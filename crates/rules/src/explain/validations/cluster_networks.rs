//! Network validations of clusters.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use model::network::NetworkType;

use super::cluster_vips::{api_vips, needs_no_vips};
use super::subject::ClusterSubject;
use super::verdict::Verdict;
use crate::network::networking;
use crate::snapshot::networks::{self, is_v4};

/// Default prefixes of plugins without a host prefix, by family.
const OWN_PREFIX: (i64, i64) = (25, 64);

/// Source: assisted-service, internal/cluster/validator.go, isMachineCidrDefined.
pub(super) fn machine_cidr_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    if cluster.user_managed || cluster.day2 {
        return Verdict::ok("No machine network is needed");
    }
    let defined = !cluster.networks.machine.is_empty();
    if !defined && cluster.single_node {
        return Verdict::ok("The machine network follows from the host");
    }
    let (problem, fix) = if networking::uses_dhcp(cluster.cluster) {
        (
            "machine_networks: none is defined; set the one in which DHCP leases the VIPs",
            "Set the machine network in which DHCP leases the VIPs.",
        )
    } else if cluster.user_load_balancer {
        (
            "machine_networks: none is defined; set machine_networks: from the VIPs of your own load balancer they do not follow",
            "Set machine_networks to the networks of the hosts and of the load balancer.",
        )
    } else {
        (
            "machine_networks: none is defined; set the VIPs, from which it follows, or the network itself",
            "",
        )
    };
    Verdict::of(defined, "The machine network is defined", problem)
        .observed("no machine network")
        .fix(fix)
}

/// Source: assisted-service, internal/cluster/validator.go, isClusterCidrDefined.
pub(super) fn cluster_cidr_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    Verdict::of(
        !cluster.networks.cluster.is_empty() || cluster.day2,
        "The cluster network is defined",
        "cluster_networks: none is defined; set one, for instance 10.128.0.0/14 with host_prefix 23",
    )
    .observed("no cluster network")
}

/// Source: assisted-service, internal/cluster/validator.go, isServiceCidrDefined.
pub(super) fn service_cidr_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    Verdict::of(
        !cluster.networks.service.is_empty() || cluster.day2,
        "The service network is defined",
        "service_networks: none is defined; set one, for instance 172.30.0.0/16",
    )
    .observed("no service network")
}

/// Source: assisted-service, internal/cluster/validator.go, isMachineCidrEqualsToCalculatedCidr.
pub(super) fn machine_cidr_calculated(cluster: &ClusterSubject<'_>) -> Verdict {
    if needs_no_vips(cluster) || cluster.user_load_balancer {
        return Verdict::ok("The machine network need not hold virtual addresses");
    }
    let vips: Vec<IpAddr> = api_vips(cluster)
        .iter()
        .filter_map(|vip| vip.ip.parse().ok())
        .collect();
    if vips.is_empty() {
        return Verdict::wait("api_vips to be set");
    }
    let hosts: BTreeSet<IpNet> = cluster
        .texts
        .iter()
        .flat_map(|texts| &texts.addresses)
        .map(|address| address.net.trunc())
        .collect();
    if hosts.is_empty() {
        return Verdict::wait("hosts to report their networks");
    }
    for vip in vips {
        let Some(calculated) = networks::holding(&hosts, vip) else {
            return Verdict::fail(format!(
                "api_vips: {vip} is in none of the hosts' networks; choose an address of one"
            ))
            .observed(format_args!("{vip} is in none of the hosts' networks"))
            .fix("Choose virtual addresses of the hosts' network.");
        };
        if !cluster.networks.machine.contains(&calculated) {
            return Verdict::fail(format!(
                "machine_networks: {calculated}, which holds {vip}, is not among them; set it"
            ))
            .observed(format_args!("machine_networks without {calculated}"))
            .required(format_args!("{calculated}, which holds {vip}"));
        }
    }
    Verdict::ok("The machine network is the one that holds the virtual addresses")
}

/// Source: assisted-service, internal/cluster/validator.go, networkPrefixValid.
pub(super) fn network_prefix_valid(cluster: &ClusterSubject<'_>) -> Verdict {
    if cluster.day2 {
        return Verdict::ok("The cluster is installed already");
    }
    if cluster.networks.cluster.is_empty() {
        return Verdict::wait("cluster_networks to be set");
    }
    let plugin = cluster.cluster.network_type;
    let hosts = i64::try_from(cluster.snapshot.hosts.len())
        .unwrap_or(i64::MAX)
        .max(4);
    for (net, prefix) in &cluster.networks.cluster {
        let bits = i64::from(net.max_prefix_len());
        let own = if is_v4(net) {
            OWN_PREFIX.0
        } else {
            OWN_PREFIX.1
        };
        let prefix = match *prefix {
            0 if plugin.is_some_and(is_third_party) => own,
            prefix => prefix,
        };
        let length = i64::from(net.prefix_len());
        if prefix < 1 || prefix > bits - 7 || prefix < length {
            return Verdict::fail(format!(
                "host_prefix: {prefix} of cluster network {net} must be between {} and {}",
                length.max(1),
                bits - 7
            ))
            .observed(format_args!("host_prefix {prefix} of {net}"))
            .required(format_args!(
                "a host_prefix between {} and {}",
                length.max(1),
                bits - 7
            ));
        }
        // 62 bits hold more hosts than any cluster has.
        let subnets = 1_i64 << (prefix - length).min(62);
        if subnets < hosts {
            return Verdict::fail(format!(
                "host_prefix: {prefix} splits cluster network {net} into {subnets} parts, {hosts} are needed; choose a larger network or a longer prefix"
            ))
            .observed(format_args!("{subnets} parts of {net}"))
            .required(format_args!("{hosts} parts, one for each host"));
        }
    }
    Verdict::ok("The cluster network has a part for every host")
}

/// Source: assisted-service, internal/cluster/validator.go, noCidrsOverlapping.
pub(super) fn no_cidrs_overlapping(cluster: &ClusterSubject<'_>) -> Verdict {
    let networks = &cluster.networks;
    if !networks.unparsable.is_empty() {
        return Verdict::error(format!(
            "Networks: {} cannot be read as CIDR",
            networks.unparsable.join(", ")
        ))
        .observed(networks.unparsable.join(", "))
        .required("networks as CIDR");
    }
    if networks.cluster.len() != networks.service.len() {
        return Verdict::error(format!(
            "Networks: there are {} cluster and {} service networks; there must be as many of each",
            networks.cluster.len(),
            networks.service.len()
        ))
        .observed(format_args!(
            "{} cluster and {} service networks",
            networks.cluster.len(),
            networks.service.len()
        ))
        .required("as many cluster as service networks");
    }
    let named: Vec<(&str, IpNet)> = networks
        .machine
        .iter()
        .map(|net| ("machine", *net))
        .chain(networks.cluster.iter().map(|one| ("cluster", one.0)))
        .chain(networks.service.iter().map(|net| ("service", *net)))
        .collect();
    for (at, (name, net)) in named.iter().enumerate() {
        for (other_name, other) in &named[at + 1..] {
            if name != other_name && networks::overlap(net, other) {
                return Verdict::fail(format!(
                    "Networks: {name} network {net} and {other_name} network {other} overlap; change one"
                ))
                .observed(format_args!("{name} {net} and {other_name} {other}"));
            }
        }
    }
    Verdict::ok("No networks overlap")
}

fn is_third_party(kind: NetworkType) -> bool {
    matches!(
        kind,
        NetworkType::Cilium | NetworkType::Calico | NetworkType::CiscoACI | NetworkType::None
    )
}

/// Source: assisted-service, internal/cluster/validator.go, isNetworkTypeValid.
pub(super) fn network_type_valid(cluster: &ClusterSubject<'_>) -> Verdict {
    let Some(kind) = cluster.cluster.network_type else {
        return Verdict::of(
            cluster.day2,
            "The cluster is installed already",
            "network_type: it is not set; set OVNKubernetes or another plugin",
        )
        .observed("no network_type");
    };
    let networks = &cluster.networks;
    let mut all = networks
        .machine
        .iter()
        .chain(&networks.service)
        .chain(networks.cluster.iter().map(|one| &one.0));
    if kind == NetworkType::OpenShiftSDN && (cluster.single_node || all.any(|net| !is_v4(net))) {
        return Verdict::fail(
            "network_type: OpenShiftSDN supports neither IPv6 nor a single node; choose OVNKubernetes",
        )
        .observed("OpenShiftSDN with IPv6 or on a single node");
    }
    if kind == NetworkType::OVNKubernetes && cluster.cluster.vip_dhcp_allocation == Some(true) {
        return Verdict::fail(
            "network_type: OVNKubernetes supports no virtual addresses from DHCP; set them and disable vip_dhcp_allocation",
        )
        .observed("OVNKubernetes with vip_dhcp_allocation")
        .fix("Set the virtual addresses and disable vip_dhcp_allocation.");
    }
    Verdict::ok(format!("Network type {kind} fits"))
}

/// Source: assisted-service, internal/cluster/validator.go, isCustomManifestsRequirementsSatisfied.
pub(super) fn custom_manifests(cluster: &ClusterSubject<'_>) -> Verdict {
    let third_party = cluster
        .cluster
        .network_type
        .filter(|kind| is_third_party(*kind));
    match third_party {
        Some(kind) => Verdict::of(
            cluster.snapshot.files.user_manifests,
            "Manifests for the network plugin have been added",
            format_args!(
                "network_type: {kind} requires manifests of the plugin, but none were added; add them"
            ),
        )
        .observed(format_args!("network_type {kind} without manifests")),
        None => Verdict::ok("The platform provides the network plugin"),
    }
}

/// Source: assisted-service, internal/cluster/validator.go, isNetworksSameAddressFamilies.
pub(super) fn same_families(cluster: &ClusterSubject<'_>) -> Verdict {
    let networks = &cluster.networks;
    let families = |nets: &mut dyn Iterator<Item = &IpNet>| {
        let mut families: Vec<bool> = nets.map(is_v4).collect();
        families.sort_unstable();
        families.dedup();
        families
    };
    let machine = families(&mut networks.machine.iter());
    let pods = families(&mut networks.cluster.iter().map(|one| &one.0));
    let service = families(&mut networks.service.iter());
    let judged = pods == service && (machine.is_empty() || machine == pods);
    if machine.is_empty() && judged && !cluster.user_managed && !cluster.day2 {
        return Verdict::wait("the machine network");
    }
    Verdict::of(
        judged,
        "Machine, cluster and service networks are of the same address families",
        "Networks: machine, cluster and service networks are not of the same address families; make each list hold the same",
    )
    .observed("lists of networks that differ in their address families")
}
