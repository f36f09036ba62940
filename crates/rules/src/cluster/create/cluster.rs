//! New clusters.

use std::collections::BTreeSet;

use model::Error;
use model::cluster::{
    Cluster, ClusterCreateParams, ClusterDefaultConfig, ClusterKind, ClusterProgressInfo,
    ClusterStatus, Hyperthreading, ImageInfo, PlatformType, PreparationStatus,
};
use model::host::FORBIDDEN_HOSTNAMES;
use model::ids::ClusterId;
use model::network::{ClusterNetwork, ServiceNetwork};
use model::operators::{MonitoredOperator, OperatorType};
use model::time::Timestamp;
use model::versions::CpuArchitecture;

use super::context::CreateContext;
use crate::Offer;
use crate::input;
use crate::network::networking;
use crate::operators::{self, OperatorRequest};
use crate::urls;
use crate::versions::{ResolvedRelease, find_os_image};

/// Timeout of the console and the version operator. Units: seconds.
const BUILTIN_OPERATOR_TIMEOUT_S: i64 = 3600;

const CLUSTER_NETWORK: (&str, i64) = ("10.128.0.0/14", 23);
const CLUSTER_NETWORK_V6: (&str, i64) = ("fd01::/48", 64);
const SERVICE_NETWORK: &str = "172.30.0.0/16";
const SERVICE_NETWORK_V6: &str = "fd02::/112";

