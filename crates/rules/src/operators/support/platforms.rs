//! Platforms that a cluster can have with its hosts.
//!
//! Source: assisted-service, internal/bminventory/inventory.go (GetClusterSupportedPlatforms),
//! internal/provider/<name>/base.go (IsHostSupported).

use model::cluster::PlatformType;

use super::{MinorVersion, RequestedPlatform, feature};
use crate::hardware::requirements::maker;
use crate::network::networking;
use crate::snapshot::Snapshot;

/// Platforms in the order of the peer's providers.
const PLATFORMS: [PlatformType; 5] = [
    PlatformType::Vsphere,
    PlatformType::Baremetal,
    PlatformType::None,
    PlatformType::Nutanix,
    PlatformType::External,
];

/// Platforms that suit all hosts, the version and the architecture; `none` for clusters without hosts or of one node.
pub fn supported_platforms(snapshot: &Snapshot) -> Vec<PlatformType> {
    let cluster = &snapshot.cluster;
    if snapshot.hosts.is_empty() || networking::is_single_node(cluster) {
        return vec![PlatformType::None];
    }
    let architecture = cluster.cpu_architecture.unwrap_or_default();
    let is_available = |platform: &PlatformType| {
        let Ok(version) = cluster.openshift_version.parse::<MinorVersion>() else {
            return true;
        };
        let row = feature(RequestedPlatform::new(*platform, None).feature());
        row.is_some_and(|row| row.availability(version, architecture, None).is_usable())
    };
    let suits_hosts = |platform: &PlatformType| {
        let Some(wanted) = RequestedPlatform::new(*platform, None).maker() else {
            return true;
        };
        snapshot.hosts.iter().all(|host| {
            let inventory = host.inventory.as_ref();
            inventory.is_some_and(|inventory| maker(inventory) == wanted)
        })
    };
    let all = PLATFORMS.iter().filter(|one| suits_hosts(one));
    all.filter(|one| is_available(one)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostState;
    use crate::fixtures;

    #[test]
    fn makers_of_all_hosts_decide() {
        use PlatformType::{Baremetal, External, None as NoPlatform, Vsphere};
        let mut all = fixtures::snapshot(3, 0);
        assert_eq!(supported_platforms(&all), [Baremetal, NoPlatform, External]);
        for at in 0..all.hosts.len() {
            let mut inventory = fixtures::inventory(at);
            let vendor = inventory.system_vendor.get_or_insert_default();
            vendor.manufacturer = crate::hardware::requirements::VMWARE.to_owned();
            let mut record = all.hosts[at].record.clone();
            record.inventory = serde_json::to_string(&inventory).unwrap().into();
            all.hosts[at] = HostState::new(record);
        }
        assert_eq!(
            supported_platforms(&all),
            [Vsphere, Baremetal, NoPlatform, External]
        );
        all.cluster.openshift_version = "4.12.1".to_owned();
        assert!(!supported_platforms(&all).contains(&External));
        all.cluster.control_plane_count = 1;
        assert_eq!(supported_platforms(&all), [NoPlatform]);
    }
}
