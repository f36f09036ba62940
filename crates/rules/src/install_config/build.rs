//! Members of an install-config that follow from the records.

use ipnet::IpNet;
use model::Error;
use model::cluster::{Cluster, Hyperthreading};
use model::host::HostRole;
use model::network::NetworkType;
use serde_json::{Map, Value, json};

use super::roles::Roles;
use super::{overrides, platform};
use crate::HostState;
use crate::Snapshot;
use crate::network::networking;
use crate::steps::installation_path;
use crate::versions::{Number, at_least};

/// A registry and its mirrors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageMirror {
    /// Location in references.
    pub source: String,
    /// Locations of the copies.
    pub mirrors: Vec<String>,
}

/// Inputs of an install-config besides the records.
#[derive(Debug, Clone, Copy)]
pub struct InstallConfigContext<'a> {
    /// The cluster's pull secret.
    pub pull_secret: &'a str,
    /// The mirror configuration.
    pub mirrors: &'a [ImageMirror],
    /// PEM texts: of the mirror configuration and of the cluster's infra-envs.
    pub trust_bundles: &'a [String],
}

/// The install-config of a cluster, its overrides included.
///
/// Errors: `Invalid` – a member that the installer needs is missing, or the overrides do not fit.
pub fn build(snapshot: &Snapshot, ctx: &InstallConfigContext<'_>) -> Result<Value, Error> {
    let cluster = &snapshot.cluster;
    for (field, value) in [
        ("name", &cluster.name),
        ("base_dns_domain", &cluster.base_dns_domain),
    ] {
        if value.is_empty() {
            return Err(Error::invalid(
                field,
                "is empty: the installation needs it, so set it on the cluster",
            ));
        }
    }
    let roles = Roles::of(snapshot);
    let mut config = Map::new();
    let mut put = |name: &str, value: Value| config.insert(name.to_owned(), value);
    put("apiVersion", json!("v1"));
    put("baseDomain", json!(cluster.base_dns_domain));
    put("metadata", json!({ "name": cluster.name }));
    put(
        "compute",
        json!([pool(cluster, HostRole::Worker, roles.workers.len())]),
    );
    put("controlPlane", control_plane(cluster, &roles));
    if !roles.arbiters.is_empty() {
        put(
            "arbiter",
            pool(cluster, HostRole::Arbiter, roles.arbiters.len()),
        );
    }
    let machine_networks = machine_networks(snapshot);
    put("networking", networking_member(cluster, &machine_networks));
    put(
        "platform",
        platform::platform(snapshot, &roles, &machine_networks),
    );
    put("fips", json!(false));
    put("pullSecret", json!(ctx.pull_secret.trim()));
    put("sshKey", json!(cluster.ssh_public_key));
    if let Some(proxy) = proxy(cluster, &machine_networks) {
        put("proxy", proxy);
    }
    // The disk is not known before the host is.
    if networking::is_single_node(cluster) && !snapshot.hosts.is_empty() {
        put("bootstrapInPlace", in_place(snapshot)?);
    }
    if !ctx.mirrors.is_empty() {
        put(mirrors_member(cluster), mirrors(ctx.mirrors));
    }
    if !cluster.os_stream.is_empty() {
        put("osImageStream", json!(cluster.os_stream));
    }
    if needs_preview(cluster, &roles) {
        put("featureSet", json!("TechPreviewNoUpgrade"));
    }
    let mut config = Value::Object(config);
    let mut bundles: Vec<String> = ctx.trust_bundles.to_vec();
    if !cluster.install_config_overrides.is_empty() {
        let mut wanted = overrides::check(&cluster.install_config_overrides)?;
        bundles.extend(overrides::take_trust_bundle(&mut wanted));
        overrides::merge(&mut config, wanted);
    }
    add_trust_bundles(&mut config, &bundles);
    Ok(config)
}

fn pool(cluster: &Cluster, role: HostRole, replicas: usize) -> Value {
    json!({
        "name": role.as_str(),
        "hyperthreading": hyperthreading(cluster, role),
        "replicas": replicas,
    })
}

