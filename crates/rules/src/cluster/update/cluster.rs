//! Changes of a cluster.

use std::net::IpAddr;

use ipnet::IpNet;
use model::Error;
use model::cluster::{
    Cluster, ClusterKind, ClusterPlatform, ClusterStatus, ClusterUpdateParams, PlatformType,
};
use model::events::EventSeverity;
use model::network::{ApiVip, IngressVip};

use super::context::UpdateContext;
use super::machine_networks::{holding_network, networks_text};
use super::members::{set_plain_members, set_proxy};
use crate::NewEvent;
use crate::Snapshot;
use crate::input;
use crate::network::free_addresses::is_free;
use crate::network::networking;
use crate::operators::{self, OperatorRequest};

/// Whether the cluster accepts changes of settings and hosts.
/// Source: assisted-service, internal/cluster/cluster.go, VerifyClusterUpdatability.
pub fn accepts_changes(cluster: &Cluster) -> Result<(), Error> {
    match cluster.status {
        ClusterStatus::Insufficient
        | ClusterStatus::Ready
        | ClusterStatus::PendingForInput
        | ClusterStatus::AddingHosts => Ok(()),
        status => Err(Error::conflict(format!(
            "cluster {} is {status}: it can be changed only while it is insufficient, ready, pending-for-input or adding-hosts; cancel and reset the installation first",
            cluster.id
        ))),
    }
}

/// Applies the changes, all or none; the caller stores a new pull secret and refreshes afterwards.
///
/// Errors: `Conflict` – the status forbids it; `Invalid` naming the field.
pub fn cluster(
    snapshot: &mut Snapshot,
    params: &ClusterUpdateParams,
    ctx: &UpdateContext<'_>,
) -> Result<Vec<NewEvent>, Error> {
    accepts_changes(&snapshot.cluster)?;
    let mut changed = snapshot.cluster.clone();
    if changed.kind == ClusterKind::AddHostsCluster {
        check_adding_hosts(params)?;
    }
    if let Some(secret) = &params.pull_secret {
        let mut images: Vec<&str> = snapshot.components.known().collect();
        images.push(&changed.ocp_release_image);
        input::pull_secret(secret, &images, &ctx.offer.public_registries)?;
        changed.pull_secret_set = true;
    }
    let proxy_changed = set_proxy(&mut changed, params)?;
    set_plain_members(&mut changed, params, ctx)?;
    if changed.kind == ClusterKind::Cluster {
        set_topology(&mut changed, params, ctx)?;
        let hosts = u64::try_from(snapshot.hosts.len()).unwrap_or(u64::MAX);
        let before = snapshot.cluster.clone();
        set_networking_mode(&mut changed, params)?;
        set_lists(&mut changed, params)?;
        set_vips(&mut changed, params)?;
        set_machine_networks(&mut changed, &before, params, snapshot)?;
        networking::complete_and_check(&mut changed, params.network_type, ctx.policy, hosts)?;
        set_operators(&mut changed, params, snapshot, ctx)?;
    }
    let mut events = Vec::new();
    if proxy_changed {
        events.push(
            NewEvent::new(
                "proxy_settings_changed",
                EventSeverity::Info,
                "Proxy settings changed",
            )
            .cluster(changed.id),
        );
    }
    snapshot.cluster = changed;
    Ok(events)
}

/// Operators have to fit the machines when they are chosen, and the cluster after every change.
/// Source: assisted-service, internal/bminventory/inventory.go, updateOperatorsData.
fn set_operators(
    cluster: &mut Cluster,
    params: &ClusterUpdateParams,
    snapshot: &Snapshot,
    ctx: &UpdateContext<'_>,
) -> Result<(), Error> {
    let request = OperatorRequest {
        operators: params.olm_operators.as_deref(),
        bundles: params.operator_bundles.as_deref(),
    };
    let is_changed = request.operators.is_some()
        || request.bundles.is_some()
        || params.user_managed_networking.is_some();
    operators::select(cluster, request)?;
    let inventories = snapshot
        .hosts
        .iter()
        .filter_map(|host| host.inventory.as_ref());
    let of_hosts =
        inventories.filter_map(|inventory| inventory.cpu.as_ref()?.architecture.parse().ok());
    let of_images = ctx.infra_envs.iter().filter_map(|one| one.cpu_architecture);
    let architectures = of_hosts.chain(of_images).filter(|_| is_changed).collect();
    if params.user_managed_networking.is_some() {
        operators::check_networking(cluster, &architectures)?;
    }
    operators::check_compatibility(cluster, &architectures)
}

