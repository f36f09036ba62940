//! Cluster members without dependencies on others.

use model::Error;
use model::cluster::{Cluster, ClusterKind, ClusterUpdateParams, PlatformType};

use super::context::UpdateContext;
use crate::cluster::create::other_stream;
use crate::input;

/// Sets the proxy members; returns whether one changed.
pub(super) fn set_proxy(
    cluster: &mut Cluster,
    params: &ClusterUpdateParams,
) -> Result<bool, Error> {
    let before = [&cluster.http_proxy, &cluster.https_proxy, &cluster.no_proxy].map(Clone::clone);
    if let Some(url) = &params.http_proxy {
        input::http_proxy("http_proxy", url)?;
        cluster.http_proxy.clone_from(url);
    }
    if let Some(url) = &params.https_proxy {
        input::https_proxy("https_proxy", url)?;
        cluster.https_proxy.clone_from(url);
    }
    if let Some(list) = &params.no_proxy {
        input::no_proxy("no_proxy", list, &cluster.openshift_version)?;
        cluster.no_proxy.clone_from(list);
    }
    let after = [&cluster.http_proxy, &cluster.https_proxy, &cluster.no_proxy].map(Clone::clone);
    Ok(before != after)
}

/// Sets names, keys, lists of servers and switches.
pub(super) fn set_plain_members(
    cluster: &mut Cluster,
    params: &ClusterUpdateParams,
    ctx: &UpdateContext<'_>,
) -> Result<(), Error> {
    set_names(cluster, params)?;
    set_time_servers(cluster, params)?;
    if let Some(keys) = &params.ssh_public_key {
        input::ssh_public_keys("ssh_public_key", keys)?;
        cluster.ssh_public_key.clone_from(keys);
    }
    if let Some(tags) = &params.tags {
        input::tags(tags)?;
        cluster.tags.clone_from(tags);
    }
    if let Some(endpoint) = &params.ignition_endpoint {
        input::ignition_endpoint(endpoint)?;
        cluster.ignition_endpoint = Some(endpoint.clone());
    }
    if let Some(stream) = &params.os_stream {
        cluster.os_stream = other_stream(cluster, ctx.offer, stream)?;
    }
    if params.hyperthreading.is_some() {
        cluster.hyperthreading = params.hyperthreading;
    }
    if params.schedulable_masters.is_some() {
        cluster.schedulable_masters = params.schedulable_masters;
    }
    if let Some(encryption) = &params.disk_encryption {
        // Absent members stay.
        let mut wanted = encryption.clone();
        if let Some(before) = &cluster.disk_encryption {
            wanted.enable_on = wanted.enable_on.or(before.enable_on);
            wanted.mode = wanted.mode.or(before.mode);
            if wanted.tang_servers.is_empty() {
                wanted.tang_servers.clone_from(&before.tang_servers);
            }
        }
        let support = ctx.policy.disk_encryption_support;
        cluster.disk_encryption = Some(input::disk_encryption(Some(&wanted), support)?);
    }
    Ok(())
}

fn set_names(cluster: &mut Cluster, params: &ClusterUpdateParams) -> Result<(), Error> {
    if let Some(name) = &params.name {
        let kind = params
            .platform
            .as_ref()
            .map_or_else(|| cluster.platform_type(), |platform| platform.r#type);
        input::cluster_name(name, kind == PlatformType::None)?;
        cluster.name.clone_from(name);
    }
    if let Some(domain) = &params.base_dns_domain {
        cluster.base_dns_domain.clone_from(domain);
    }
    if params.name.is_some() || params.base_dns_domain.is_some() {
        input::base_dns_domain(&cluster.base_dns_domain, &cluster.name)?;
    }
    if let Some(name) = &params.api_vip_dns_name {
        if cluster.kind != ClusterKind::AddHostsCluster {
            return Err(input::refuse(
                "api_vip_dns_name",
                name,
                "cannot be set here: the API of a new cluster is reached by its name and base domain; clusters that add hosts have this member",
            ));
        }
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        if !name.is_empty() && !is_address {
            input::base_dns_domain(name, "").map_err(|_| {
                input::refuse(
                    "api_vip_dns_name",
                    name,
                    "is neither a domain name nor an address: write api.<name>.<domain>",
                )
            })?;
        }
        cluster.api_vip_dns_name = Some(name.clone()).filter(|name| !name.is_empty());
    }
    Ok(())
}

fn set_time_servers(cluster: &mut Cluster, params: &ClusterUpdateParams) -> Result<(), Error> {
    if let Some(list) = &params.additional_ntp_source {
        input::additional_ntp_source("additional_ntp_source", list)?;
        cluster.additional_ntp_source.clone_from(list);
    }
    if let Some(list) = &params.ntp_sources {
        cluster.ntp_sources.clone_from(list);
    }
    if params.additional_ntp_source.is_some() || params.ntp_sources.is_some() {
        input::ntp_sources(
            &cluster.ntp_sources,
            "additional_ntp_source",
            &cluster.additional_ntp_source,
        )?;
    }
    Ok(())
}
