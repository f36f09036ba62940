//! Records for tests: clusters and hosts without failed validations.

use chrono::TimeDelta;
use model::cluster::{Cluster, ClusterPlatform, ClusterStatus, HighAvailabilityMode};
use model::host::{Host, HostRole, HostStatus};
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::inventory::{Cpu, Disk, DriveType, Interface, Inventory, Memory, Route};
use model::network::{ApiVip, ClusterNetwork, IngressVip, NetworkType, ServiceNetwork};
use model::time::Timestamp;
use serde_json::json;
use uuid::Uuid;

use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;

/// Time of the tests.
pub(crate) fn now() -> Timestamp {
    chrono::DateTime::from_timestamp(1_795_000_000, 0).unwrap()
}

/// `minutes` after [`now`].
pub(crate) fn later(minutes: i64) -> Timestamp {
    now() + TimeDelta::minutes(minutes)
}

pub(crate) fn host_id(at: usize) -> HostId {
    HostId(Uuid::from_u128(0x1000 + at as u128))
}

/// A machine that is fit for every role.
pub(crate) fn inventory(at: usize) -> Inventory {
    Inventory {
        hostname: format!("node-{at}"),
        interfaces: vec![Interface {
            name: "eth0".to_owned(),
            mac_address: format!("52:54:00:00:{:02x}:{:02x}", at / 256, at % 256),
            ipv4_addresses: vec![format!("10.0.{}.{}/16", at / 200, at % 200 + 10)],
            has_carrier: true,
            ..Interface::default()
        }],
        disks: vec![Disk {
            id: "/dev/disk/by-id/wwn-0x1".to_owned(),
            by_id: "/dev/disk/by-id/wwn-0x1".to_owned(),
            name: "sda".to_owned(),
            path: "/dev/sda".to_owned(),
            drive_type: Some(DriveType::SSD.into()),
            size_bytes: 500_000_000_000,
            bootable: true,
            ..Disk::default()
        }],
        memory: Some(Memory {
            physical_bytes: 32 << 30,
            usable_bytes: 32 << 30,
            physical_bytes_method: None,
        }),
        cpu: Some(Cpu {
            count: 8,
            architecture: "x86_64".to_owned(),
            ..Cpu::default()
        }),
        routes: vec![Route {
            interface: "eth0".to_owned(),
            gateway: "10.0.0.1".to_owned(),
            destination: "0.0.0.0".to_owned(),
            family: 2,
            metric: 100,
        }],
        ..Inventory::default()
    }
}

/// A host that has just registered.
pub(crate) fn discovering(at: usize) -> HostState {
    HostState::new(Host {
        id: host_id(at),
        infra_env_id: InfraEnvId(Uuid::from_u128(2)),
        cluster_id: Some(ClusterId(Uuid::from_u128(1))),
        status: HostStatus::Discovering,
        role: Some(HostRole::AutoAssign),
        status_updated_at: now().into(),
        registered_at: now().into(),
        checked_in_at: now().into(),
        created_at: now().into(),
        timestamp: now().timestamp(),
        ..Host::default()
    })
}

/// A host with replies to every step.
pub(crate) fn host(at: usize, role: HostRole, hosts: usize) -> HostState {
    let mut host = discovering(at);
    let record = &mut host.record;
    record.role = Some(role);
    record.inventory = serde_json::to_string(&inventory(at)).unwrap().into();
    record.requested_hostname = format!("node-{at}");
    record.connectivity = connectivity(at, hosts).into();
    record.ntp_sources = r#"[{"source_name":"10.0.0.1","source_state":"synced"}]"#.to_owned();
    record.domain_name_resolutions = json!({"resolutions": [
        {"domain_name": "validateNoWildcardDNS.demo.example.com"},
        {"domain_name": "validateNoWildcardDNS.demo.example.com."},
    ]})
    .to_string();
    HostState::new(host.record)
}

/// Connectivity report of a host that reaches every other.
pub(crate) fn connectivity(at: usize, hosts: usize) -> String {
    let remotes: Vec<_> = (0..hosts)
        .filter(|other| *other != at)
        .map(|other| {
            let nic = &inventory(other).interfaces[0];
            let ip = nic.ipv4_addresses[0].split('/').next().unwrap().to_owned();
            json!({
                "host_id": host_id(other),
                "l2_connectivity": [{"outgoing_nic": "eth0", "remote_ip_address": ip,
                    "remote_mac": nic.mac_address, "successful": true}],
                "l3_connectivity": [{"outgoing_nic": "eth0", "remote_ip_address": ip, "successful": true,
                    "average_rtt_ms": 0.3}],
                "mtu_report": [{"outgoing_nic": "eth0", "remote_ip_address": ip, "mtu_successful": true}],
            })
        })
        .collect();
    json!({ "remote_hosts": remotes }).to_string()
}

/// A cluster without failed validations.
pub(crate) fn cluster(control_plane: i64) -> Cluster {
    let id = ClusterId(Uuid::from_u128(1));
    let single = control_plane == 1;
    let vip = |ip: &str| {
        (
            Some(id),
            ip.to_owned(),
            Some(model::network::VipVerification::Succeeded),
        )
    };
    let (cluster_id, ip, verification) = vip("10.0.255.1");
    let api = ApiVip {
        cluster_id,
        ip,
        verification,
    };
    let (cluster_id, ip, verification) = vip("10.0.255.2");
    let ingress = IngressVip {
        cluster_id,
        ip,
        verification,
    };
    Cluster {
        id,
        name: "demo".to_owned(),
        base_dns_domain: "example.com".to_owned(),
        openshift_version: "4.19.3".to_owned(),
        status: ClusterStatus::Insufficient,
        status_updated_at: now().into(),
        control_plane_count: control_plane,
        high_availability_mode: Some(if single {
            HighAvailabilityMode::None
        } else {
            HighAvailabilityMode::Full
        }),
        user_managed_networking: Some(single),
        platform: Some(ClusterPlatform::default()),
        network_type: Some(NetworkType::OVNKubernetes),
        cluster_networks: vec![ClusterNetwork {
            cluster_id: Some(id),
            cidr: "172.20.0.0/14".to_owned(),
            host_prefix: 23,
        }],
        service_networks: vec![ServiceNetwork {
            cluster_id: Some(id),
            cidr: "172.30.0.0/16".to_owned(),
        }],
        api_vips: if single { Vec::new() } else { vec![api] },
        ingress_vips: if single { Vec::new() } else { vec![ingress] },
        pull_secret_set: true,
        ..Cluster::default()
    }
}

/// A cluster of masters and workers with replies to every step.
pub(crate) fn snapshot(masters: usize, workers: usize) -> Snapshot {
    let all = masters + workers;
    let hosts: Vec<_> = (0..all)
        .map(|at| {
            host(
                at,
                if at < masters {
                    HostRole::Master
                } else {
                    HostRole::Worker
                },
                all,
            )
        })
        .collect();
    Snapshot::new(cluster(i64::try_from(masters).unwrap()), hosts)
}
