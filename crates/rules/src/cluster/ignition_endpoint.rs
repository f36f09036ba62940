//! The endpoint from which a host that joins a cluster fetches its configuration.

use std::net::IpAddr;

use model::cluster::Cluster;
use model::host::{Host, HostRole};

use crate::snapshot::roles::effective_role;

/// Ports of the machine config server: over TLS, and without.
const SECURE_PORT: u16 = 22623;
const PLAIN_PORT: u16 = 22624;

/// URL of a host's configuration: of the cluster's own endpoint, else of its machine config server, which is reached
/// over TLS when a certificate authority is known. None for a cluster without address and name.
/// Source: assisted-service, internal/host/hostutil/host_utils.go, GetIgnitionEndpointAndCert.
pub fn url(cluster: &Cluster, host: &Host, is_secure: bool) -> Option<String> {
    let pool = pool(host);
    let own = cluster.ignition_endpoint.as_ref();
    let own = own.and_then(|endpoint| endpoint.url.as_deref());
    if let Some(url) = own.filter(|url| !url.is_empty()) {
        return Some(format!("{}/{pool}", url.trim_end_matches('/')));
    }
    let name = api_name(cluster)?;
    if !is_secure {
        return Some(format!("http://{name}:{PLAIN_PORT}/config/{pool}"));
    }
    // The server's certificate has the internal name alone.
    let name = match name.strip_prefix("api.") {
        Some(rest) => format!("api-int.{rest}"),
        None => name,
    };
    Some(format!("https://{name}:{SECURE_PORT}/config/{pool}"))
}

/// The MachineConfigPool of the host.
fn pool(host: &Host) -> &str {
    if !host.machine_config_pool_name.is_empty() {
        return &host.machine_config_pool_name;
    }
    match effective_role(host) {
        HostRole::Master | HostRole::Bootstrap => "master",
        HostRole::Arbiter => "arbiter",
        HostRole::Worker | HostRole::AutoAssign => "worker",
    }
}

/// Name or address of the cluster's API, for a URL.
fn api_name(cluster: &Cluster) -> Option<String> {
    let known = cluster.api_vip_dns_name.clone();
    let known = known.filter(|name| !name.is_empty());
    let name = known.or_else(|| default_api_name(cluster))?;
    Some(match name.parse() {
        Ok(IpAddr::V6(address)) => format!("[{address}]"),
        _ => name,
    })
}

/// Address of a cluster's API by its settings: the VIP, or the name of a user's load balancer.
/// Source: assisted-service, internal/common/common.go, GetConvertedClusterAPIVipDNSName.
pub(crate) fn default_api_name(cluster: &Cluster) -> Option<String> {
    let vip = cluster.api_vips.first();
    if let Some(vip) = vip.filter(|_| !crate::network::networking::is_user_managed(cluster)) {
        return Some(vip.ip.clone());
    }
    let has_names = !cluster.name.is_empty() && !cluster.base_dns_domain.is_empty();
    has_names.then(|| format!("api.{}.{}", cluster.name, cluster.base_dns_domain))
}

#[cfg(test)]
mod tests {
    use model::cluster::IgnitionEndpoint;

    use super::*;
    use crate::fixtures;

    #[test]
    fn the_endpoint_follows_cluster_and_host() {
        let mut cluster = fixtures::cluster(3);
        let mut host = fixtures::host(0, HostRole::AutoAssign, 1).record;
        let plain = |cluster: &Cluster, host: &Host| url(cluster, host, false).unwrap();
        assert_eq!(
            plain(&cluster, &host),
            "http://10.0.255.1:22624/config/worker"
        );
        host.role = Some(HostRole::Master);
        cluster.api_vip_dns_name = Some("api.demo.example.com".to_owned());
        assert_eq!(
            plain(&cluster, &host),
            "http://api.demo.example.com:22624/config/master"
        );
        assert_eq!(
            url(&cluster, &host, true).unwrap(),
            "https://api-int.demo.example.com:22623/config/master"
        );
        host.machine_config_pool_name = "infra".to_owned();
        cluster.api_vip_dns_name = Some("2001:db8::1".to_owned());
        assert_eq!(
            plain(&cluster, &host),
            "http://[2001:db8::1]:22624/config/infra"
        );
        cluster.ignition_endpoint = Some(IgnitionEndpoint {
            url: Some("https://ignition.example.com/demo/".to_owned()),
            ca_certificate: None,
        });
        assert_eq!(
            url(&cluster, &host, true).unwrap(),
            "https://ignition.example.com/demo/infra"
        );
    }

    #[test]
    fn clusters_with_a_load_balancer_of_their_user_are_reached_by_name() {
        let mut cluster = fixtures::cluster(3);
        cluster.user_managed_networking = Some(true);
        let name = default_api_name(&cluster);
        assert_eq!(name.as_deref(), Some("api.demo.example.com"));
        cluster.base_dns_domain.clear();
        assert_eq!(default_api_name(&cluster), None);
    }
}
