//! New clusters that are not installed here: imported ones, whose hosts join them, and those of disconnected images.

use std::net::IpAddr;

use model::Error;
use model::cluster::{
    Cluster, ClusterKind, ClusterPlatform, ClusterProgressInfo, ClusterStatus,
    DisconnectedClusterCreateParams, ImportClusterParams, PlatformType,
};
use model::ids::ClusterId;
use model::time::Timestamp;
use uuid::Uuid;

use crate::input;
use crate::urls;

/// Longest name of a disconnected cluster. Units: characters.
const NAME_CHARS: usize = 54;

/// An installed cluster, to which hosts are added.
///
/// A name of the form `api.NAME.DOMAIN` has precedence over the given name, because domain names are checked with it.
/// Errors: Invalid – `name` or `api_vip_dnsname`.
/// Source: assisted-service, internal/bminventory/inventory.go, V2ImportClusterInternal.
pub fn imported_cluster(
    params: ImportClusterParams,
    id: Uuid,
    now: Timestamp,
) -> Result<Cluster, Error> {
    let api = params.api_vip_dnsname;
    if api.trim().is_empty() {
        return Err(Error::invalid(
            "api_vip_dnsname",
            "is empty: give the name or address of the cluster's API",
        ));
    }
    let (name, base_dns_domain) = match names_of(&api) {
        Some((name, domain)) => (name.to_owned(), domain.to_owned()),
        None => (params.name, String::new()),
    };
    input::cluster_name(&name, false)?;
    Ok(Cluster {
        kind: ClusterKind::AddHostsCluster,
        status: ClusterStatus::AddingHosts,
        status_info: "The cluster is imported and accepts hosts".to_owned(),
        name,
        base_dns_domain,
        api_vip_dns_name: Some(api),
        openshift_cluster_id: Some(params.openshift_cluster_id),
        openshift_version: params.openshift_version,
        platform: Some(ClusterPlatform {
            r#type: PlatformType::Baremetal,
            ..ClusterPlatform::default()
        }),
        imported: Some(true),
        ..empty(id, now)
    })
}

/// Cluster name and base domain of an API's name; none for addresses and other names.
fn names_of(api: &str) -> Option<(&str, &str)> {
    if api.parse::<IpAddr>().is_ok() {
        return None;
    }
    api.strip_prefix("api.")?.split_once('.')
}

/// The record of a cluster that a disconnected image installs without this service.
///
/// Errors: Invalid – `name` or `openshift_version`.
/// Source: assisted-service, internal/bminventory/inventory_v2_handlers.go, V2RegisterDisconnectedCluster.
pub fn disconnected_cluster(
    params: DisconnectedClusterCreateParams,
    id: Uuid,
    now: Timestamp,
) -> Result<Cluster, Error> {
    let chars = params.name.chars().count();
    if !(1..=NAME_CHARS).contains(&chars) {
        return Err(Error::invalid(
            "name",
            format!("has {chars} characters: use 1 to {NAME_CHARS}"),
        ));
    }
    if params.openshift_version.trim().is_empty() {
        return Err(Error::invalid(
            "openshift_version",
            "is empty: name the version that the image installs",
        ));
    }
    Ok(Cluster {
        kind: ClusterKind::DisconnectedCluster,
        status: ClusterStatus::Unmonitored,
        status_info: "The cluster is installed without this service".to_owned(),
        name: params.name,
        openshift_version: params.openshift_version,
        ..empty(id, now)
    })
}

fn empty(id: Uuid, now: Timestamp) -> Cluster {
    let id = ClusterId(id);
    Cluster {
        id,
        href: urls::cluster(id),
        status_updated_at: now.into(),
        created_at: now.into(),
        updated_at: now.into(),
        progress: Some(ClusterProgressInfo::default()),
        ..Cluster::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::now;

    fn imported(name: &str, api: &str) -> Result<Cluster, Error> {
        let params = ImportClusterParams {
            name: name.to_owned(),
            api_vip_dnsname: api.to_owned(),
            ..ImportClusterParams::default()
        };
        imported_cluster(params, Uuid::from_u128(7), now())
    }

    #[test]
    fn an_api_name_has_the_names_of_the_cluster() {
        let names = |name: &str, api: &str| {
            let cluster = imported(name, api).unwrap();
            (cluster.name, cluster.base_dns_domain)
        };
        let pair = |name: &str, domain: &str| (name.to_owned(), domain.to_owned());
        let (api, given) = ("api.demo.example.com", "scale-up-demo");
        assert_eq!(names(given, api), pair("demo", "example.com"));
        assert_eq!(names(given, "api-int.demo.example.com"), pair(given, ""));
        assert_eq!(names(given, "192.0.2.1"), pair(given, ""));
        assert_eq!(names(given, "2001:db8::1"), pair(given, ""));
        assert!(imported("No_Name", "192.0.2.1").is_err());
        assert!(imported("demo", " ").is_err());
    }

    #[test]
    fn disconnected_clusters_need_name_and_version() {
        let made = |name: &str, version: &str| {
            let params = DisconnectedClusterCreateParams {
                name: name.to_owned(),
                openshift_version: version.to_owned(),
            };
            disconnected_cluster(params, Uuid::from_u128(7), now())
        };
        let cluster = made("demo", "4.19").unwrap();
        assert_eq!(cluster.status, ClusterStatus::Unmonitored);
        assert!(made("", "4.19").is_err());
        assert!(made("demo", "").is_err());
    }
}
