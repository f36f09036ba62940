//! Validations of clusters' virtual addresses.

use std::net::IpAddr;

use ipnet::IpNet;
use model::network::VipVerification;

use super::subject::ClusterSubject;
use super::verdict::Verdict;
use crate::network::free_addresses::{is_free, is_scanned};
use crate::network::networking;
use crate::network::vip_leases::LEASE_TIMEOUT;
use crate::snapshot::networks::is_v4;
use crate::versions::agent_version::is_embedded;
use crate::versions::at_least;

/// A virtual address, for the API or for ingress.
pub(super) struct Vip {
    pub(super) ip: String,
    verification: Option<VipVerification>,
}

pub(super) fn api_vips(cluster: &ClusterSubject<'_>) -> Vec<Vip> {
    let vips = cluster.cluster.api_vips.iter();
    vips.map(|vip| Vip {
        ip: vip.ip.clone(),
        verification: vip.verification,
    })
    .collect()
}

fn ingress_vips(cluster: &ClusterSubject<'_>) -> Vec<Vip> {
    let vips = cluster.cluster.ingress_vips.iter();
    vips.map(|vip| Vip {
        ip: vip.ip.clone(),
        verification: vip.verification,
    })
    .collect()
}

pub(super) fn api_vips_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    vips_defined(cluster, "api_vips", &api_vips(cluster))
}

pub(super) fn ingress_vips_defined(cluster: &ClusterSubject<'_>) -> Verdict {
    vips_defined(cluster, "ingress_vips", &ingress_vips(cluster))
}

/// No VIP is needed with a user-managed load balancer or on a single node.
pub(super) fn needs_no_vips(cluster: &ClusterSubject<'_>) -> bool {
    cluster.user_managed || cluster.single_node || cluster.day2
}

/// Source: assisted-service, internal/cluster/validator.go, areVipsDefined.
fn vips_defined(cluster: &ClusterSubject<'_>, field: &str, vips: &[Vip]) -> Verdict {
    if needs_no_vips(cluster) {
        return Verdict::ok("No virtual address is needed");
    }
    if vips.is_empty() && networking::uses_dhcp(cluster.cluster) {
        return vips_leased(cluster, field);
    }
    Verdict::of(
        !vips.is_empty(),
        format!("{field} is set"),
        format_args!("{field}: none is set; set a free address of the hosts' network"),
    )
    .observed(format_args!("no {field}"))
}

/// Missing virtual addresses that DHCP leases.
/// Source: assisted-service, internal/cluster/validator.go, areVipsDefined.
fn vips_leased(cluster: &ClusterSubject<'_>, field: &str) -> Verdict {
    if cluster.networks.machine.is_empty() {
        return Verdict::wait("the machine network");
    }
    let leases = &cluster.snapshot.vip_leases;
    let (network, minutes) = (&leases.network, LEASE_TIMEOUT.num_minutes());
    if !leases.timed_out {
        return Verdict::wait(format!(
            "DHCP leases of the virtual addresses in {network}, for at most {minutes} minutes"
        ));
    }
    Verdict::fail(format!(
        "{field}: no DHCP server of {network} leased an address within {minutes} minutes; let one answer there, or disable vip_dhcp_allocation and set the addresses"
    ))
    .observed(format_args!("no lease in {network} after {minutes} minutes"))
    .required("a lease from a DHCP server of the machine network")
    .fix("Let a DHCP server answer in the machine network, or disable vip_dhcp_allocation and set the addresses.")
}

pub(super) fn api_vips_valid(cluster: &ClusterSubject<'_>) -> Verdict {
    vips_valid(cluster, "api_vips", &api_vips(cluster))
}

pub(super) fn ingress_vips_valid(cluster: &ClusterSubject<'_>) -> Verdict {
    vips_valid(cluster, "ingress_vips", &ingress_vips(cluster))
}

/// Source: assisted-service, internal/cluster/validator.go, areVipsValid.
fn vips_valid(cluster: &ClusterSubject<'_>, field: &str, vips: &[Vip]) -> Verdict {
    if needs_no_vips(cluster) {
        return Verdict::ok("No virtual address is needed");
    }
    if vips.is_empty() {
        return Verdict::wait(format!("{field} to be set"));
    }
    let mut awaited = None;
    for vip in vips {
        match vip_valid(cluster, field, vip) {
            Verdict::Success(_) => {}
            pending @ Verdict::Pending(_) => awaited = Some(pending),
            bad => return bad,
        }
    }
    awaited.unwrap_or_else(|| Verdict::ok(format!("{field} can be used")))
}

/// Source: assisted-service, internal/cluster/validator.go, validateVipsClusterManagedLoadBalancer,
/// validateVipsUserManagedLoadBalancer.
fn vip_valid(cluster: &ClusterSubject<'_>, field: &str, vip: &Vip) -> Verdict {
    let ip = &vip.ip;
    let Ok(address) = ip.parse::<IpAddr>() else {
        return Verdict::fail(format!("{field}: {ip} is not an IP address")).observed(ip);
    };
    let machine = &cluster.networks.machine;
    if machine.is_empty() {
        return Verdict::wait("the machine network");
    }
    let Some(network) = machine.iter().find(|net| net.contains(&address)) else {
        let nets: Vec<String> = machine.iter().map(ToString::to_string).collect();
        return Verdict::fail(format!(
            "{field}: {ip} is not in machine network {}; choose an address of it",
            nets.join(", ")
        ))
        .observed(ip)
        .required(format_args!("an address of {}", nets.join(", ")));
    };
    let reserved = is_v4(network) && network.prefix_len() < 31;
    if reserved && (address == network.network() || address == network.broadcast()) {
        return Verdict::fail(format!(
            "{field}: {ip} is the network or broadcast address of {network}; choose another address"
        ))
        .observed(format_args!(
            "{ip}, the network or broadcast address of {network}"
        ));
    }
    if cluster.user_load_balancer {
        return Verdict::ok("The address belongs to the load balancer");
    }
    let taken = || {
        Verdict::fail(format!(
            "{field}: {ip} is in use already; choose a free address of {network}"
        ))
        .observed(format_args!("{ip} is in use"))
        .required(format_args!("a free address of {network}"))
    };
    let hosts = &cluster.snapshot.hosts;
    match vip.verification {
        Some(VipVerification::Succeeded) => Verdict::ok("The address is free"),
        Some(VipVerification::Failed) => taken(),
        Some(VipVerification::Unverified) | None => match is_free(hosts, network, ip) {
            Some(true) => Verdict::ok("The address is free"),
            Some(false) => taken(),
            None if is_checked(cluster, network) => {
                Verdict::wait(format!("the hosts to check whether {ip} is free"))
            }
            None => Verdict::ok(format!(
                "Agents of releases before 4.13 do not check whether {ip} is free in {network}"
            )),
        },
    }
}

/// Whether hosts check the addresses of a network: they scan small ones, and verify single addresses from 4.13 on.
fn is_checked(cluster: &ClusterSubject<'_>, network: &IpNet) -> bool {
    let mut hosts = cluster.snapshot.hosts.iter();
    matches!(network, IpNet::V4(network) if is_scanned(*network))
        || at_least(&cluster.cluster.openshift_version, 4, 13)
        || hosts.any(|host| is_embedded(&host.record.discovery_agent_version))
}
