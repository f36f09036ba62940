//! The bootstrap host's ignition, completed with the hosts that are provisioned already.
//!
//! Source: openshift/assisted-service, `internal/ignition/installmanifests.go`.

use std::net::IpAddr;

use ignition::{IgnitionConfig, IgnitionFile, Resource};
use ipnet::IpNet;
use model::host::HostRole;
use model::inventory::{Disk, DriveType, Interface, Inventory};
use rules::HostState;
use rules::Snapshot;
use rules::snapshot::roles::is_single_node;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::failure::PreparationFailure;
use crate::manifests::yaml;
use crate::nodes;

const CLUSTER_VERSION: &str = "/opt/openshift/manifests/cvo-overrides.yaml";
/// Marker for the installer's bootstrap scripts: the service provisions the hosts.
const MARKER: &str = "/opt/openshift/assisted-install-bootstrap";
/// The service configures static networks itself.
const CONNECTION: &str = "/etc/NetworkManager/system-connections/nmconnection";
const RESOLVER: &str = "/etc/NetworkManager/conf.d/99-kni.conf";
const STATUS: &str = "baremetalhost.metal3.io/status";
const READABLE: u32 = 0o644;
const MIB: i64 = 1024 * 1024;

/// The cluster id that the installer generated.
pub(crate) fn cluster_id(config: &IgnitionConfig) -> Result<Uuid, PreparationFailure> {
    let file = config
        .find_file(CLUSTER_VERSION)
        .ok_or_else(|| PreparationFailure::new(format!("bootstrap.ign lacks {CLUSTER_VERSION}")))?;
    let version = value(file)?;
    version
        .pointer("/spec/clusterID")
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| {
            PreparationFailure::new(format!("bootstrap.ign: {CLUSTER_VERSION} lacks clusterID"))
        })
}

/// Completes the installer's bootstrap ignition for the hosts of `snapshot`.
pub(crate) fn complete(
    config: &mut IgnitionConfig,
    snapshot: &Snapshot,
) -> Result<(), PreparationFailure> {
    let mut hosts = sorted(snapshot);
    config.storage.files.retain(|file| file.path != CONNECTION);
    for file in &mut config.storage.files {
        if file.path == "/etc/motd" {
            replace_instead_of_appending(file);
        } else if is_host(&file.path) {
            describe_host(file, &mut hosts, snapshot)?;
        }
    }
    if !is_single_node(&snapshot.cluster) {
        config.put_file(IgnitionFile::text(MARKER, READABLE, ""));
        let unmanaged = "[main]\nrc-manager=unmanaged\n";
        config.put_file(IgnitionFile::text(RESOLVER, READABLE, unmanaged));
    }
    Ok(())
}

/// Whether `path` is a BareMetalHost manifest; a number follows the prefix.
fn is_host(path: &str) -> bool {
    path.contains("openshift-cluster-api_hosts")
        || path.contains("openshift-cluster-api_arbiter_hosts")
}

/// Turns an append-only file into one with content: the machine config operator cannot read the former.
fn replace_instead_of_appending(file: &mut IgnitionFile) {
    if file.contents.source.is_none() && file.append.len() == 1 {
        file.contents = file.append.remove(0);
    }
}

/// Hosts by role (master, arbiter, worker), then by name.
fn sorted(snapshot: &Snapshot) -> Vec<&HostState> {
    let mut hosts: Vec<&HostState> = snapshot.hosts.iter().collect();
    hosts.sort_by_key(|host| {
        let rank = match nodes::role(&host.record) {
            HostRole::Master => 0,
            HostRole::Arbiter => 1,
            _ => 2,
        };
        (rank, host.name())
    });
    hosts
}

