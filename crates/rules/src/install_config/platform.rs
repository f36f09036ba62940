//! The platform member of an install-config.

use model::cluster::{CloudControllerManager, Cluster, PlatformType};
use model::host::HostRole;
use model::network::MachineNetwork;
use serde_json::{Value, json};

use super::roles::{Roles, effective_role};
use crate::HostState;
use crate::Snapshot;
use crate::network::networking;
use crate::steps::{nics_inside, union};
use crate::versions::at_least;

pub(super) fn platform(
    snapshot: &Snapshot,
    roles: &Roles<'_>,
    machine_networks: &[String],
) -> Value {
    let cluster = &snapshot.cluster;
    match cluster.platform_type() {
        PlatformType::Baremetal => {
            json!({ "baremetal": baremetal(cluster, roles, machine_networks) })
        }
        PlatformType::None => json!({ "none": {} }),
        PlatformType::Vsphere => json!({ "vsphere": vsphere(cluster) }),
        PlatformType::Nutanix => json!({ "nutanix": nutanix(cluster) }),
        PlatformType::External => json!({ "external": external(cluster) }),
    }
}

/// Source: assisted-service, internal/provider/baremetal/installConfig.go.
fn baremetal(cluster: &Cluster, roles: &Roles<'_>, machine_networks: &[String]) -> Value {
    let networks: Vec<MachineNetwork> = machine_networks
        .iter()
        .map(|cidr| MachineNetwork {
            cluster_id: None,
            cidr: cidr.clone(),
        })
        .collect();
    let hosts: Vec<Value> = roles
        .masters
        .iter()
        .chain(&roles.arbiters)
        .chain(&roles.workers)
        .map(|host| machine(host, &networks))
        .collect();
    let mut platform = json!({
        "provisioningNetwork": "Disabled",
        "hosts": hosts,
    });
    set_vips(&mut platform, cluster);
    let servers = union(
        [
            cluster.ntp_sources.as_str(),
            cluster.additional_ntp_source.as_str(),
        ]
        .into_iter(),
    );
    if !servers.is_empty() && at_least(&cluster.openshift_version, 4, 18) {
        platform["additionalNTPServers"] = json!(servers);
    }
    if networking::has_user_load_balancer(cluster) {
        platform["loadBalancer"] = json!({ "type": "UserManaged" });
    }
    platform
}

fn machine(host: &HostState, networks: &[MachineNetwork]) -> Value {
    let inside = nics_inside(host, networks).next();
    let any = || {
        let interfaces = host
            .inventory
            .iter()
            .flat_map(|inventory| &inventory.interfaces);
        interfaces
            .into_iter()
            .find(|nic| !nic.mac_address.is_empty())
    };
    let mac = inside
        .or_else(any)
        .map(|nic| nic.mac_address.as_str())
        .unwrap_or_default();
    let boot_mode = host
        .inventory
        .as_ref()
        .and_then(|inventory| inventory.boot.as_ref())
        .map(|boot| boot.current_boot_mode.as_str());
    let role = match effective_role(host) {
        HostRole::Master => "master",
        HostRole::Arbiter => "arbiter",
        _ => "worker",
    };
    json!({
        "name": host.name(),
        "role": role,
        "bootMACAddress": mac,
        "bootMode": if boot_mode == Some("uefi") { "UEFI" } else { "legacy" },
        "bmc": { "address": "", "username": "", "password": "" },
        "hardwareProfile": "unknown",
    })
}

/// Lists of addresses; versions before 4.12 read a single one.
fn set_vips(platform: &mut Value, cluster: &Cluster) {
    let api: Vec<&str> = cluster.api_vips.iter().map(|vip| vip.ip.as_str()).collect();
    let ingress: Vec<&str> = cluster
        .ingress_vips
        .iter()
        .map(|vip| vip.ip.as_str())
        .collect();
    if !at_least(&cluster.openshift_version, 4, 12) {
        platform["apiVIP"] = json!(api.first());
        platform["ingressVIP"] = json!(ingress.first());
    }
    platform["apiVIPs"] = json!(api);
    platform["ingressVIPs"] = json!(ingress);
}

/// Source: assisted-service, internal/provider/external/external.go.
fn external(cluster: &Cluster) -> Value {
    let external = cluster
        .platform
        .as_ref()
        .and_then(|platform| platform.external.as_ref());
    let manager = external
        .and_then(|external| external.cloud_controller_manager)
        .unwrap_or(CloudControllerManager::Unset);
    json!({
        "platformName": external.and_then(|external| external.platform_name.as_deref()).unwrap_or_default(),
        "cloudControllerManager": manager.as_str(),
    })
}

/// Placeholders: the user replaces them on the running cluster, or by overrides.
/// Source: assisted-service, internal/provider/vsphere/installConfig.go.
fn vsphere(cluster: &Cluster) -> Value {
    const DATACENTER: &str = "datacenterplaceholder";
    const SERVER: &str = "vcenterplaceholder";
    let mut platform = if at_least(&cluster.openshift_version, 4, 13) {
        json!({
            "vcenters": [{
                "server": SERVER,
                "user": "usernameplaceholder",
                "password": "passwordplaceholder",
                "datacenters": [DATACENTER],
            }],
            "failureDomains": [{
                "name": "assisted-generated-failure-domain",
                "region": "assisted-generated-region",
                "zone": "assisted-generated-zone",
                "server": SERVER,
                "topology": {
                    "datacenter": DATACENTER,
                    "computeCluster": format!("/{DATACENTER}/host/clusterplaceholder"),
                    "datastore": format!("/{DATACENTER}/datastore/defaultdatastoreplaceholder"),
                    "folder": format!("/{DATACENTER}/vm/folderplaceholder"),
                    "networks": ["networkplaceholder"],
                },
            }],
        })
    } else {
        json!({
            "vCenter": SERVER,
            "username": "usernameplaceholder",
            "password": "passwordplaceholder",
            "datacenter": DATACENTER,
            "defaultDatastore": "defaultdatastoreplaceholder",
            "folder": format!("/{DATACENTER}/vm/folderplaceholder"),
            "network": "networkplaceholder",
            "cluster": format!("/{DATACENTER}/host/clusterplaceholder"),
        })
    };
    if !cluster.api_vips.is_empty() {
        set_vips(&mut platform, cluster);
    }
    platform
}

/// Placeholders, as for vSphere.
/// Source: assisted-service, internal/provider/nutanix/installConfig.go.
fn nutanix(cluster: &Cluster) -> Value {
    const UUID: &str = "00000000-0000-0000-0000-000000000000";
    let mut platform = json!({
        "prismCentral": {
            "endpoint": { "address": "primecentral-address", "port": 9440 },
            "username": "usernameplaceholder",
            "password": "passwordplaceholder",
        },
        "prismElements": [{
            "endpoint": { "address": "primeelement-address", "port": 9440 },
            "name": "primeelement-name",
            "uuid": UUID,
        }],
        "subnetUUIDs": [UUID],
    });
    if !cluster.api_vips.is_empty() {
        set_vips(&mut platform, cluster);
    }
    platform
}