/// A new cluster's record.
///
/// The pull secret is checked here but kept by the caller. Errors: `Invalid` naming the field.
/// Source: assisted-service, internal/bminventory/inventory.go, validateRegisterClusterInternalParams,
/// setDefaultRegisterClusterParams.
pub fn cluster(
    params: ClusterCreateParams,
    ctx: &CreateContext<'_>,
    now: Timestamp,
) -> Result<Cluster, Error> {
    let release = find_release(&params, ctx.offer)?;
    check_texts(&params, &release, ctx.offer)?;
    let topology = input::topology(
        params.high_availability_mode,
        params.control_plane_count,
        &release.version,
        ctx.offer.two_nodes(),
    )?;
    let single_node = topology.is_single_node();
    let (platform, user_managed_networking) = input::platform(
        params.platform.as_ref(),
        params.user_managed_networking,
        single_node,
        release.architecture,
    )?;
    input::cluster_name(&params.name, platform.r#type == PlatformType::None)?;
    input::base_dns_domain(&params.base_dns_domain, &params.name)?;

    let id = ClusterId(ctx.id);
    let mut cluster = Cluster {
        kind: ClusterKind::Cluster,
        id,
        href: urls::cluster(id),
        high_availability_mode: Some(topology.mode),
        control_plane_count: topology.control_plane_count,
        openshift_version: release.version,
        ocp_release_image: release.image,
        cpu_architecture: Some(release.architecture),
        platform: Some(platform),
        user_managed_networking,
        status: ClusterStatus::Insufficient,
        status_info: "The cluster was created and waits for its hosts".to_owned(),
        status_updated_at: now.into(),
        created_at: now.into(),
        updated_at: now.into(),
        pull_secret_set: true,
        progress: Some(ClusterProgressInfo::default()),
        image_info: ImageInfo::default(),
        vip_dhcp_allocation: Some(params.vip_dhcp_allocation.unwrap_or(false)),
        hyperthreading: Some(params.hyperthreading.unwrap_or(Hyperthreading::All)),
        schedulable_masters: Some(params.schedulable_masters.unwrap_or(false)),
        imported: Some(false),
        ..Cluster::default()
    };
    cluster.last_installation_preparation.status = Some(PreparationStatus::NotStarted);
    cluster.monitored_operators = builtin_operators(id, ctx.offer.check_cluster_version);
    let operators = OperatorRequest {
        operators: params.olm_operators.as_deref(),
        bundles: params.operator_bundles.as_deref(),
    };
    operators::select(&mut cluster, operators)?;
    set_networks(&mut cluster, &params)?;
    if let Some(stream) = &params.os_stream {
        cluster.os_stream = other_stream(&cluster, ctx.offer, stream)?;
    }
    let disk_encryption = input::disk_encryption(
        params.disk_encryption.as_ref(),
        ctx.policy.disk_encryption_support,
    )?;
    cluster.disk_encryption = Some(disk_encryption);
    set_texts(&mut cluster, params, ctx.offer);
    networking::check_machine_networks(&cluster)?;
    networking::complete_and_check(&mut cluster, None, ctx.policy, 0)?;
    operators::check_compatibility(&cluster, &BTreeSet::new())?;
    Ok(cluster)
}

/// The stream of a cluster that is chosen by its name, unless it is the default one: a release for several architectures has
/// those of any.
///
/// Errors: `Invalid` on `os_stream` – its version has no such stream.
pub(crate) fn other_stream(cluster: &Cluster, offer: &Offer, name: &str) -> Result<String, Error> {
    if name.is_empty() {
        return Ok(String::new());
    }
    let version = Some(cluster.openshift_version.as_str());
    let find = |architecture| find_os_image(&offer.os_images, version, architecture, name);
    let own = cluster.cpu_architecture.unwrap_or_default();
    let found = if own == CpuArchitecture::Multi {
        let mut images = offer.os_images.iter().map(|image| image.cpu_architecture);
        let found = images.find_map(|architecture| find(architecture).ok());
        found.map_or_else(|| find(CpuArchitecture::X86_64), Ok)
    } else {
        find(own)
    };
    Ok(found?.other_stream.to_owned())
}

fn find_release(params: &ClusterCreateParams, offer: &Offer) -> Result<ResolvedRelease, Error> {
    let wanted = params.cpu_architecture.unwrap_or(CpuArchitecture::X86_64);
    let mut found = offer.release(&params.openshift_version, wanted)?;
    // The caller names an image of that version, for instance by digest on another mirror. Its permission is checked
    // by the caller of this function, which can fetch its signature.
    if !params.ocp_release_image.is_empty() {
        found.image.clone_from(&params.ocp_release_image);
    }
    Ok(found)
}

fn check_texts(
    params: &ClusterCreateParams,
    release: &ResolvedRelease,
    offer: &Offer,
) -> Result<(), Error> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    input::ssh_public_keys("ssh_public_key", &params.ssh_public_key)?;
    let mut images: Vec<&str> = offer.components.known().collect();
    images.push(&release.image);
    input::pull_secret(&params.pull_secret, &images, &offer.public_registries)?;
    input::http_proxy("http_proxy", &text(&params.http_proxy))?;
    input::https_proxy("https_proxy", &text(&params.https_proxy))?;
    input::no_proxy("no_proxy", &text(&params.no_proxy), &release.version)?;
    let additional = text(&params.additional_ntp_source);
    input::additional_ntp_source("additional_ntp_source", &additional)?;
    input::ntp_sources(
        &text(&params.ntp_sources),
        "additional_ntp_source",
        &additional,
    )?;
    input::tags(&text(&params.tags))?;
    match &params.ignition_endpoint {
        Some(endpoint) => input::ignition_endpoint(endpoint),
        None => Ok(()),
    }
}

fn set_networks(cluster: &mut Cluster, params: &ClusterCreateParams) -> Result<(), Error> {
    let id = cluster.id;
    let machine = params.machine_networks.clone().unwrap_or_default();
    cluster.machine_networks = networking::machine_networks(id, machine)?;
    cluster.api_vips = networking::api_vips(id, params.api_vips.clone().unwrap_or_default())?;
    cluster.ingress_vips =
        networking::ingress_vips(id, params.ingress_vips.clone().unwrap_or_default())?;

    let families = networking::requested_families(cluster);
    let mut cluster_defaults = Vec::new();
    let mut service_defaults = Vec::new();
    for family in families {
        let (net, service) = match family {
            input::Family::V4 => (CLUSTER_NETWORK, SERVICE_NETWORK),
            input::Family::V6 => (CLUSTER_NETWORK_V6, SERVICE_NETWORK_V6),
        };
        cluster_defaults.push(cluster_network(net));
        service_defaults.push(service_network(service));
    }
    if let (Some(first), Some(prefix)) = (
        cluster_defaults.first_mut(),
        params.cluster_network_host_prefix,
    ) {
        first.host_prefix = prefix;
    }
    let old_cluster = params.cluster_network_cidr.as_ref().map(|cidr| {
        vec![ClusterNetwork {
            cluster_id: None,
            cidr: cidr.clone(),
            host_prefix: params
                .cluster_network_host_prefix
                .unwrap_or(CLUSTER_NETWORK.1),
        }]
    });
    let old_service = params
        .service_network_cidr
        .as_ref()
        .map(|cidr| vec![service_network(cidr)]);
    let cluster_networks = params
        .cluster_networks
        .clone()
        .or(old_cluster)
        .unwrap_or(cluster_defaults);
    let service_networks = params
        .service_networks
        .clone()
        .or(old_service)
        .unwrap_or(service_defaults);
    cluster.cluster_networks = networking::cluster_networks(id, cluster_networks)?;
    cluster.service_networks = networking::service_networks(id, service_networks)?;
    cluster.network_type = params.network_type;
    cluster.load_balancer.clone_from(&params.load_balancer);
    Ok(())
}