/// Refuses settings that a day-2 cluster cannot change.
fn check_adding_hosts(params: &ClusterUpdateParams) -> Result<(), Error> {
    let not_possible = [
        ("api_vips", params.api_vips.is_some()),
        ("ingress_vips", params.ingress_vips.is_some()),
        ("machine_networks", params.machine_networks.is_some()),
        (
            "machine_network_cidr",
            params.machine_network_cidr.is_some(),
        ),
        ("cluster_networks", params.cluster_networks.is_some()),
        (
            "cluster_network_cidr",
            params.cluster_network_cidr.is_some(),
        ),
        ("service_networks", params.service_networks.is_some()),
        (
            "service_network_cidr",
            params.service_network_cidr.is_some(),
        ),
        ("network_type", params.network_type.is_some()),
        ("vip_dhcp_allocation", params.vip_dhcp_allocation.is_some()),
        ("platform", params.platform.is_some()),
        ("disk_encryption", params.disk_encryption.is_some()),
        ("control_plane_count", params.control_plane_count.is_some()),
        ("load_balancer", params.load_balancer.is_some()),
        ("olm_operators", params.olm_operators.is_some()),
        ("operator_bundles", params.operator_bundles.is_some()),
        // Clients of the description's defaults send false with every change.
        (
            "schedulable_masters",
            params.schedulable_masters == Some(true),
        ),
        ("hyperthreading", params.hyperthreading.is_some()),
    ];
    match not_possible.iter().find(|(_, given)| *given) {
        Some((field, _)) => Err(Error::invalid(
            *field,
            "cannot change on an installed cluster that takes more hosts: leave it out",
        )),
        None => Ok(()),
    }
}

/// Source: assisted-service, internal/bminventory/inventory.go, validateHighAvailabilityWithControlPlaneCount.
fn set_topology(
    cluster: &mut Cluster,
    params: &ClusterUpdateParams,
    ctx: &UpdateContext<'_>,
) -> Result<(), Error> {
    let Some(count) = params.control_plane_count else {
        return Ok(());
    };
    let topology = input::topology(
        None,
        Some(count),
        &cluster.openshift_version,
        ctx.offer.two_nodes(),
    )?;
    if topology.is_single_node() != networking::is_single_node(cluster) {
        return Err(input::refuse(
            "control_plane_count",
            &count.to_string(),
            &format!(
                "would change the kind of the cluster, which has {}: create another cluster",
                cluster.control_plane_count
            ),
        ));
    }
    cluster.control_plane_count = topology.control_plane_count;
    cluster.high_availability_mode = Some(topology.mode);
    Ok(())
}

