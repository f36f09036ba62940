//! Records that tests start from.

use chrono::{DateTime, TimeZone, Utc};
use model::cluster::{Cluster, ClusterCreateParams, ClusterStatus};
use model::host::{Host, HostRole, HostStatus};
use model::ids::{ClusterId, HostId, InfraEnvId};
use model::infra_env::InfraEnv;
use model::inventory::{Boot, Cpu, Disk, DriveType, Interface, Inventory, Route};
use model::release_payload::ComponentImages;
use model::time::Timestamp;
use model::versions::{CpuArchitecture, OsImage, ReleaseImage};
use uuid::Uuid;

use crate::HostState;
use crate::InstallationPolicy;
use crate::Offer;
use crate::Snapshot;
use crate::cluster::create;

pub(crate) const PULL_SECRET: &str =
    r#"{"auths":{"registry.example.com:5000":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;

pub(crate) fn now() -> Timestamp {
    Utc.with_ymd_and_hms(2026, 11, 21, 10, 0, 0)
        .single()
        .unwrap_or(DateTime::UNIX_EPOCH)
}

pub(crate) fn offer() -> Offer {
    let release = |version: &str, architecture: &str| ReleaseImage {
        openshift_version: version.to_owned(),
        version: version.to_owned(),
        url: format!("registry.example.com:5000/openshift/release:{version}-{architecture}"),
        cpu_architecture: architecture.parse().unwrap(),
        cpu_architectures: if architecture == "multi" {
            vec!["x86_64".to_owned(), "arm64".to_owned()]
        } else {
            vec![architecture.to_owned()]
        },
        ..ReleaseImage::default()
    };
    let os_image = |version: &str, architecture: &str| OsImage {
        openshift_version: version.to_owned(),
        cpu_architecture: architecture.parse().unwrap(),
        url: "file:///data/base.iso".to_owned(),
        version: "416.94".to_owned(),
        ..OsImage::default()
    };
    Offer {
        releases: vec![
            release("4.11.9", "x86_64"),
            release("4.14.2", "x86_64"),
            release("4.16.3", "x86_64"),
            release("4.16.3", "arm64"),
            release("4.16.3", "multi"),
            release("4.19.1", "x86_64"),
        ],
        os_images: vec![
            os_image("4.16", "x86_64"),
            os_image("4.16", "arm64"),
            os_image("4.19", "x86_64"),
        ],
        components: ComponentImages {
            agent: "registry.example.com:5000/edge/agent:v1".to_owned(),
            ..ComponentImages::default()
        },
        image_service_url: "http://images.example.com:8888".to_owned(),
        ..Offer::default()
    }
}

/// The same, with a second stream for 4.16 on x86_64.
pub(crate) fn offer_of_streams() -> Offer {
    let mut offer = offer();
    offer.os_images[0].os_stream = "rhel-9".to_owned();
    let ten = OsImage {
        version: "10.0".to_owned(),
        os_stream: "rhel-10".to_owned(),
        ..offer.os_images[0].clone()
    };
    offer.os_images.push(ten);
    offer
}

pub(crate) fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub(crate) fn params() -> ClusterCreateParams {
    ClusterCreateParams {
        name: "demo".to_owned(),
        openshift_version: "4.16".to_owned(),
        base_dns_domain: "example.com".to_owned(),
        pull_secret: PULL_SECRET.to_owned(),
        ..ClusterCreateParams::default()
    }
}

pub(crate) fn create(params: ClusterCreateParams) -> Result<Cluster, model::Error> {
    let (offer, policy) = (offer(), InstallationPolicy::default());
    let ctx = create::CreateContext {
        id: id(1),
        offer: &offer,
        policy: &policy,
        cluster: None,
    };
    create::cluster(params, &ctx, now())
}

