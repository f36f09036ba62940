//! The stored state as a declaration: every member that the files can hold.

use model::cluster::{
    CloudControllerManager, Cluster, ClusterPlatform, Hyperthreading, LoadBalancerType,
    PlatformExternal, PlatformType,
};
use model::expected_hosts::ExpectedHost;
use model::host::HostRole;
use model::infra_env::{HostStaticNetworkConfig, ImageType, InfraEnv};
use model::network::NetworkType;
use rules::snapshot::roles;
use serde_json::{Map, Value};

use crate::declaration::Declaration;
use crate::{hosts, overrides};

/// The stored records behind a declaration.
#[derive(Debug, Clone, Copy)]
pub struct CurrentState<'a> {
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Its infra-env; none before it is created.
    pub infra_env: Option<&'a InfraEnv>,
    /// The list of expected hosts.
    pub expected: Option<&'a [ExpectedHost]>,
}

/// The declaration of stored records.
pub fn declare(state: CurrentState<'_>) -> Declaration {
    let cluster = state.cluster;
    let platform = declared_platform(cluster);
    let has_vips = !matches!(platform.r#type, PlatformType::None | PlatformType::External);
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let proxy = [&cluster.http_proxy, &cluster.https_proxy, &cluster.no_proxy].map(String::clone);
    let networks: Vec<HostStaticNetworkConfig> = state
        .infra_env
        .and_then(|one| serde_json::from_str(&one.static_network_config).ok())
        .unwrap_or_default();
    let ips = |ips: Vec<&String>| has_vips.then(|| ips.into_iter().cloned().collect());
    let of_role = |role: HostRole| {
        let is_of_role = |one: &&ExpectedHost| one.role == Some(role);
        let count = state.expected?.iter().filter(is_of_role).count();
        i64::try_from(count).ok()
    };
    Declaration {
        name: cluster.name.clone(),
        infra_env_name: state.infra_env.map(|one| one.name.clone()),
        base_domain: text(&cluster.base_dns_domain),
        pull_secret: None,
        ssh_key: text(&cluster.ssh_public_key),
        trust_bundle: state
            .infra_env
            .and_then(|one| text(&one.additional_trust_bundle)),
        network_type: cluster.network_type,
        machine_networks: Some(
            cluster
                .machine_networks
                .iter()
                .map(|one| one.cidr.clone())
                .collect(),
        ),
        cluster_networks: Some(
            cluster
                .cluster_networks
                .iter()
                .map(|one| (one.cidr.clone(), one.host_prefix))
                .collect(),
        ),
        service_networks: Some(
            cluster
                .service_networks
                .iter()
                .map(|one| one.cidr.clone())
                .collect(),
        ),
        control_plane: i64::try_from(roles::control_plane_count(cluster)).ok(),
        workers: of_role(HostRole::Worker),
        arbiters: of_role(HostRole::Arbiter).filter(|count| *count > 0),
        architecture: cluster.cpu_architecture,
        hyperthreading: cluster.hyperthreading.map(enabled_for),
        platform: Some(platform),
        // The default is no member: older installers do not know it.
        load_balancer: cluster
            .load_balancer
            .as_ref()
            .and_then(|one| one.r#type)
            .filter(|kind| *kind == LoadBalancerType::UserManaged),
        api_vips: ips(cluster.api_vips.iter().map(|vip| &vip.ip).collect()),
        ingress_vips: ips(cluster.ingress_vips.iter().map(|vip| &vip.ip).collect()),
        proxy: proxy.iter().any(|one| !one.is_empty()).then_some(proxy),
        overrides: stored_overrides(cluster),
        ntp_sources: Some(listed(&cluster.additional_ntp_source)),
        minimal_iso: state
            .infra_env
            .map(|one| one.r#type == ImageType::MinimalIso),
        // Absent when false: openshift-install, which does not know the member, reads such files, too.
        embedded_agent: state
            .infra_env
            .and_then(|one| one.embedded_agent.then_some(true)),
        hosts: hosts::stored(state.expected, &networks),
        ..Declaration::default()
    }
}

/// Whether masters and workers have hyperthreading.
pub(crate) fn enabled_for(hyperthreading: Hyperthreading) -> (bool, bool) {
    let text = hyperthreading.as_str();
    let has = |role: &str| text == "all" || text.split(',').any(|one| one == role);
    (has("masters"), has("workers"))
}

/// The items of a list in a text.
fn listed(text: &str) -> Vec<String> {
    let parts = text.split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

fn declared_platform(cluster: &Cluster) -> ClusterPlatform {
    let kind = cluster.platform_type();
    let external = cluster
        .platform
        .as_ref()
        .and_then(|platform| platform.external.clone());
    // Records of other platforms have an empty one.
    let is_external = kind == PlatformType::External;
    ClusterPlatform {
        r#type: kind,
        external: is_external.then(|| declared_external(external.unwrap_or_default())),
    }
}

/// Absent members instead of empty ones.
fn declared_external(external: PlatformExternal) -> PlatformExternal {
    PlatformExternal {
        platform_name: external.platform_name.filter(|name| !name.is_empty()),
        cloud_controller_manager: external
            .cloud_controller_manager
            .filter(|manager| *manager != CloudControllerManager::Unset),
    }
}

/// Overrides of the cluster that the file holds as members.
fn stored_overrides(cluster: &Cluster) -> Map<String, Value> {
    let all: Map<String, Value> =
        serde_json::from_str(&cluster.install_config_overrides).unwrap_or_default();
    let mut found = overrides::declarable(&all);
    // A network type that the record can hold is declared with the record.
    let path = ["networking", "networkType"];
    let foreign = overrides::get(&all, &path).filter(|value| is_foreign(value));
    if let Some(value) = foreign {
        overrides::set(&mut found, &path, value.clone());
    }
    found
}

fn is_foreign(network_type: &Value) -> bool {
    let mut known = NetworkType::ALL.iter();
    network_type
        .as_str()
        .is_some_and(|text| !known.any(|kind| kind.as_str().eq_ignore_ascii_case(text)))
}
