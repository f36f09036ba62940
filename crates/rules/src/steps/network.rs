//! Arguments of the network steps.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};
use model::cluster::{Cluster, ClusterKind};
use model::host::HostStatus;
use model::inventory::Interface;
use model::network::MachineNetwork;
use model::steps::{
    ConnectivityCheckNic, DhcpAllocationRequest, DomainResolutionRequest,
    DomainResolutionRequestDomainsItem, NtpSynchronizationRequest, VerifyVip, VipType,
};

use super::view::StepView;
use crate::HostState;
use crate::json_text;
use crate::network::free_addresses::is_scanned;
use crate::network::networking;
use crate::urls::registry_of;
use crate::vip_mac;

/// Checks of connectivity that a cluster may run in a minute: each one costs packets to every other host.
const CHECKS_PER_MINUTE: usize = 150;

/// The other hosts and their addresses, as JSON; none without others, or outside of this host's minute.
///
/// Amortised over the minutes, a poll carries a bounded number of hosts, and each is printed once for each inventory.
/// Source: assisted-service, internal/host/hostcommands/connectivity_check_cmd.go, GetSteps.
pub(super) fn connectivity(view: &StepView<'_>) -> Option<String> {
    if !is_own_minute(view) {
        return None;
    }
    let checked = view.others().filter(|other| {
        !matches!(
            other.record.status,
            HostStatus::Discovering | HostStatus::Disconnected
        )
    });
    let targets: Vec<&str> = checked
        .map(check_target)
        .filter(|one| !one.is_empty())
        .collect();
    if targets.is_empty() {
        return None;
    }
    let length: usize = targets.iter().map(|one| one.len() + 1).sum();
    let mut json = String::with_capacity(length + 1);
    for target in targets {
        json.push(if json.is_empty() { '[' } else { ',' });
        json.push_str(target);
    }
    json.push(']');
    Some(json)
}

/// Spreads the checks of a large cluster over minutes.
/// Source: assisted-service, internal/host/hostcommands/connectivity_check_cmd.go, isAdmitted.
fn is_own_minute(view: &StepView<'_>) -> bool {
    let Some(snapshot) = view.snapshot else {
        return false;
    };
    let turns = snapshot.hosts.len().div_ceil(CHECKS_PER_MINUTE).max(1);
    let position = snapshot.hosts.position_by_id(view.host.record.id);
    let minute = usize::try_from(view.now.timestamp() / 60).unwrap_or(0);
    minute % turns == position.unwrap_or(0) % turns
}

/// A host with its interfaces that have addresses, as JSON; empty without any.
fn check_target(host: &HostState) -> &str {
    let Some(inventory) = &host.inventory else {
        return "";
    };
    host.check_target(|| {
        let nics = inventory.interfaces.iter().map(|nic| ConnectivityCheckNic {
            name: nic.name.clone(),
            mac: nic.mac_address.clone(),
            ip_addresses: networks_of(nic).map(|net| net.addr().to_string()).collect(),
        });
        let nics: Vec<_> = nics.filter(|nic| !nic.ip_addresses.is_empty()).collect();
        if nics.is_empty() {
            return String::new();
        }
        // Texts cannot fail to be printed.
        let nics = json_text::text(&nics).unwrap_or_default();
        format!(r#"{{"host_id":"{}","nics":{nics}}}"#, host.record.id)
    })
}

/// The addresses of an interface, with their networks.
fn networks_of(nic: &Interface) -> impl Iterator<Item = IpNet> {
    nic.ipv4_addresses
        .iter()
        .chain(&nic.ipv6_addresses)
        .filter_map(|text| text.parse().ok())
}

/// The IPv4 networks of the host that are small enough for a scan.
/// Source: assisted-service, internal/host/hostcommands/free_addresses_cmd.go.
pub(super) fn free_addresses(view: &StepView<'_>) -> Option<Vec<String>> {
    let inventory = view.host.inventory.as_ref()?;
    let networks: BTreeSet<Ipv4Net> = inventory
        .interfaces
        .iter()
        .flat_map(|nic| &nic.ipv4_addresses)
        .filter_map(|text| text.parse::<Ipv4Net>().ok())
        .filter(|net| is_scanned(*net))
        .filter(|net| !net.addr().is_loopback() && !net.addr().is_link_local())
        .map(|net| net.trunc())
        .collect();
    (!networks.is_empty()).then(|| networks.iter().map(ToString::to_string).collect())
}

/// The interface in the first machine network requests the leases, under MACs derived from the cluster, and presents the
/// last ones.
/// Source: assisted-service, internal/host/hostcommands/dhcp_allocate_cmd.go.
pub(super) fn dhcp(view: &StepView<'_>) -> Option<DhcpAllocationRequest> {
    let snapshot = view.snapshot?;
    let cluster = view.cluster()?;
    if !networking::uses_dhcp(cluster) {
        return None;
    }
    let first = cluster.machine_networks.first()?;
    let nic = nics_inside(view.host, std::slice::from_ref(first)).next()?;
    let leases = &snapshot.vip_leases;
    Some(DhcpAllocationRequest {
        interface: nic.name.clone(),
        api_vip_mac: vip_mac(cluster.id, VipType::Api),
        ingress_vip_mac: vip_mac(cluster.id, VipType::Ingress),
        api_vip_lease: leases.api.clone(),
        ingress_vip_lease: leases.ingress.clone(),
    })
}

/// Interfaces with an address in one of the networks.
pub(crate) fn nics_inside<'a>(
    host: &'a HostState,
    networks: &[MachineNetwork],
) -> impl Iterator<Item = &'a Interface> {
    let networks = parsed(networks);
    host.inventory
        .iter()
        .flat_map(|inventory| &inventory.interfaces)
        .filter(move |nic| {
            networks_of(nic).any(|own| networks.iter().any(|net| net.contains(&own.addr())))
        })
}

