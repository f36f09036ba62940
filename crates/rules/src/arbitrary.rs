//! Property tests: for any input of hosts, a refresh never panics and is idempotent.

use model::cluster::ClusterStatus;
use model::host::{HostProgressInfo, HostRole, HostStage, HostStatus};
use model::inventory::{
    Boot, Cpu, Disk, DriveType, Interface, Inventory, Memory, Route, SystemVendor,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::InstallationPolicy;
use crate::cluster::refresh;
use crate::explain;
use crate::fixtures::{self, later, now};
use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "[a-z0-9.-]{1,70}",
        "\\PC{0,12}",
        select(vec![
            "sda",
            "nvme0n1",
            "eth0",
            "localhost",
            "VMware, Inc.",
            "arm64",
            "x86_64"
        ])
        .prop_map(str::to_owned),
    ]
}

fn address() -> impl Strategy<Value = String> {
    prop_oneof![
        word(),
        (any::<[u8; 4]>(), 0_u8..=33)
            .prop_map(|(ip, bits)| format!("{}.{}.{}.{}/{bits}", ip[0], ip[1], ip[2], ip[3])),
        (any::<u128>(), 0_u8..=129)
            .prop_map(|(ip, bits)| format!("{}/{bits}", std::net::Ipv6Addr::from(ip))),
        (0_u8..=255).prop_map(|last| format!("10.0.0.{last}/16")),
    ]
}

fn disk() -> impl Strategy<Value = Disk> {
    (
        word(),
        word(),
        word(),
        any::<i64>(),
        any::<[bool; 3]>(),
        proptest::option::of(select(DriveType::ALL)),
    )
        .prop_map(|(id, name, holders, size_bytes, flags, drive_type)| Disk {
            by_id: id.clone(),
            id,
            name,
            holders,
            size_bytes,
            bootable: flags[0],
            removable: flags[1],
            has_uuid: flags[2],
            drive_type: drive_type.map(Into::into),
            ..Disk::default()
        })
}

fn interface() -> impl Strategy<Value = Interface> {
    (
        word(),
        word(),
        prop::collection::vec(address(), 0..3),
        prop::collection::vec(address(), 0..3),
    )
        .prop_map(
            |(name, mac_address, ipv4_addresses, ipv6_addresses)| Interface {
                name,
                mac_address,
                ipv4_addresses,
                ipv6_addresses,
                ..Interface::default()
            },
        )
}

prop_compose! {
    fn inventory()(
        hostname in word(),
        interfaces in prop::collection::vec(interface(), 0..4),
        disks in prop::collection::vec(disk(), 0..4),
        numbers in any::<[i64; 3]>(),
        texts in prop::array::uniform4(word()),
        route in (word(), address(), address()),
        present in any::<[bool; 4]>(),
    ) -> Inventory {
        let [vendor, product, architecture, mode] = texts;
        Inventory {
            hostname,
            interfaces,
            disks,
            memory: present[0].then_some(Memory {
                physical_bytes: numbers[0],
                usable_bytes: numbers[1],
                physical_bytes_method: None,
            }),
            cpu: present[1].then(|| Cpu { count: numbers[2], architecture, ..Cpu::default() }),
            system_vendor: present[2].then(|| SystemVendor {
                manufacturer: vendor,
                product_name: product,
                ..SystemVendor::default()
            }),
            boot: present[3].then(|| Boot { current_boot_mode: mode, ..Boot::default() }),
            routes: vec![Route {
                interface: route.0,
                gateway: route.1,
                destination: route.2,
                ..Route::default()
            }],
            ..Inventory::default()
        }
    }
}