/// Source: assisted-service, internal/installcfg/builder/builder.go, getHypethreadingConfiguration.
fn hyperthreading(cluster: &Cluster, role: HostRole) -> &'static str {
    let setting = cluster.hyperthreading.unwrap_or(Hyperthreading::All);
    let group = match role {
        HostRole::Master | HostRole::Bootstrap => "masters",
        HostRole::Arbiter => "arbiters",
        HostRole::Worker | HostRole::AutoAssign => "workers",
    };
    let is_on =
        setting == Hyperthreading::All || setting.as_str().split(',').any(|name| name == group);
    if is_on { "Enabled" } else { "Disabled" }
}

fn control_plane(cluster: &Cluster, roles: &Roles<'_>) -> Value {
    let replicas = usize::try_from(cluster.control_plane_count).unwrap_or(roles.masters.len());
    let mut pool = pool(cluster, HostRole::Master, replicas);
    let credentials: Vec<Value> = roles
        .masters
        .iter()
        .filter_map(|host| fencing(host))
        .collect();
    if !credentials.is_empty() {
        pool["fencing"] = json!({ "credentials": credentials });
    }
    pool
}

/// Source: assisted-service, internal/installcfg/builder/builder.go, handleFencing.
fn fencing(host: &HostState) -> Option<Value> {
    let given: Value = serde_json::from_str(&host.record.fencing_credentials).ok()?;
    let text = |name: &str| given.get(name).and_then(Value::as_str);
    let mut entry = json!({
        "address": text("address")?,
        "username": text("username").unwrap_or_default(),
        "password": text("password").unwrap_or_default(),
        "certificateVerification": text("certificate_verification").unwrap_or("Enabled"),
    });
    match text("mac_address") {
        Some(mac) => entry["macAddress"] = json!(mac),
        None => entry["hostname"] = json!(host.name()),
    }
    Some(entry)
}

fn networking_member(cluster: &Cluster, machine_networks: &[String]) -> Value {
    let network_type = match cluster.network_type {
        None | Some(NetworkType::None) => "",
        Some(kind) => kind.as_str(),
    };
    let cluster_networks: Vec<Value> = cluster
        .cluster_networks
        .iter()
        .map(|net| json!({ "cidr": net.cidr, "hostPrefix": net.host_prefix }))
        .collect();
    let service_networks: Vec<&str> = cluster
        .service_networks
        .iter()
        .map(|net| net.cidr.as_str())
        .collect();
    let mut networking = json!({
        "networkType": network_type,
        "clusterNetwork": cluster_networks,
        "serviceNetwork": service_networks,
    });
    if !machine_networks.is_empty() {
        let list: Vec<Value> = machine_networks
            .iter()
            .map(|cidr| json!({ "cidr": cidr }))
            .collect();
        networking["machineNetwork"] = json!(list);
    }
    networking
}

/// The record's machine networks; without any, the bootstrap host's networks with a default route.
fn machine_networks(snapshot: &Snapshot) -> Vec<String> {
    let own = &snapshot.cluster.machine_networks;
    if !own.is_empty() {
        return own.iter().map(|net| net.cidr.clone()).collect();
    }
    let bootstrap = snapshot
        .hosts
        .iter()
        .find(|host| host.record.bootstrap)
        .or_else(|| snapshot.hosts.first());
    bootstrap.map(outside_networks).unwrap_or_default()
}

/// The host's networks with the gateway of a default route, the one of least metric first.
/// Source: assisted-service, internal/network/machine_network_cidr.go, GetMachineNetworksFromBoostrapHost.
fn outside_networks(host: &HostState) -> Vec<String> {
    let Some(inventory) = &host.inventory else {
        return Vec::new();
    };
    let routes = inventory.routes.iter().filter(|route| route.is_default());
    let mut routes: Vec<_> = routes.collect();
    routes.sort_by_key(|route| route.metric);
    let mut networks: Vec<String> = Vec::new();
    for route in routes {
        let found = inventory
            .interfaces
            .iter()
            .filter(|nic| route.interface.is_empty() || nic.name == route.interface)
            .flat_map(|nic| nic.ipv4_addresses.iter().chain(&nic.ipv6_addresses))
            .filter_map(|text| text.parse::<IpNet>().ok())
            .find(|net| {
                route
                    .gateway
                    .parse()
                    .is_ok_and(|gateway: std::net::IpAddr| net.contains(&gateway))
            });
        let text = found.map(|net| net.trunc().to_string());
        networks.extend(text.filter(|text| !networks.contains(text)));
    }
    networks
}

