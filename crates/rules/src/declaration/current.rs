//! The stored state as a declaration: every member that the files can hold.

use std::collections::BTreeMap;

use model::Error;
use model::cluster::{Cluster, Hyperthreading, PlatformType};
use model::expected_hosts::ExpectedHost;
use model::host::HostRole;
use model::infra_env::{HostStaticNetworkConfig, ImageType, InfraEnv};
use serde_json::Value;

use super::files::OVERRIDES;
use super::{Declaration, hosts};
use crate::networking;
use crate::roles;

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
///
/// Errors: Conflict – a platform that the files cannot hold.
pub fn declare(state: CurrentState<'_>) -> Result<Declaration, Error> {
    let cluster = state.cluster;
    let platform = networking::platform(cluster);
    if !matches!(platform, PlatformType::Baremetal | PlatformType::None) {
        return Err(Error::conflict(format!(
            "cluster {} is on platform {platform}: only none and baremetal can be declared",
            cluster.id
        )));
    }
    let user_managed = platform == PlatformType::None;
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let proxy = [&cluster.http_proxy, &cluster.https_proxy, &cluster.no_proxy].map(String::clone);
    let networks: Vec<HostStaticNetworkConfig> = state
        .infra_env
        .and_then(|one| serde_json::from_str(&one.static_network_config).ok())
        .unwrap_or_default();
    let list = |text: &str| -> Vec<String> {
        let parts = text.split(',').map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let ips = |ips: Vec<&String>| (!user_managed).then(|| ips.into_iter().cloned().collect());
    let workers = state.expected.map(|expected| {
        let is_worker = |one: &&ExpectedHost| one.role == Some(HostRole::Worker);
        i64::try_from(expected.iter().filter(is_worker).count()).unwrap_or(i64::MAX)
    });
    Ok(Declaration {
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
        workers,
        architecture: cluster.cpu_architecture,
        hyperthreading: cluster.hyperthreading.map(enabled_for),
        user_managed: Some(user_managed),
        api_vips: ips(cluster.api_vips.iter().map(|vip| &vip.ip).collect()),
        ingress_vips: ips(cluster.ingress_vips.iter().map(|vip| &vip.ip).collect()),
        proxy: proxy.iter().any(|one| !one.is_empty()).then_some(proxy),
        overrides: overrides(cluster),
        ntp_sources: Some(list(&cluster.additional_ntp_source)),
        minimal_iso: state
            .infra_env
            .map(|one| one.r#type == ImageType::MinimalIso),
        // Absent when false: openshift-install, which does not know the member, reads such files, too.
        embedded_agent: state
            .infra_env
            .and_then(|one| one.embedded_agent.then_some(true)),
        hosts: hosts::stored(state.expected, &networks),
    })
}

/// Whether masters and workers have hyperthreading.
pub(super) fn enabled_for(hyperthreading: Hyperthreading) -> (bool, bool) {
    let text = hyperthreading.as_str();
    let has = |role: &str| text == "all" || text.split(',').any(|one| one == role);
    (has("masters"), has("workers"))
}

/// Overrides of the cluster that the file holds as members.
fn overrides(cluster: &Cluster) -> BTreeMap<String, Value> {
    let all: BTreeMap<String, Value> =
        serde_json::from_str(&cluster.install_config_overrides).unwrap_or_default();
    all.into_iter()
        .filter(|(name, _)| OVERRIDES.contains(&name.as_str()))
        .collect()
}
