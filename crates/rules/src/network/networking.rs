//! Rules across the network members of a cluster, at creation and at every change.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use model::Error;
use model::cluster::{Cluster, LoadBalancerType};
use model::ids::ClusterId;
use model::network::{
    ApiVip, ClusterNetwork, IngressVip, MachineNetwork, NetworkType, ServiceNetwork,
};

use crate::InstallationPolicy;
use crate::input::{self, Family, LoadBalancerFacts, NetworkInput, NetworkRules};

/// Whether the cluster is a single machine.
pub(crate) fn is_single_node(cluster: &Cluster) -> bool {
    cluster.control_plane_count == 1
}

/// Whether the user runs the load balancer.
pub(crate) fn has_user_load_balancer(cluster: &Cluster) -> bool {
    cluster
        .load_balancer
        .as_ref()
        .and_then(|balancer| balancer.r#type)
        == Some(LoadBalancerType::UserManaged)
}

/// Whether the user runs the network services of the cluster.
pub(crate) fn is_user_managed(cluster: &Cluster) -> bool {
    cluster.user_managed_networking == Some(true)
}

/// Whether virtual addresses come from DHCP.
pub(crate) fn uses_dhcp(cluster: &Cluster) -> bool {
    cluster.vip_dhcp_allocation == Some(true)
}

/// All networks of the record, parsed.
pub(crate) fn read(cluster: &Cluster) -> Result<NetworkInput, Error> {
    NetworkInput::read(
        &cluster.cluster_networks,
        &cluster.service_networks,
        &cluster.machine_networks,
        &cluster.api_vips,
        &cluster.ingress_vips,
    )
}

/// Families of the networks that the user gave, in their order; IPv4 without any.
pub(crate) fn requested_families(cluster: &Cluster) -> Vec<Family> {
    let mut families = Vec::new();
    let nets = cluster
        .machine_networks
        .iter()
        .filter_map(|net| net.cidr.parse::<IpNet>().ok())
        .map(|net| net.addr());
    let vips = cluster
        .api_vips
        .iter()
        .filter_map(|vip| vip.ip.parse::<IpAddr>().ok());
    for address in nets.chain(vips) {
        let family = input::family(address);
        if !families.contains(&family) {
            families.push(family);
        }
    }
    if families.is_empty() {
        families.push(Family::V4);
    }
    families
}

/// Derives members that follow from others, then checks them all together.
///
/// `chosen` is the network plug-in of this request; one of an earlier request is kept.
/// Source: assisted-service, internal/bminventory/inventory.go, updateNetworkParams.
pub(crate) fn complete_and_check(
    cluster: &mut Cluster,
    chosen: Option<NetworkType>,
    policy: &InstallationPolicy,
    hosts: u64,
) -> Result<(), Error> {
    let networks = read(cluster)?;
    let single_node = is_single_node(cluster);
    let version = cluster.openshift_version.clone();
    cluster.network_type = Some(input::network_type(
        chosen.or(cluster.network_type),
        &version,
        single_node,
        networks.has_ipv6(),
    )?);
    check_dhcp(cluster, &networks)?;
    cluster.load_balancer = Some(input::load_balancer(
        cluster.load_balancer.as_ref(),
        &LoadBalancerFacts {
            version: &version,
            platform: cluster.platform_type(),
            dual_stack: networks.is_dual_stack(),
            user_managed_networking: is_user_managed(cluster),
            dhcp: uses_dhcp(cluster),
        },
    )?);
    networks.check(&NetworkRules {
        version: &version,
        single_node,
        user_managed_networking: is_user_managed(cluster),
        user_managed_load_balancer: has_user_load_balancer(cluster),
        dhcp: uses_dhcp(cluster),
        ipv6_support: policy.ipv6_support,
        hosts,
    })
}

/// The network plug-in is judged by the validation network-type-valid: it may still change.
/// Source: assisted-service, internal/bminventory/inventory.go, validateUserManagedNetworkConflicts.
fn check_dhcp(cluster: &Cluster, networks: &NetworkInput) -> Result<(), Error> {
    if !uses_dhcp(cluster) {
        return Ok(());
    }
    let reason = if is_single_node(cluster) {
        "is not possible on a single-node cluster"
    } else if is_user_managed(cluster) {
        "is not possible with user_managed_networking"
    } else if networks.has_ipv6() {
        "works with IPv4 only"
    } else {
        return Ok(());
    };
    Err(Error::invalid(
        "vip_dhcp_allocation",
        format!("\"true\" {reason}: use false and give api_vips and ingress_vips"),
    ))
}

/// The list, as stored.
pub(crate) fn cluster_networks(
    id: ClusterId,
    list: Vec<ClusterNetwork>,
) -> Result<Vec<ClusterNetwork>, Error> {
    list.into_iter()
        .enumerate()
        .map(|(index, net)| {
            let cidr = input::cidr(&format!("cluster_networks[{index}].cidr"), &net.cidr)?;
            Ok(ClusterNetwork {
                cluster_id: Some(id),
                cidr: cidr.to_string(),
                host_prefix: net.host_prefix,
            })
        })
        .collect()
}

/// The list, as stored.
pub(crate) fn service_networks(
    id: ClusterId,
    list: Vec<ServiceNetwork>,
) -> Result<Vec<ServiceNetwork>, Error> {
    list.into_iter()
        .enumerate()
        .map(|(index, net)| {
            let cidr = input::cidr(&format!("service_networks[{index}].cidr"), &net.cidr)?;
            Ok(ServiceNetwork {
                cluster_id: Some(id),
                cidr: cidr.to_string(),
            })
        })
        .collect()
}

/// The list, as stored.
pub(crate) fn machine_networks(
    id: ClusterId,
    list: Vec<MachineNetwork>,
) -> Result<Vec<MachineNetwork>, Error> {
    list.into_iter()
        .enumerate()
        .map(|(index, net)| {
            let cidr = input::cidr(&format!("machine_networks[{index}].cidr"), &net.cidr)?;
            Ok(machine_network(id, cidr))
        })
        .collect()
}

/// Refuses several machine networks of one address family, which only a load balancer of the user's connects.
///
/// Errors: `Invalid`.
/// Source: assisted-service, internal/cluster/validations/validations.go, ValidateDualStackNetworks.
pub(crate) fn check_machine_networks(cluster: &Cluster) -> Result<(), Error> {
    let networks = &cluster.machine_networks;
    let of_v6 = networks.iter().filter(|net| net.cidr.contains(':')).count();
    if has_user_load_balancer(cluster) || of_v6.max(networks.len() - of_v6) <= 1 {
        return Ok(());
    }
    let cidrs: Vec<&str> = networks.iter().map(|net| net.cidr.as_str()).collect();
    Err(input::refuse(
        "machine_networks",
        &cidrs.join(", "),
        "has several networks of one address family: name one of each, or use a user-managed load balancer",
    ))
}

/// One machine network, as stored.
pub(crate) fn machine_network(id: ClusterId, net: IpNet) -> MachineNetwork {
    MachineNetwork {
        cluster_id: Some(id),
        cidr: net.to_string(),
    }
}

/// The list, as stored: without verification results. An empty address clears its entry.
pub(crate) fn api_vips(id: ClusterId, list: Vec<ApiVip>) -> Result<Vec<ApiVip>, Error> {
    list.into_iter()
        .filter(|vip| !vip.ip.is_empty())
        .enumerate()
        .map(|(index, vip)| {
            let ip = input::ip(&format!("api_vips[{index}].ip"), &vip.ip)?;
            Ok(ApiVip {
                cluster_id: Some(id),
                ip: ip.to_string(),
                verification: None,
            })
        })
        .collect()
}

/// The list, as stored: without verification results. An empty address clears its entry.
pub(crate) fn ingress_vips(id: ClusterId, list: Vec<IngressVip>) -> Result<Vec<IngressVip>, Error> {
    list.into_iter()
        .filter(|vip| !vip.ip.is_empty())
        .enumerate()
        .map(|(index, vip)| {
            let ip = input::ip(&format!("ingress_vips[{index}].ip"), &vip.ip)?;
            Ok(IngressVip {
                cluster_id: Some(id),
                ip: ip.to_string(),
                verification: None,
            })
        })
        .collect()
}

/// Every virtual address of the record.
pub(crate) fn vips(cluster: &Cluster) -> BTreeSet<IpAddr> {
    let api = cluster.api_vips.iter().map(|vip| vip.ip.as_str());
    let ingress = cluster.ingress_vips.iter().map(|vip| vip.ip.as_str());
    api.chain(ingress)
        .filter_map(|text| text.parse().ok())
        .collect()
}