fn set_texts(cluster: &mut Cluster, params: ClusterCreateParams, offer: &Offer) {
    let ntp_sources = params.ntp_sources.unwrap_or_default();
    let default_server = if ntp_sources.is_empty() {
        offer.ntp_default_server.clone()
    } else {
        String::new()
    };
    cluster.name = params.name;
    cluster.base_dns_domain = params.base_dns_domain;
    cluster.ssh_public_key = params.ssh_public_key;
    cluster.http_proxy = params.http_proxy.unwrap_or_default();
    cluster.https_proxy = params.https_proxy.unwrap_or_default();
    cluster.no_proxy = params.no_proxy.unwrap_or_default();
    cluster.additional_ntp_source = params.additional_ntp_source.unwrap_or(default_server);
    cluster.ntp_sources = ntp_sources;
    cluster.tags = params.tags.unwrap_or_default();
    cluster.ignition_endpoint = params.ignition_endpoint;
}

fn cluster_network((cidr, host_prefix): (&str, i64)) -> ClusterNetwork {
    ClusterNetwork {
        cluster_id: None,
        cidr: cidr.to_owned(),
        host_prefix,
    }
}

fn service_network(cidr: &str) -> ServiceNetwork {
    ServiceNetwork {
        cluster_id: None,
        cidr: cidr.to_owned(),
    }
}

fn builtin_operators(id: ClusterId, with_version_operator: bool) -> Vec<MonitoredOperator> {
    let builtin = |name: &str| MonitoredOperator {
        cluster_id: Some(id),
        name: name.to_owned(),
        operator_type: Some(OperatorType::Builtin),
        timeout_seconds: BUILTIN_OPERATOR_TIMEOUT_S,
        ..MonitoredOperator::default()
    };
    let mut operators = vec![builtin("console")];
    if with_version_operator {
        operators.push(builtin("cvo"));
    }
    operators
}

/// Default values for the form of a new cluster. `inactive_deletion_hours` is unset: idle clusters are kept.
/// Source: assisted-service, internal/bminventory/inventory_v2_handlers.go, V2GetClusterDefaultConfig.
pub fn default_config(offer: &Offer) -> ClusterDefaultConfig {
    let cluster_v4 = vec![cluster_network(CLUSTER_NETWORK)];
    let service_v4 = vec![service_network(SERVICE_NETWORK)];
    ClusterDefaultConfig {
        cluster_network_cidr: CLUSTER_NETWORK.0.to_owned(),
        cluster_network_host_prefix: CLUSTER_NETWORK.1,
        service_network_cidr: SERVICE_NETWORK.to_owned(),
        ntp_source: offer.ntp_default_server.clone(),
        cluster_networks_dualstack: vec![
            cluster_network(CLUSTER_NETWORK),
            cluster_network(CLUSTER_NETWORK_V6),
        ],
        service_networks_dualstack: vec![
            service_network(SERVICE_NETWORK),
            service_network(SERVICE_NETWORK_V6),
        ],
        cluster_networks_ipv4: cluster_v4,
        service_networks_ipv4: service_v4,
        forbidden_hostnames: FORBIDDEN_HOSTNAMES
            .iter()
            .map(ToString::to_string)
            .collect(),
        ..ClusterDefaultConfig::default()
    }
}