/// Platform, user-managed networking, DHCP and load balancer; a switch clears the members of the previous mode.
/// Source: assisted-service, internal/bminventory/inventory.go, updatePlatformParams, updateNetworkParams.
fn set_networking_mode(cluster: &mut Cluster, params: &ClusterUpdateParams) -> Result<(), Error> {
    let before = (
        cluster.platform_type(),
        networking::is_user_managed(cluster),
        networking::uses_dhcp(cluster),
    );
    if params.platform.is_some() || params.user_managed_networking.is_some() {
        // Only unnamed members adapt: naming one of the two alone switches the other, except on platforms of machines.
        let given = params.platform.clone().or_else(|| {
            let keeps = params.user_managed_networking == Some(before.1)
                || matches!(before.0, PlatformType::Vsphere | PlatformType::Nutanix);
            keeps.then(|| cluster.platform.clone()).flatten()
        });
        let is_vsphere = |platform: &ClusterPlatform| platform.r#type == PlatformType::Vsphere;
        let current = cluster.user_managed_networking;
        let current = current.filter(|_| given.as_ref().is_some_and(is_vsphere));
        let (platform, user_managed) = input::platform(
            given.as_ref(),
            params.user_managed_networking.or(current),
            networking::is_single_node(cluster),
            cluster.cpu_architecture.unwrap_or_default(),
        )?;
        cluster.platform = Some(platform);
        cluster.user_managed_networking = user_managed;
    }
    if let Some(dhcp) = params.vip_dhcp_allocation {
        cluster.vip_dhcp_allocation = Some(dhcp);
    }
    if params.load_balancer.is_some() {
        cluster.load_balancer.clone_from(&params.load_balancer);
    }
    let after = (
        cluster.platform_type(),
        networking::is_user_managed(cluster),
        networking::uses_dhcp(cluster),
    );
    if before != after {
        cluster.api_vips.clear();
        cluster.ingress_vips.clear();
        cluster.machine_networks.clear();
    }
    Ok(())
}

fn set_lists(cluster: &mut Cluster, params: &ClusterUpdateParams) -> Result<(), Error> {
    let id = cluster.id;
    if let Some(list) = &params.cluster_networks {
        cluster.cluster_networks = networking::cluster_networks(id, list.clone())?;
    } else if params.cluster_network_cidr.is_some() || params.cluster_network_host_prefix.is_some()
    {
        let mut list = cluster.cluster_networks.clone();
        list.truncate(1);
        let mut net = list.pop().unwrap_or_default();
        if let Some(cidr) = &params.cluster_network_cidr {
            net.cidr.clone_from(cidr);
        }
        if let Some(host_prefix) = params.cluster_network_host_prefix {
            net.host_prefix = host_prefix;
        }
        cluster.cluster_networks = networking::cluster_networks(id, vec![net])?;
    }
    let service_networks = params.service_networks.clone().or_else(|| {
        let cidr = params.service_network_cidr.clone()?;
        Some(vec![model::network::ServiceNetwork {
            cluster_id: None,
            cidr,
        }])
    });
    if let Some(list) = service_networks {
        cluster.service_networks = networking::service_networks(id, list)?;
    }
    Ok(())
}

/// Source: assisted-service, internal/bminventory/inventory.go, updateVips.
fn set_vips(cluster: &mut Cluster, params: &ClusterUpdateParams) -> Result<(), Error> {
    let id = cluster.id;
    if let Some(list) = &params.api_vips {
        let has_api = params.api_vips.iter().any(|list| !list.is_empty());
        let has_ingress = params.ingress_vips.iter().any(|list| !list.is_empty());
        if networking::is_single_node(cluster) && (has_api || has_ingress) {
            return Err(Error::invalid(
                "api_vips and ingress_vips",
                "cannot be set on a single-node cluster: leave them out",
            ));
        }
        let mut list: Vec<ApiVip> = networking::api_vips(id, list.clone())?;
        for vip in &mut list {
            if let Some(same) = cluster.api_vips.iter().find(|old| old.ip == vip.ip) {
                vip.verification = same.verification;
            }
        }
        cluster.api_vips = list;
    }
    if let Some(list) = &params.ingress_vips {
        let mut list: Vec<IngressVip> = networking::ingress_vips(id, list.clone())?;
        for vip in &mut list {
            if let Some(same) = cluster.ingress_vips.iter().find(|old| old.ip == vip.ip) {
                vip.verification = same.verification;
            }
        }
        cluster.ingress_vips = list;
    }
    Ok(())
}