/// The host's address in the first of the networks, else its first address.
pub(crate) fn main_address(host: &HostState, networks: &[MachineNetwork]) -> Option<IpAddr> {
    let networks = parsed(networks);
    let all: Vec<IpAddr> = host
        .inventory
        .iter()
        .flat_map(|inventory| &inventory.interfaces)
        .flat_map(networks_of)
        .map(|net| net.addr())
        .collect();
    networks
        .iter()
        .find_map(|net| all.iter().find(|address| net.contains(*address)))
        .or_else(|| all.first())
        .copied()
}

fn parsed(networks: &[MachineNetwork]) -> Vec<IpNet> {
    networks
        .iter()
        .filter_map(|net| net.cidr.parse().ok())
        .collect()
}

/// Every time server that cluster and infra-env name.
/// Source: assisted-service, internal/host/hostcommands/ntp_synchronizer_cmd.go.
pub(super) fn time_servers(view: &StepView<'_>) -> NtpSynchronizationRequest {
    let infra_env = view.ctx.infra_env;
    let mut lists = vec![
        infra_env.ntp_sources.as_str(),
        infra_env.additional_ntp_sources.as_str(),
    ];
    if let Some(cluster) = view.cluster() {
        lists.push(&cluster.ntp_sources);
        lists.push(&cluster.additional_ntp_source);
    }
    NtpSynchronizationRequest {
        ntp_source: union(lists.into_iter()).join(","),
    }
}

/// The items of comma lists, each once, in their order.
pub(crate) fn union<'a>(lists: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut items = Vec::new();
    for item in lists.flat_map(|list| list.split(',')).map(str::trim) {
        if !item.is_empty() && !items.contains(&item) {
            items.push(item);
        }
    }
    items
}

/// Names of the cluster, one that must not exist, and the registry of the release.
///
/// Agents refuse the whole step for one name that they do not accept: before 4.14 for a name that ends in a dot, before
/// 4.15 for any that is not [`is_plain_domain`].
/// Source: assisted-service, internal/host/hostcommands/domain_name_resolution_cmd.go; assisted-installer-agent,
/// `DomainResolutionRequestDomain` of each release.
pub(super) fn domains(view: &StepView<'_>) -> Option<DomainResolutionRequest> {
    let cluster = view.cluster()?;
    if cluster.name.is_empty() || cluster.base_dns_domain.is_empty() {
        return None;
    }
    let domain = format!("{}.{}", cluster.name, cluster.base_dns_domain);
    let mut names = vec![
        format!("api.{domain}"),
        format!("api-int.{domain}"),
        format!("console-openshift-console.apps.{domain}"),
        format!("validateNoWildcardDNS.{domain}"),
    ];
    if view.has_agent_of(4, 14) {
        names.push(format!("validateNoWildcardDNS.{domain}."));
    }
    let registry = release_host(cluster);
    names.extend(registry.filter(|host| view.has_agent_of(4, 15) || is_plain_domain(host)));
    Some(DomainResolutionRequest {
        domains: names
            .into_iter()
            .map(|domain_name| DomainResolutionRequestDomainsItem { domain_name })
            .collect(),
    })
}

fn release_host(cluster: &Cluster) -> Option<String> {
    if cluster.ocp_release_image.is_empty() {
        return None;
    }
    let registry = registry_of(&cluster.ocp_release_image);
    let host = match registry.strip_prefix('[') {
        Some(_) => return None,
        None => registry.split(':').next().unwrap_or(registry),
    };
    host.parse::<IpAddr>().is_err().then(|| host.to_owned())
}

/// Whether a name matches `([a-zA-Z0-9]+(-[a-zA-Z0-9]+)*[.])+[a-zA-Z]{2,}`.
fn is_plain_domain(name: &str) -> bool {
    let Some((labels, top)) = name.rsplit_once('.') else {
        return false;
    };
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_top = top.len() >= 2 && top.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_top && labels.split(['.', '-']).all(is_word)
}

/// The virtual addresses that must still be free. Agents before 4.13 do not know the step.
/// Source: assisted-service, internal/host/hostcommands/verify_vips_cmd.go; assisted-installer-agent,
/// src/commands/actions/action.go of each release.
pub(super) fn vips(view: &StepView<'_>) -> Option<Vec<VerifyVip>> {
    let cluster = view.cluster()?;
    if cluster.kind != ClusterKind::Cluster
        || networking::is_user_managed(cluster)
        || !view.has_agent_of(4, 13)
    {
        return None;
    }
    let api = cluster.api_vips.iter().map(|vip| (&vip.ip, VipType::Api));
    let ingress = cluster
        .ingress_vips
        .iter()
        .map(|vip| (&vip.ip, VipType::Ingress));
    let list: Vec<VerifyVip> = api
        .chain(ingress)
        .map(|(ip, kind)| VerifyVip {
            vip: ip.clone(),
            vip_type: Some(kind),
        })
        .collect();
    (!list.is_empty()).then_some(list)
}
