//! Names of the clusters that the installer API knows.

use std::net::IpAddr;
use std::time::Duration;

use doctor::ClusterNames;
use net::web::Web;
use serde::Deserialize;
use url::Url;

/// Units: bytes. Clusters are listed without their hosts.
const MAX_LIST: u64 = 64 * 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Deserialize)]
struct ListedCluster {
    name: String,
    #[serde(default)]
    base_dns_domain: String,
    #[serde(default)]
    api_vips: Option<Vec<ListedAddress>>,
    #[serde(default)]
    ingress_vips: Option<Vec<ListedAddress>>,
}

#[derive(Debug, Deserialize)]
struct ListedAddress {
    ip: String,
}

/// Errors: the finding.
pub(super) async fn of(api: &Url, ca: Option<&[u8]>) -> Result<Vec<ClusterNames>, String> {
    let unknown = |reason: String| format!("clusters are unknown: {reason}");
    let url = api.join("/api/assisted-install/v2/clusters");
    let url = url.map_err(|e| unknown(e.to_string()))?;
    let web = Web::new(ca).map_err(|e| unknown(e.chain()))?;
    let found = tokio::time::timeout(TIMEOUT, web.get(&url, "application/json", MAX_LIST));
    let found = found
        .await
        .map_err(|_| unknown("no answer".to_owned()))?
        .map_err(|e| unknown(e.chain()))?;
    let listed: Vec<ListedCluster> =
        serde_json::from_slice(&found).map_err(|e| unknown(e.to_string()))?;
    Ok(listed.into_iter().filter_map(names).collect())
}

fn names(cluster: ListedCluster) -> Option<ClusterNames> {
    if cluster.base_dns_domain.is_empty() {
        return None;
    }
    let addresses = |listed: Option<Vec<ListedAddress>>| -> Vec<IpAddr> {
        let listed = listed.unwrap_or_default().into_iter();
        listed.filter_map(|one| one.ip.parse().ok()).collect()
    };
    Some(ClusterNames {
        domain: format!("{}.{}", cluster.name, cluster.base_dns_domain),
        api: addresses(cluster.api_vips),
        ingress: addresses(cluster.ingress_vips),
    })
}