/// Machine networks: the user's where that is allowed, else the hosts' networks that hold the VIPs.
/// Source: assisted-service, internal/bminventory/inventory.go, updateNonDhcpNetworkParams, updateDhcpNetworkParams.
fn set_machine_networks(
    cluster: &mut Cluster,
    before: &Cluster,
    params: &ClusterUpdateParams,
    snapshot: &Snapshot,
) -> Result<(), Error> {
    let user_balancer = networking::has_user_load_balancer(cluster);
    let derived = !networking::is_single_node(cluster)
        && !networking::is_user_managed(cluster)
        && !networking::uses_dhcp(cluster)
        && !user_balancer;
    let vips_given = params.api_vips.is_some() || params.ingress_vips.is_some();
    // Forms send an empty list where the networks are derived. It is ignored; with VIPs it is a request to derive them
    // again, as when a dual-stack cluster becomes a single-stack one.
    let mut given = given_machine_networks(cluster, params)?;
    if derived && given.as_ref().is_some_and(Vec::is_empty) {
        given = None;
        if vips_given {
            cluster.machine_networks.clear();
        }
    }
    if let Some(list) = given.clone() {
        let is_new = list != before.machine_networks;
        cluster.machine_networks = list;
        networking::check_machine_networks(cluster)?;
        let dual_stack = networking::read(cluster)?.is_dual_stack();
        if derived && is_new && !dual_stack {
            return Err(Error::invalid(
                "machine_networks",
                "cannot be set here: it follows from api_vips and ingress_vips; give those, or use vip_dhcp_allocation, user_managed_networking or a user-managed load balancer",
            ));
        }
    }
    if !derived || !vips_given {
        return Ok(());
    }
    let dual_stack = networking::read(cluster)?.is_dual_stack();
    let vips = networking::vips(cluster);
    let mut networks = Vec::new();
    for vip in &vips {
        let net = holding_network(snapshot, *vip).ok_or_else(|| {
            input::refuse(
                "api_vips and ingress_vips",
                &vip.to_string(),
                &format!(
                    "is in no network of the cluster's hosts [{}]: wait until hosts have reported, or choose an address inside",
                    networks_text(snapshot)
                ),
            )
        })?;
        check_free(snapshot, *vip, &net)?;
        let net = networking::machine_network(cluster.id, net);
        if !networks.contains(&net) {
            networks.push(net);
        }
    }
    if !dual_stack || (given.is_none() && networks.len() == 2) {
        order_like_vips(cluster, &mut networks);
        cluster.machine_networks = networks;
    }
    Ok(())
}

/// Refuses an address that a host found in use; one that no host has looked for yet is accepted.
/// Source: assisted-service, internal/network/machine_network_cidr.go, VerifyVipsForClusterManagedLoadBalancer.
fn check_free(snapshot: &Snapshot, vip: IpAddr, net: &IpNet) -> Result<(), Error> {
    if is_free(&snapshot.hosts, net, &vip.to_string()) != Some(false) {
        return Ok(());
    }
    Err(input::refuse(
        "api_vips and ingress_vips",
        &vip.to_string(),
        &format!("is in use already in {net}: choose a free address"),
    ))
}

/// The network of the first API address comes first: it is the primary one.
fn order_like_vips(cluster: &Cluster, networks: &mut [model::network::MachineNetwork]) {
    let first = cluster
        .api_vips
        .first()
        .and_then(|vip| vip.ip.parse::<IpAddr>().ok());
    networks.sort_by_key(|net| {
        let holds_first = net
            .cidr
            .parse::<IpNet>()
            .is_ok_and(|net| first.is_some_and(|first| net.contains(&first)));
        !holds_first
    });
}

fn given_machine_networks(
    cluster: &Cluster,
    params: &ClusterUpdateParams,
) -> Result<Option<Vec<model::network::MachineNetwork>>, Error> {
    let list = params.machine_networks.clone().or_else(|| {
        let cidr = params.machine_network_cidr.clone()?;
        let net = model::network::MachineNetwork {
            cluster_id: None,
            cidr,
        };
        Some(
            vec![net]
                .into_iter()
                .filter(|net| !net.cidr.is_empty())
                .collect(),
        )
    });
    list.map(|list| networking::machine_networks(cluster.id, list))
        .transpose()
}