prop_compose! {
    fn host(at: usize)(
        inventory in prop_oneof![
            inventory().prop_map(|one| serde_json::to_string(&one).unwrap()),
            Just(serde_json::to_string(&fixtures::inventory(at)).unwrap()),
            word(),
        ],
        status in select(HostStatus::ALL),
        role in proptest::option::of(select(HostRole::ALL)),
        stage in proptest::option::of(select(HostStage::ALL)),
        minutes in prop::array::uniform4(-3_000_i64..100),
        reached in any::<bool>(),
        texts in prop::array::uniform4(word()),
        day2 in any::<bool>(),
    ) -> HostState {
        let mut record = fixtures::discovering(at).record;
        record.inventory = inventory.into();
        record.status = status;
        record.role = role;
        record.checked_in_at = later(minutes[0]).into();
        record.status_updated_at = later(minutes[1]).into();
        record.progress = Some(HostProgressInfo {
            current_stage: stage,
            stage_updated_at: later(minutes[2]).into(),
            ..HostProgressInfo::default()
        });
        record.timestamp = minutes[3];
        if reached {
            record.connectivity = fixtures::connectivity(at, 5).into();
        }
        let [disks, skipped, images, name] = texts;
        record.disks_info = disks;
        record.skip_formatting_disks = skipped;
        record.images_status = images;
        record.requested_hostname = name;
        if day2 {
            record.kind = model::host::HostKind::AddToExistingClusterHost;
        }
        HostState::new(record)
    }
}

prop_compose! {
    fn snapshot()(
        hosts in (0..5_usize).prop_flat_map(|count| (0..count).map(host).collect::<Vec<_>>()),
        status in select(ClusterStatus::ALL),
        masters in 0_i64..6,
        vips in prop::array::uniform2(address()),
        minutes in -3_000_i64..100,
        kubeconfig in any::<bool>(),
    ) -> Snapshot {
        let mut cluster = fixtures::cluster(masters);
        cluster.status = status;
        cluster.status_updated_at = later(minutes).into();
        cluster.install_started_at = later(minutes).into();
        for (vip, ip) in cluster.api_vips.iter_mut().zip(&vips) {
            vip.ip = ip.split('/').next().unwrap_or_default().to_owned();
            vip.verification = None;
        }
        let mut snapshot = Snapshot::new(cluster, hosts);
        snapshot.files.kubeconfig = kubeconfig;
        snapshot
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn refresh_is_idempotent(mut snapshot in snapshot()) {
        let policy = InstallationPolicy::default();
        refresh::cluster(&mut snapshot, &policy, now());
        let cluster = snapshot.cluster.clone();
        let hosts: Vec<_> = snapshot.hosts.iter().map(|host| host.record.clone()).collect();
        let events = refresh::cluster(&mut snapshot, &policy, now());
        prop_assert_eq!(events, []);
        prop_assert_eq!(&snapshot.cluster, &cluster);
        for (host, before) in snapshot.hosts.iter().zip(&hosts) {
            prop_assert_eq!(&host.record, before);
        }
    }

    #[test]
    fn explanations_agree_with_statuses(mut snapshot in snapshot()) {
        let policy = InstallationPolicy::default();
        refresh::cluster(&mut snapshot, &policy, now());
        let failures = explain::FailureTimes::default();
        let explanation = explain::cluster(&snapshot, &failures, &policy, now());
        prop_assert_eq!(&explanation, &explain::cluster(&snapshot, &failures, &policy, now()));
        for cause in &explanation.causes {
            prop_assert!(!cause.id.is_empty(), "{:?}", cause);
            prop_assert!(!cause.required.is_empty(), "{:?}", cause);
            prop_assert!(cause.fix.ends_with('.'), "{:?}", cause);
        }
        let has = |id: uuid::Uuid| explanation.causes.iter().any(|cause| cause.subject.id == id);
        let cluster = &snapshot.cluster;
        if matches!(cluster.status, ClusterStatus::Insufficient | ClusterStatus::PendingForInput) {
            prop_assert!(has(cluster.id.0), "{:?}", cluster.status_info);
            prop_assert!(explain::is_problem(&explanation));
        }
        for host in &snapshot.hosts {
            let record = &host.record;
            match record.status {
                HostStatus::Insufficient | HostStatus::PendingForInput => {
                    prop_assert!(has(record.id.0), "{:?}", record.status_info);
                }
                HostStatus::Known | HostStatus::Installed => {
                    prop_assert!(!has(record.id.0), "{:?}", explanation.causes);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn refresh_of_an_unbound_host_is_idempotent(mut host in host(0)) {
        host.record.cluster_id = None;
        let policy = InstallationPolicy::default();
        refresh::unbound_host(&mut host, "", &policy, now());
        let before = host.record.clone();
        prop_assert_eq!(refresh::unbound_host(&mut host, "", &policy, now()), []);
        prop_assert_eq!(host.record, before);
    }
}