/// Writes the inventory into a host's manifest, so that metal3 does not inspect the host.
fn describe_host(
    file: &mut IgnitionFile,
    hosts: &mut Vec<&HostState>,
    snapshot: &Snapshot,
) -> Result<(), PreparationFailure> {
    let mut manifest = value(file)?;
    let name = manifest
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let index = hosts
        .iter()
        .position(|host| host.name() == name)
        .ok_or_else(|| {
            PreparationFailure::new(format!(
                "bootstrap.ign has the host {name:?}, which is not in the cluster"
            ))
        })?;
    let host = hosts.remove(index);
    let inventory = host.inventory.as_ref().ok_or_else(|| {
        PreparationFailure::new(format!("host {name} has not reported its inventory"))
    })?;
    let status = json!({
        "hardware": hardware(&name, inventory, &machine_networks(snapshot)),
        "poweredOn": true,
    });
    manifest["metadata"]["annotations"][STATUS] = json!(status.to_string());
    manifest["spec"]["externallyProvisioned"] = json!(true);
    if let Some(members) = manifest.as_object_mut() {
        members.remove("status");
    }
    file.contents = Resource::bytes(yaml(&manifest).as_bytes());
    Ok(())
}

fn value(file: &IgnitionFile) -> Result<Value, PreparationFailure> {
    let broken =
        |why: String| PreparationFailure::new(format!("bootstrap.ign: {}: {why}", file.path));
    let bytes = file
        .contents
        .inline_bytes()
        .map_err(|error| broken(error.to_string()))?
        .ok_or_else(|| broken("has no content".to_owned()))?;
    serde_yaml::from_slice(&bytes).map_err(|error| broken(error.to_string()))
}

fn machine_networks(snapshot: &Snapshot) -> Vec<IpNet> {
    let networks = snapshot.cluster.machine_networks.iter();
    networks
        .filter_map(|network| network.cidr.parse().ok())
        .collect()
}

/// `HardwareDetails` of metal3.
fn hardware(name: &str, inventory: &Inventory, machine: &[IpNet]) -> Value {
    let mut hardware = json!({
        "hostname": name,
        "nics": inventory.interfaces.iter().flat_map(|nic| nics(nic, machine)).collect::<Vec<_>>(),
        "storage": inventory.disks.iter().map(storage).collect::<Vec<_>>(),
        "firmware": { "bios": {} },
    });
    if let Some(cpu) = &inventory.cpu {
        hardware["cpu"] = json!({
            "arch": cpu.architecture,
            "model": cpu.model_name,
            "clockMegahertz": cpu.frequency,
            "flags": cpu.flags,
            "count": cpu.count,
        });
    }
    if let Some(memory) = &inventory.memory {
        hardware["ramMebibytes"] = json!(memory.physical_bytes / MIB);
    }
    if let Some(vendor) = &inventory.system_vendor {
        hardware["systemVendor"] = json!({
            "manufacturer": vendor.manufacturer,
            "productName": vendor.product_name,
            "serialNumber": vendor.serial_number,
        });
    }
    hardware
}

/// NIC entries: one per address family of the interface.
fn nics(interface: &Interface, machine: &[IpNet]) -> Vec<Value> {
    [&interface.ipv4_addresses, &interface.ipv6_addresses]
        .into_iter()
        .filter(|addresses| !addresses.is_empty())
        .map(|addresses| {
            json!({
                "name": interface.name,
                "model": interface.product,
                "mac": interface.mac_address,
                "ip": address(addresses, machine),
                "speedGbps": interface.speed_mbps / 1024,
            })
        })
        .collect()
}

/// The first address inside a machine network, else the first.
fn address(addresses: &[String], machine: &[IpNet]) -> String {
    let parsed: Vec<IpAddr> = addresses
        .iter()
        .filter_map(|text| text.parse::<IpNet>().ok())
        .map(|net| net.addr())
        .collect();
    parsed
        .iter()
        .find(|address| machine.iter().any(|net| net.contains(*address)))
        .or(parsed.first())
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn storage(disk: &Disk) -> Value {
    let name = if disk.by_path.is_empty() {
        &disk.path
    } else {
        &disk.by_path
    };
    json!({
        "name": name,
        "vendor": disk.vendor,
        "sizeBytes": disk.size_bytes,
        "model": disk.model,
        "wwn": disk.wwn,
        "hctl": disk.hctl,
        "serialNumber": disk.serial,
        "rotational": disk.known_type() == DriveType::HDD,
    })
}