/// None without a proxy; the cluster itself is never reached through it.
fn proxy(cluster: &Cluster, machine_networks: &[String]) -> Option<Value> {
    if cluster.http_proxy.is_empty() && cluster.https_proxy.is_empty() {
        return None;
    }
    let mut proxy = json!({ "noProxy": no_proxy(cluster, machine_networks) });
    if !cluster.http_proxy.is_empty() {
        proxy["httpProxy"] = json!(cluster.http_proxy);
    }
    if !cluster.https_proxy.is_empty() {
        proxy["httpsProxy"] = json!(cluster.https_proxy);
    }
    Some(proxy)
}

/// Source: assisted-service, internal/installcfg/builder/builder.go, generateNoProxy.
fn no_proxy(cluster: &Cluster, machine_networks: &[String]) -> String {
    if cluster.no_proxy.split(',').any(|item| item.trim() == "*") {
        return "*".to_owned();
    }
    let own = format!(".{}.{}", cluster.name, cluster.base_dns_domain);
    let mut items: Vec<&str> = cluster
        .no_proxy
        .split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .collect();
    let networks = cluster
        .cluster_networks
        .iter()
        .map(|net| net.cidr.as_str())
        .chain(cluster.service_networks.iter().map(|net| net.cidr.as_str()))
        .chain(machine_networks.iter().map(String::as_str));
    for item in std::iter::once(own.as_str()).chain(networks) {
        if !items.contains(&item) {
            items.push(item);
        }
    }
    items.join(",")
}

fn in_place(snapshot: &Snapshot) -> Result<Value, Error> {
    let disk = snapshot
        .hosts
        .first()
        .map(installation_path)
        .filter(|path| !path.is_empty());
    match disk {
        Some(path) => Ok(json!({ "installationDisk": path })),
        None => Err(Error::invalid(
            "installation_disk_id",
            "is not set: a single-node installation needs a host with a disk to install to",
        )),
    }
}

fn mirrors_member(cluster: &Cluster) -> &'static str {
    if at_least(&cluster.openshift_version, 4, 14) {
        "imageDigestSources"
    } else {
        "imageContentSources"
    }
}

/// Source: assisted-service, internal/installcfg/builder/builder.go, handleMirrorRegistry.
fn mirrors(list: &[ImageMirror]) -> Value {
    list.iter()
        .map(|mirror| json!({ "source": mirror.source, "mirrors": mirror.mirrors }))
        .collect()
}

/// Clusters with an arbiter at 4.19, those of two fenced nodes before 4.22, and those of another stream than the default one
/// before 5.0, are previews. Source: openshift/installer, pkg/types/validation/featuregates.go.
fn needs_preview(cluster: &Cluster, roles: &Roles<'_>) -> bool {
    let is_4_19 = cluster
        .openshift_version
        .parse::<Number>()
        .is_ok_and(|number| (number.major, number.minor) == (4, 19));
    let fenced = cluster.control_plane_count == 2
        && roles.arbiters.is_empty()
        && roles
            .masters
            .iter()
            .any(|host| !host.record.fencing_credentials.is_empty());
    let before_5 = !at_least(&cluster.openshift_version, 5, 0);
    (is_4_19 && !roles.arbiters.is_empty())
        || (before_5 && !cluster.os_stream.is_empty())
        || (fenced && !at_least(&cluster.openshift_version, 4, 22))
}

/// Source: assisted-service, internal/installcfg/builder/builder.go, mergeAllCASources.
fn add_trust_bundles(config: &mut Value, bundles: &[String]) {
    let mut parts: Vec<&str> = Vec::new();
    for part in bundles.iter().map(|bundle| bundle.trim()) {
        if !part.is_empty() && !parts.contains(&part) {
            parts.push(part);
        }
    }
    if !parts.is_empty() {
        config["additionalTrustBundle"] = json!(parts.join("\n"));
    }
}