pub(crate) fn host(number: u8, role: HostRole) -> HostState {
    let disk_id = format!("/dev/disk/by-id/wwn-0x{number:02}");
    let inventory = Inventory {
        hostname: format!("host-{number}"),
        interfaces: vec![
            Interface {
                name: "eth0".to_owned(),
                mac_address: format!("52:54:00:AA:00:{number:02X}"),
                ipv4_addresses: vec![format!("192.168.10.{number}/24")],
                ..Interface::default()
            },
            Interface {
                name: "eth1".to_owned(),
                mac_address: format!("52:54:00:BB:00:{number:02X}"),
                ipv4_addresses: vec![format!("10.20.0.{number}/16")],
                ..Interface::default()
            },
        ],
        disks: vec![Disk {
            id: disk_id.clone(),
            by_id: disk_id.clone(),
            name: "sda".to_owned(),
            path: "/dev/sda".to_owned(),
            drive_type: Some(DriveType::SSD.into()),
            ..Disk::default()
        }],
        boot: Some(Boot {
            current_boot_mode: "uefi".to_owned(),
            ..Boot::default()
        }),
        cpu: Some(Cpu {
            architecture: "x86_64".to_owned(),
            ..Cpu::default()
        }),
        routes: vec![Route {
            destination: "0.0.0.0".to_owned(),
            gateway: "192.168.10.254".to_owned(),
            interface: "eth0".to_owned(),
            ..Route::default()
        }],
        ..Inventory::default()
    };
    let mut inventory = inventory;
    inventory.disks[0].installation_eligibility.eligible = true;
    let record = Host {
        id: HostId(id(0x100 + u128::from(number))),
        infra_env_id: InfraEnvId(id(2)),
        cluster_id: Some(ClusterId(id(1))),
        status: HostStatus::Known,
        role: Some(role),
        requested_hostname: inventory.hostname.clone(),
        installation_disk_id: disk_id,
        installation_disk_path: "/dev/sda".to_owned(),
        inventory: serde_json::to_string(&inventory).unwrap().into(),
        ..Host::default()
    };
    HostState::new(record)
}

/// Three masters, two workers, VIPs set, ready.
pub(crate) fn snapshot() -> Snapshot {
    let vip = |ip: &str| serde_json::from_value(serde_json::json!([{ "ip": ip }])).unwrap();
    let mut params = params();
    params.api_vips = Some(vip("192.168.10.100"));
    params.ingress_vips =
        Some(serde_json::from_value(serde_json::json!([{ "ip": "192.168.10.101" }])).unwrap());
    let mut cluster = create(params).unwrap();
    cluster.status = ClusterStatus::Ready;
    let mut hosts = vec![
        host(1, HostRole::Master),
        host(2, HostRole::Master),
        host(3, HostRole::Master),
        host(4, HostRole::Worker),
        host(5, HostRole::Worker),
    ];
    hosts[0].record.bootstrap = true;
    let mut snapshot = Snapshot::new(cluster, hosts);
    snapshot.cluster.status = ClusterStatus::Insufficient;
    crate::cluster::update::derive_machine_networks(&mut snapshot);
    snapshot.cluster.status = ClusterStatus::Ready;
    snapshot
}

/// One machine on platform none.
pub(crate) fn single_node() -> Snapshot {
    let mut params = params();
    params.control_plane_count = Some(1);
    let cluster = create(params).unwrap();
    let mut node = host(1, HostRole::Master);
    node.record.bootstrap = true;
    let mut snapshot = Snapshot::new(cluster, vec![node]);
    crate::cluster::update::derive_machine_networks(&mut snapshot);
    snapshot
}

pub(crate) fn infra_env() -> InfraEnv {
    InfraEnv {
        id: InfraEnvId(id(2)),
        name: "demo_infra-env".to_owned(),
        openshift_version: "4.16".to_owned(),
        cpu_architecture: Some(CpuArchitecture::X86_64),
        cluster_id: Some(ClusterId(id(1))),
        ..InfraEnv::default()
    }
}
