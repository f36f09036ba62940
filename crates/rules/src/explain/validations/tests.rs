//! Inputs that make each validation pass, fail or wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::cluster::{
    ClusterKind, ClusterPlatform, DiskEncryption, DiskEncryptionMode, DiskEncryptionTarget,
    LoadBalancer, LoadBalancerType, PlatformType,
};
use model::expected_hosts::{ExpectedHost, HostExpectation, IdentityChange};
use model::host::{HostKind, HostRole, HostStatus, MediaStatus};
use model::inventory::{Inventory, InventoryTruncation, Iscsi, SystemVendor, TpmVersion, Type};
use model::network::{MachineNetwork, NetworkType, VipVerification};
use model::operators::{MonitoredOperator, OperatorType};
use serde::Deserialize;
use serde_json::json;

use super::{Category, ClusterBlock, HostBlock, Unbound, cluster_validations, host_validations};
use crate::InstallationPolicy;
use crate::cluster::refresh;
use crate::fixtures::{self, later, now};
use crate::snapshot::Snapshot;
use crate::snapshot::host_state::HostState;

/// A change to a cluster in which everything passes.
type SnapshotChange = fn(&mut Snapshot);

#[derive(Deserialize)]
struct ReportedEntry {
    id: String,
    status: String,
    message: String,
}

const AGENT: &str = "agent:1";

fn entries(text: &str) -> BTreeMap<String, ReportedEntry> {
    let info: BTreeMap<String, Vec<ReportedEntry>> = serde_json::from_str(text).unwrap();
    info.into_values()
        .flatten()
        .map(|entry| (entry.id.clone(), entry))
        .collect()
}

fn judged(change: SnapshotChange) -> Snapshot {
    let mut snapshot = fixtures::snapshot(3, 2);
    snapshot.components.agent = AGENT.to_owned();
    for host in &mut snapshot.hosts {
        host.record.discovery_agent_version = AGENT.to_owned();
    }
    change(&mut snapshot);
    refresh::cluster(&mut snapshot, &InstallationPolicy::default(), now());
    snapshot
}

fn machine(snapshot: &mut Snapshot, change: impl Fn(&mut Inventory)) {
    let host = &mut snapshot.hosts[0];
    let mut inventory = host.inventory.as_deref().cloned().unwrap();
    change(&mut inventory);
    let mut record = host.record.clone();
    record.inventory = serde_json::to_string(&inventory).unwrap().into();
    *host = HostState::new(record);
}

fn no_inventory(snapshot: &mut Snapshot) {
    snapshot.hosts[0].record.inventory.clear();
    snapshot.hosts[0].record.requested_hostname.clear();
    snapshot.hosts[0].inventory = None;
}

fn no_name(snapshot: &mut Snapshot) {
    snapshot.hosts[0].record.requested_hostname.clear();
    machine(snapshot, |inventory| inventory.hostname.clear());
}

fn automatic(snapshot: &mut Snapshot) {
    no_inventory(snapshot);
    snapshot.hosts[0].record.role = Some(HostRole::AutoAssign);
}

fn no_reports(snapshot: &mut Snapshot) {
    snapshot.hosts[0].record.connectivity.clear();
}

fn user_managed(snapshot: &mut Snapshot) {
    snapshot.cluster.user_managed_networking = Some(true);
    snapshot.cluster.api_vips.clear();
    snapshot.cluster.ingress_vips.clear();
}

fn resolving(snapshot: &mut Snapshot, address: &str) {
    user_managed(snapshot);
    let name = |prefix: &str| format!("{prefix}.demo.example.com");
    let addresses: Vec<&str> = if address.is_empty() {
        Vec::new()
    } else {
        vec![address]
    };
    let of = |prefix| json!({"domain_name": name(prefix), "ipv4_addresses": addresses});
    snapshot.hosts[0].record.domain_name_resolutions = json!({"resolutions": [
        of("api"), of("api-int"), of("console-openshift-console.apps"),
    ]})
    .to_string();
}

fn links(snapshot: &mut Snapshot, member: &str, value: &serde_json::Value) {
    let text = &mut snapshot.hosts[0].record.connectivity;
    let mut report: serde_json::Value = text.parse().unwrap();
    for remote in report["remote_hosts"].as_array_mut().unwrap() {
        for list in ["l3_connectivity", "mtu_report"] {
            remote[list][0][member] = value.clone();
        }
    }
    *text = report.to_string().into();
}

fn encrypted(snapshot: &mut Snapshot, mode: DiskEncryptionMode) {
    snapshot.cluster.disk_encryption = Some(DiskEncryption {
        enable_on: Some(DiskEncryptionTarget::Masters),
        mode: Some(mode),
        tang_servers: String::new(),
    });
}

fn day2(snapshot: &mut Snapshot) {
    snapshot.hosts[0].record.kind = HostKind::AddToExistingClusterHost;
}

fn vendor(snapshot: &mut Snapshot, manufacturer: &str, product: &str) {
    machine(snapshot, |inventory| {
        inventory.system_vendor = Some(SystemVendor {
            manufacturer: manufacturer.to_owned(),
            product_name: product.to_owned(),
            ..SystemVendor::default()
        });
    });
}

/// A day-2 host that has downloaded an ignition with this storage.
fn downloaded(snapshot: &mut Snapshot, storage: &serde_json::Value) {
    day2(snapshot);
    let ignition = json!({ "storage": storage }).to_string();
    let report = json!({ "is_success": true, "ignition": ignition });
    snapshot.hosts[0].record.api_vip_connectivity = report.to_string();
}

fn imported(snapshot: &mut Snapshot) {
    day2(snapshot);
    snapshot.cluster.kind = ClusterKind::AddHostsCluster;
    snapshot.cluster.imported = Some(true);
}

fn platform(snapshot: &mut Snapshot, kind: PlatformType) {
    snapshot.cluster.platform = Some(ClusterPlatform {
        r#type: kind,
        external: None,
    });
}

/// The first host has an entry of that name.
fn expected(snapshot: &mut Snapshot, name: &str) {
    snapshot.hosts[0].record.expectation = Some(HostExpectation {
        expected: Some(ExpectedHost {
            mac_addresses: vec!["52:54:00:00:00:00".to_owned()],
            name: name.to_owned(),
            ..ExpectedHost::default()
        }),
        listed: 1,
    });
}

fn changed_machine(snapshot: &mut Snapshot, changes: i64, minute: i64) {
    snapshot.hosts[0].record.identity_change = Some(IdentityChange {
        mac_addresses: vec!["52:54:00:00:00:00".to_owned()],
        other_mac_addresses: vec!["52:54:00:00:00:99".to_owned()],
        changes,
        changed_at: later(minute).into(),
    });
}

fn chosen(snapshot: &mut Snapshot, name: &str) {
    snapshot
        .cluster
        .monitored_operators
        .push(MonitoredOperator {
            name: name.to_owned(),
            operator_type: Some(OperatorType::Olm),
            ..MonitoredOperator::default()
        });
}

/// Id, outcome, and the change of the first host that causes it.
#[expect(
    clippy::semicolon_if_nothing_returned,
    reason = "a change is one expression"
)]
static HOSTS: &[(&str, &str, SnapshotChange)] = &[
    ("connected", "failure", |all| {
        all.hosts[0].record.checked_in_at = later(-4).into()
    }),
    ("connected", "success", |all| {
        all.hosts[0].record.checked_in_at = later(-60).into();
        all.hosts[0].observed.heartbeats_since = Some(later(-2))
    }),
    ("connected", "failure", |all| {
        all.hosts[0].record.checked_in_at = later(-60).into();
        all.hosts[0].observed.heartbeats_since = Some(later(-4))
    }),
    ("connected", "success", |all| {
        all.hosts[0].record.checked_in_at = later(60).into();
        all.hosts[0].observed.heartbeats_since = Some(later(-2))
    }),
    ("connected", "failure", |all| {
        all.hosts[0].record.checked_in_at = later(60).into();
        all.hosts[0].observed.heartbeats_since = Some(later(-4))
    }),
    ("media-connected", "failure", |all| {
        all.hosts[0].record.media_status = Some(MediaStatus::Disconnected)
    }),
    ("has-inventory", "failure", no_inventory),
    ("inventory-not-fully-truncated", "pending", no_inventory),
    ("inventory-not-fully-truncated", "failure", |all| {
        machine(all, |one| {
            one.truncation = Some(InventoryTruncation {
                r#type: Type::Full.into(),
                reasons: Vec::new(),
            })
        })
    }),
    ("has-min-valid-disks", "error", |all| {
        machine(all, |one| {
            one.truncation = Some(InventoryTruncation {
                r#type: Type::Full.into(),
                reasons: Vec::new(),
            })
        })
    }),
    ("inventory-not-partially-truncated", "failure", |all| {
        machine(all, |one| {
            one.truncation = Some(InventoryTruncation {
                r#type: Type::Partial.into(),
                reasons: Vec::new(),
            })
        })
    }),
    ("has-min-cpu-cores", "pending", no_inventory),
    ("has-min-cpu-cores", "failure", |all| {
        machine(all, |one| one.cpu.as_mut().unwrap().count = 1)
    }),
    ("has-min-memory", "pending", no_inventory),
    ("has-min-memory", "failure", |all| {
        machine(all, |one| {
            one.memory.as_mut().unwrap().usable_bytes = 8091 << 20
        })
    }),
    ("has-min-memory", "success", |all| {
        machine(all, |one| {
            one.memory.as_mut().unwrap().usable_bytes = 8092 << 20
        })
    }),
    ("has-min-valid-disks", "pending", no_inventory),
    ("has-min-valid-disks", "failure", |all| {
        machine(all, |one| one.disks[0].size_bytes = 119_000_000_000)
    }),
    ("has-min-valid-disks", "success", |all| {
        machine(all, |one| one.disks[0].size_bytes = 120_000_000_000)
    }),
    ("has-min-valid-disks", "error", |all| {
        machine(all, |one| one.disks.clear())
    }),
    ("has-cpu-cores-for-role", "pending", automatic),
    ("has-cpu-cores-for-role", "failure", |all| {
        machine(all, |one| one.cpu.as_mut().unwrap().count = 3)
    }),
    ("has-cpu-cores-for-role", "failure", |all| {
        chosen(all, "mce");
        chosen(all, "mtv");
    }),
    ("has-memory-for-role", "pending", automatic),
    ("has-memory-for-role", "failure", |all| {
        machine(all, |one| {
            one.memory.as_mut().unwrap().usable_bytes = 16 << 29
        })
    }),
    ("hostname-unique", "pending", no_inventory),
    ("hostname-unique", "failure", |all| {
        all.hosts[0].record.requested_hostname = "node-1".to_owned()
    }),
    ("hostname-valid", "pending", no_inventory),
    ("hostname-valid", "failure", no_name),
    ("hostname-unique", "success", no_name),
    ("hostname-valid", "failure", |all| {
        all.hosts[0].record.requested_hostname = "localhost".to_owned()
    }),
    ("hostname-valid", "failure", |all| {
        all.hosts[0].record.requested_hostname = "Node_0".to_owned()
    }),
    ("hostname-valid", "success", |all| {
        all.hosts[0].record.requested_hostname = "node-0.example.com".to_owned()
    }),
    ("sufficient-installation-disk-speed", "failure", |all| {
        all.hosts[0].record.disks_info =
            json!({"/dev/disk/by-id/wwn-0x1": {"disk_speed": {"tested": true, "exit_code": 3}}})
                .to_string()
    }),
    ("compatible-with-cluster-platform", "pending", no_inventory),
    ("compatible-with-cluster-platform", "failure", |all| {
        platform(all, PlatformType::Vsphere)
    }),
    ("compatible-with-cluster-platform", "success", |all| {
        platform(all, PlatformType::Nutanix);
        vendor(all, "Nutanix", "");
    }),
    ("vsphere-disk-uuid-enabled", "failure", |all| {
        vendor(all, "VMware, Inc.", "")
    }),
    ("vsphere-disk-uuid-enabled", "success", |all| {
        vendor(all, "VMware, Inc.", "");
        machine(all, |one| one.disks[0].has_uuid = true);
    }),
    ("vsphere-disk-uuid-enabled", "hidden", |_| ()),
    ("compatible-agent", "failure", |all| {
        all.hosts[0].record.discovery_agent_version = "agent:0".to_owned()
    }),
    ("compatible-agent", "hidden", |all| {
        all.hosts[0].record.status = HostStatus::Installed
    }),
    ("no-skip-installation-disk", "failure", |all| {
        all.hosts[0].record.skip_formatting_disks = "/dev/disk/by-id/wwn-0x1".to_owned()
    }),
    ("no-skip-missing-disk", "pending", no_inventory),
    ("no-skip-missing-disk", "failure", |all| {
        all.hosts[0].record.skip_formatting_disks = "sdz".to_owned()
    }),
    ("disk-encryption-requirements-satisfied", "hidden", |_| ()),
    ("disk-encryption-requirements-satisfied", "hidden", |all| {
        encrypted(all, DiskEncryptionMode::Tpmv2);
        all.hosts[0].record.role = Some(HostRole::Worker);
    }),
    ("disk-encryption-requirements-satisfied", "failure", |all| {
        encrypted(all, DiskEncryptionMode::Tpmv2)
    }),
    ("disk-encryption-requirements-satisfied", "success", |all| {
        encrypted(all, DiskEncryptionMode::Tpmv2);
        machine(all, |one| one.tpm_version = Some(TpmVersion::V20.into()));
    }),
    ("disk-encryption-requirements-satisfied", "pending", |all| {
        encrypted(all, DiskEncryptionMode::Tang)
    }),
    ("disk-encryption-requirements-satisfied", "success", |all| {
        encrypted(all, DiskEncryptionMode::Tang);
        all.hosts[0].record.tang_connectivity = r#"{"is_success":true}"#.to_owned();
    }),
    ("disk-encryption-requirements-satisfied", "failure", |all| {
        encrypted(all, DiskEncryptionMode::Tang);
        all.hosts[0].record.tang_connectivity = "no route".to_owned();
    }),
    ("disk-encryption-requirements-satisfied", "hidden", day2),
    ("disk-encryption-requirements-satisfied", "pending", |all| {
        day2(all);
        encrypted(all, DiskEncryptionMode::Tpmv2);
    }),
    ("disk-encryption-requirements-satisfied", "hidden", |all| {
        encrypted(all, DiskEncryptionMode::Tpmv2);
        downloaded(all, &json!({}));
    }),
    ("disk-encryption-requirements-satisfied", "failure", |all| {
        downloaded(all, &json!({ "luks": [{ "clevis": { "tpm2": true } }] }))
    }),
    ("disk-encryption-requirements-satisfied", "pending", |all| {
        let server = json!({ "url": "http://tang", "thumbprint": "x" });
        downloaded(
            all,
            &json!({ "luks": [{ "clevis": { "tang": [server] } }] }),
        )
    }),
    ("disk-encryption-requirements-satisfied", "failure", |all| {
        downloaded(all, &json!({ "luks": [{ "clevis": {} }] }))
    }),
    ("matches-expected-host", "hidden", |_| ()),
    ("matches-expected-host", "failure", |all| {
        all.hosts[0].record.expectation = Some(HostExpectation::default())
    }),
    ("matches-expected-host", "failure", |all| {
        expected(all, "other")
    }),
    ("matches-expected-host", "success", |all| {
        expected(all, "node-0")
    }),
    ("host-id-unique", "hidden", |_| ()),
    ("host-id-unique", "hidden", |all| {
        changed_machine(all, 1, -1)
    }),
    ("host-id-unique", "hidden", |all| {
        changed_machine(all, 2, -11)
    }),
    ("host-id-unique", "failure", |all| {
        changed_machine(all, 2, -1)
    }),
    ("disk-ids-unique", "hidden", |_| ()),
    ("disk-ids-unique", "failure", |all| {
        let inventory = Arc::make_mut(all.hosts[0].inventory.as_mut().unwrap());
        let mut twin = inventory.disks[0].clone();
        twin.path = "/dev/sdz".to_owned();
        inventory.disks.push(twin);
        crate::hardware::disks::name_by_path(inventory);
    }),
    ("serial-number-unique", "hidden", |_| ()),
    ("serial-number-unique", "failure", |all| {
        for at in [0, 1] {
            let inventory = all.hosts[at].inventory.as_mut().unwrap();
            Arc::make_mut(inventory).system_vendor = Some(SystemVendor {
                serial_number: "S1".to_owned(),
                ..SystemVendor::default()
            });
        }
    }),
    ("machine-cidr-defined", "failure", |all| {
        all.cluster.api_vips.clear()
    }),
    ("machine-cidr-defined", "success", user_managed),
    ("belongs-to-machine-cidr", "pending", no_inventory),
    ("belongs-to-machine-cidr", "failure", |all| {
        machine(all, |one| {
            one.interfaces[0].ipv4_addresses = vec!["192.168.7.7/24".to_owned()]
        })
    }),
    ("belongs-to-machine-cidr", "success", user_managed),
    ("ignition-downloadable", "hidden", |_| ()),
    ("ignition-downloadable", "pending", day2),
    ("ignition-downloadable", "success", |all| {
        day2(all);
        all.hosts[0].record.api_vip_connectivity = r#"{"is_success":true}"#.to_owned();
    }),
    ("ignition-downloadable", "failure", |all| {
        day2(all);
        all.hosts[0].record.api_vip_connectivity =
            r#"{"url":"http://x","download_error":"refused"}"#.to_owned();
    }),
    ("belongs-to-majority-group", "failure", no_reports),
    ("belongs-to-majority-group", "pending", |all| {
        for host in &mut all.hosts {
            host.record.connectivity.clear();
        }
    }),
    ("belongs-to-majority-group", "pending", |all| {
        all.hosts.truncate(2);
    }),
    ("belongs-to-majority-group", "failure", |all| {
        all.hosts[0].record.connectivity = fixtures::connectivity(0, 1).into()
    }),
    ("belongs-to-majority-group", "success", user_managed),
    ("valid-platform-network-settings", "pending", no_inventory),
    ("valid-platform-network-settings", "failure", |all| {
        vendor(all, "", "OpenStack Compute")
    }),
    ("ntp-synced", "pending", |all| {
        all.hosts[0].record.ntp_sources.clear()
    }),
    ("ntp-synced", "failure", |all| {
        all.hosts[0].record.ntp_sources =
            r#"[{"source_name":"a","source_state":"unreachable"}]"#.to_owned()
    }),
    ("time-synced-between-host-and-service", "pending", |all| {
        all.hosts[0].record.timestamp = 0
    }),
    ("time-synced-between-host-and-service", "failure", |all| {
        all.hosts[0].record.timestamp -= 21 * 60
    }),
    ("time-synced-between-host-and-service", "success", |all| {
        all.hosts[0].record.timestamp += 59 * 60
    }),
    ("container-images-available", "failure", |all| {
        all.hosts[0].record.images_status = r#"{"a":{"name":"a","result":"failure"}}"#.to_owned()
    }),
    ("container-images-available", "failure", |all| {
        all.hosts[0].record.images_status =
            r#"{"a":{"name":"a","result":"success","size_bytes":9,"download_rate":0.0005}}"#
                .to_owned()
    }),
    (
        "sufficient-network-latency-requirement-for-role",
        "failure",
        |all| links(all, "average_rtt_ms", &json!(101.0)),
    ),
    (
        "sufficient-network-latency-requirement-for-role",
        "success",
        |all| {
            links(all, "average_rtt_ms", &json!(101.0));
            all.hosts[0].record.role = Some(HostRole::Worker);
        },
    ),
    (
        "sufficient-network-latency-requirement-for-role",
        "pending",
        no_reports,
    ),
    (
        "sufficient-packet-loss-requirement-for-role",
        "failure",
        |all| links(all, "packet_loss_percentage", &json!(0.5)),
    ),
    (
        "sufficient-packet-loss-requirement-for-role",
        "success",
        |all| {
            links(all, "packet_loss_percentage", &json!(10.0));
            all.hosts[0].record.role = Some(HostRole::Worker);
        },
    ),
    (
        "sufficient-packet-loss-requirement-for-role",
        "pending",
        no_reports,
    ),
    ("has-default-route", "pending", no_inventory),
    ("has-default-route", "failure", |all| {
        machine(all, |one| one.routes.clear())
    }),
    ("has-default-route", "success", |all| {
        machine(all, |one| {
            one.routes[0].destination = "0.0.0.0/0".to_owned()
        })
    }),
    (
        "api-domain-name-resolved-correctly",
        "pending",
        user_managed,
    ),
    ("api-domain-name-resolved-correctly", "failure", |all| {
        resolving(all, "")
    }),
    ("api-domain-name-resolved-correctly", "failure", |all| {
        resolving(all, "10.0.0.10")
    }),
    ("api-domain-name-resolved-correctly", "success", |all| {
        resolving(all, "10.0.0.9")
    }),
    ("api-domain-name-resolved-correctly", "error", |all| {
        user_managed(all);
        all.cluster.base_dns_domain.clear();
    }),
    ("api-domain-name-resolved-correctly", "pending", imported),
    ("api-domain-name-resolved-correctly", "success", |all| {
        let pod = json!({ "path": "/etc/kubernetes/manifests/coredns.yaml" });
        downloaded(all, &json!({ "files": [pod] }));
        imported(all);
    }),
    ("api-domain-name-resolved-correctly", "failure", |all| {
        resolving(all, "");
        downloaded(all, &json!({}));
        imported(all);
    }),
    (
        "api-int-domain-name-resolved-correctly",
        "pending",
        user_managed,
    ),
    ("api-int-domain-name-resolved-correctly", "failure", |all| {
        resolving(all, "")
    }),
    (
        "apps-domain-name-resolved-correctly",
        "pending",
        user_managed,
    ),
    ("apps-domain-name-resolved-correctly", "failure", |all| {
        resolving(all, "")
    }),
    ("dns-wildcard-not-configured", "pending", |all| {
        all.hosts[0].record.domain_name_resolutions.clear()
    }),
    ("dns-wildcard-not-configured", "pending", |all| {
        all.hosts[0].record.domain_name_resolutions =
            r#"{"resolutions":[{"domain_name":"validateNoWildcardDNS.demo.example.com."}]}"#.into();
    }),
    ("dns-wildcard-not-configured", "success", |all| {
        all.hosts[0].record.domain_name_resolutions =
            r#"{"resolutions":[{"domain_name":"validateNoWildcardDNS.demo.example.com"}]}"#.into();
    }),
    ("dns-wildcard-not-configured", "failure", |all| {
        let text = &mut all.hosts[0].record.domain_name_resolutions;
        *text = text.replace(r#".com""#, r#".com","ipv4_addresses":["1.2.3.4"]"#);
    }),
    ("non-overlapping-subnets", "pending", no_inventory),
    ("non-overlapping-subnets", "failure", |all| {
        machine(all, |one| {
            let mut nic = one.interfaces[0].clone();
            nic.name = "eth1".to_owned();
            nic.ipv4_addresses = vec!["10.0.3.1/24".to_owned()];
            one.interfaces.push(nic);
        })
    }),
    ("non-overlapping-subnets", "success", |all| {
        machine(all, |one| {
            one.interfaces[0]
                .ipv4_addresses
                .push("10.0.9.9/16".to_owned())
        })
    }),
    ("no-ip-collisions-in-network", "pending", no_inventory),
    ("no-ip-collisions-in-network", "failure", |all| {
        machine(all, |one| {
            one.interfaces[0].ipv4_addresses = vec!["10.0.0.11/16".to_owned()]
        })
    }),
    ("mtu-valid", "failure", |all| {
        links(all, "mtu_successful", &json!(false))
    }),
    ("mtu-valid", "pending", no_reports),
    ("no-iscsi-nic-belongs-to-machine-cidr", "hidden", |_| ()),
    ("no-iscsi-nic-belongs-to-machine-cidr", "failure", |all| {
        machine(all, |one| {
            one.disks[0].iscsi = Some(Iscsi {
                host_ip_address: "10.0.0.10".to_owned(),
            })
        })
    }),
    ("no-iscsi-nic-belongs-to-machine-cidr", "success", |all| {
        machine(all, |one| {
            one.disks[0].iscsi = Some(Iscsi {
                host_ip_address: "192.168.1.1".to_owned(),
            })
        })
    }),
];

/// Id, outcome, and the change of the cluster that causes it.
#[expect(
    clippy::semicolon_if_nothing_returned,
    reason = "a change is one expression"
)]
static CLUSTERS: &[(&str, &str, SnapshotChange)] = &[
    ("machine-cidr-defined", "failure", |all| {
        all.cluster.api_vips.clear()
    }),
    ("cluster-cidr-defined", "failure", |all| {
        all.cluster.cluster_networks.clear()
    }),
    ("service-cidr-defined", "failure", |all| {
        all.cluster.service_networks.clear()
    }),
    ("api-vips-defined", "failure", |all| {
        all.cluster.api_vips.clear()
    }),
    ("api-vips-defined", "pending", |all| {
        all.cluster.api_vips.clear();
        all.cluster.vip_dhcp_allocation = Some(true);
    }),
    ("api-vips-defined", "failure", |all| {
        all.cluster.api_vips.clear();
        all.cluster.vip_dhcp_allocation = Some(true);
        let network = "10.0.0.0/16".to_owned();
        all.vip_leases.network.clone_from(&network);
        all.cluster.machine_networks = vec![MachineNetwork {
            cluster_id: None,
            cidr: network,
        }];
        all.vip_leases.requested_at = (now() - chrono::TimeDelta::minutes(3)).into();
    }),
    ("ingress-vips-defined", "failure", |all| {
        all.cluster.ingress_vips.clear()
    }),
    ("dns-domain-defined", "failure", |all| {
        all.cluster.base_dns_domain.clear()
    }),
    ("pull-secret-set", "failure", |all| {
        all.cluster.pull_secret_set = false
    }),
    ("machine-cidr-equals-to-calculated-cidr", "pending", |all| {
        all.cluster.api_vips.clear()
    }),
    ("machine-cidr-equals-to-calculated-cidr", "failure", |all| {
        all.cluster.api_vips[0].ip = "192.168.1.1".to_owned()
    }),
    ("api-vips-valid", "pending", |all| {
        all.cluster.api_vips[0].verification = None
    }),
    ("api-vips-valid", "success", |all| {
        all.cluster.openshift_version = "4.12.3".to_owned();
        all.cluster.api_vips[0].verification = None;
    }),
    ("api-vips-valid", "pending", |all| {
        all.cluster.openshift_version = "4.12.3".to_owned();
        all.cluster.api_vips[0].verification = None;
        all.hosts[0].record.discovery_agent_version = "atoll-agent/0.1.0".to_owned();
    }),
    ("api-vips-valid", "failure", |all| {
        all.cluster.openshift_version = "4.12.3".to_owned();
        all.cluster.api_vips[0].verification = None;
        all.hosts[0].record.free_addresses =
            r#"[{"network":"10.0.0.0/16","free_addresses":["10.0.9.9"]}]"#.into();
    }),
    ("api-vips-valid", "failure", |all| {
        all.cluster.api_vips[0].verification = Some(VipVerification::Failed)
    }),
    ("api-vips-valid", "failure", |all| {
        all.cluster.api_vips[0].verification = None;
        all.hosts[0].record.free_addresses =
            r#"[{"network":"10.0.0.0/16","free_addresses":["10.0.9.9"]}]"#.into();
    }),
    ("api-vips-valid", "success", |all| {
        all.cluster.api_vips[0].verification = None;
        all.hosts[0].record.free_addresses =
            r#"[{"network":"10.0.0.0/16","free_addresses":["10.0.255.1"]}]"#.into();
    }),
    ("api-vips-valid", "failure", |all| {
        all.cluster.api_vips[0].ip = "10.0.255.255".to_owned()
    }),
    ("api-vips-valid", "success", |all| {
        all.cluster.api_vips[0].verification = None;
        all.cluster.load_balancer = Some(LoadBalancer {
            r#type: Some(LoadBalancerType::UserManaged),
        });
        all.cluster.machine_networks = vec![MachineNetwork {
            cluster_id: None,
            cidr: "10.0.0.0/16".to_owned(),
        }];
    }),
    ("ingress-vips-valid", "failure", |all| {
        all.cluster.ingress_vips[0].ip = "10.1.0.1".to_owned()
    }),
    ("ingress-vips-valid", "pending", |all| {
        all.cluster.ingress_vips.clear()
    }),
    ("all-hosts-are-ready-to-install", "failure", no_inventory),
    ("sufficient-masters-count", "failure", |all| {
        all.hosts[0].record.role = Some(HostRole::Worker)
    }),
    ("sufficient-masters-count", "failure", |all| {
        all.cluster.control_plane_count = 2
    }),
    ("network-prefix-valid", "failure", |all| {
        all.cluster.cluster_networks[0].host_prefix = 26
    }),
    ("network-prefix-valid", "failure", |all| {
        all.cluster.cluster_networks[0].host_prefix = 15
    }),
    ("network-prefix-valid", "success", |all| {
        all.cluster.cluster_networks[0].host_prefix = 17
    }),
    ("network-prefix-valid", "pending", |all| {
        all.cluster.cluster_networks.clear()
    }),
    ("no-cidrs-overlapping", "failure", |all| {
        all.cluster.service_networks[0].cidr = "172.20.0.0/16".to_owned()
    }),
    ("no-cidrs-overlapping", "error", |all| {
        all.cluster.service_networks.clear()
    }),
    ("no-cidrs-overlapping", "error", |all| {
        all.cluster.service_networks[0].cidr = "everything".to_owned()
    }),
    ("ntp-server-configured", "failure", |all| {
        all.hosts[0].record.timestamp += 5 * 60
    }),
    ("network-type-valid", "failure", |all| {
        all.cluster.network_type = None
    }),
    ("network-type-valid", "failure", |all| {
        all.cluster.vip_dhcp_allocation = Some(true)
    }),
    ("network-type-valid", "failure", |all| {
        all.cluster.network_type = Some(NetworkType::OpenShiftSDN);
        all.cluster.service_networks[0].cidr = "fd02::/112".to_owned();
    }),
    (
        "custom-manifests-requirements-satisfied",
        "failure",
        |all| all.cluster.network_type = Some(NetworkType::Cilium),
    ),
    (
        "custom-manifests-requirements-satisfied",
        "success",
        |all| {
            all.cluster.network_type = Some(NetworkType::Cilium);
            all.files.user_manifests = true;
        },
    ),
    ("networks-same-address-families", "failure", |all| {
        all.cluster.service_networks[0].cidr = "fd02::/112".to_owned()
    }),
    ("networks-same-address-families", "pending", |all| {
        all.cluster.api_vips.clear()
    }),
    ("platform-requirements-satisfied", "failure", |all| {
        platform(all, PlatformType::Vsphere);
        vendor(all, "Other", "");
    }),
    (
        "openshift-ai-gpu-requirements-satisfied",
        "success",
        |all| chosen(all, "openshift-ai"),
    ),
];

fn check(table: &[(&str, &str, SnapshotChange)], text: fn(&Snapshot) -> String) {
    let healthy = entries(&text(&judged(|_| ())));
    for entry in healthy.values() {
        assert_eq!(entry.status, "success", "{}: {}", entry.id, entry.message);
    }
    for (at, (id, expected, change)) in table.iter().enumerate() {
        let snapshot = judged(*change);
        let found = entries(&text(&snapshot));
        let (status, message) = match found.get(*id) {
            Some(entry) => (entry.status.as_str(), entry.message.as_str()),
            None => ("hidden", ""),
        };
        assert_eq!(status, *expected, "row {at} {id}: {message}");
    }
}

#[test]
fn validations_of_hosts_judge_as_listed() {
    check(HOSTS, |all| all.hosts[0].record.validations_info.text());
}

#[test]
fn validations_of_clusters_judge_as_listed() {
    check(CLUSTERS, |all| all.cluster.validations_info.clone());
}

#[test]
fn openshift_ai_without_operators_for_gpus_is_advised() {
    let advice = |change: SnapshotChange| {
        let found = entries(&judged(change).cluster.validations_info);
        found["openshift-ai-gpu-requirements-satisfied"]
            .message
            .clone()
    };
    assert_eq!(advice(|_| ()), "");
    let alone = advice(|all| chosen(all, "openshift-ai"));
    assert!(alone.contains("GPU"), "{alone}");
    let with_gpus = advice(|all| {
        chosen(all, "openshift-ai");
        chosen(all, "nvidia-gpu");
    });
    assert_eq!(with_gpus, "");
}

#[test]
fn every_validation_has_a_failing_row() {
    let fails = |table: &[(&'static str, &'static str, SnapshotChange)]| -> BTreeSet<&'static str> {
        table
            .iter()
            .filter(|row| matches!(row.1, "failure" | "error"))
            .map(|row| row.0)
            .collect()
    };
    let (hosts, clusters) = (fails(HOSTS), fails(CLUSTERS));
    let missing: Vec<&str> = host_validations()
        .filter(|one| one.category != Category::Operators)
        .map(|one| one.id.as_str())
        .filter(|id| !hosts.contains(id))
        .chain(
            cluster_validations()
                .filter(|one| one.category != Category::Operators)
                .map(|one| one.id.as_str())
                .filter(|id| !clusters.contains(id)),
        )
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn ids_are_listed_once() {
    let hosts: BTreeSet<_> = host_validations().map(|one| one.id).collect();
    assert_eq!(hosts.len(), host_validations().count());
    let clusters: BTreeSet<_> = cluster_validations().map(|one| one.id).collect();
    assert_eq!(clusters.len(), cluster_validations().count());
}

#[test]
fn ignored_and_disabled_validations_do_not_block() {
    let mut snapshot = judged(|all| {
        all.cluster.ignored_host_validations = r#"["has-default-route"]"#.to_owned();
        machine(all, |one| one.routes.clear());
    });
    let host = &snapshot.hosts[0].record;
    assert_eq!(host.status, HostStatus::Known);
    assert_eq!(
        entries(&host.validations_info.text())["has-default-route"].status,
        "failure"
    );
    snapshot.cluster.ignored_host_validations = r#"["all"]"#.to_owned();
    snapshot.hosts[0].record.requested_hostname = "node-1".to_owned();
    refresh::cluster(&mut snapshot, &InstallationPolicy::default(), now());
    assert_eq!(
        snapshot.hosts[0].record.status,
        HostStatus::Insufficient,
        "names must be unique despite ignored validations"
    );

    let mut snapshot = judged(|all| machine(all, |one| one.routes.clear()));
    let policy = InstallationPolicy {
        disabled_host_validations: BTreeSet::from([
            model::validations::HostValidationId::HasDefaultRoute,
        ]),
        ..InstallationPolicy::default()
    };
    refresh::cluster(&mut snapshot, &policy, now());
    let host = &snapshot.hosts[0].record;
    assert_eq!(host.status, HostStatus::Known);
    assert_eq!(
        entries(&host.validations_info.text())["has-default-route"].status,
        "disabled"
    );
}

#[test]
fn the_status_text_names_exactly_the_blocking_validations() {
    let snapshot = judged(|all| {
        all.hosts[0].record.ntp_sources = "[]".to_owned();
        all.hosts[0].record.domain_name_resolutions.clear();
        machine(all, |one| one.routes.clear());
    });
    let info = &snapshot.hosts[0].record.status_info;
    assert_eq!(
        info,
        "Routes: the host has no default route with gateway and interface; configure one ; Waiting for the host to resolve names in demo.example.com"
    );
}

#[test]
fn a_changed_validation_emits_an_event() {
    let mut snapshot = judged(|_| ());
    let route = snapshot.hosts[0].inventory.as_ref().unwrap().routes.clone();
    machine(&mut snapshot, |one| one.routes.clear());
    let find = |events: Vec<crate::NewEvent>, name: &str| {
        let mut found = events.into_iter().filter(|event| event.name == name);
        found
            .find(|event| event.props["validation_id"] == "has-default-route")
            .unwrap()
    };
    let event = find(
        refresh::cluster(&mut snapshot, &InstallationPolicy::default(), now()),
        "host_validation_failed",
    );
    assert!(
        event.props["failure_message"]
            .as_str()
            .unwrap()
            .starts_with("Routes")
    );
    machine(&mut snapshot, |one| one.routes.clone_from(&route));
    find(
        refresh::cluster(&mut snapshot, &InstallationPolicy::default(), now()),
        "host_validation_fixed",
    );
}

#[test]
fn unbound_hosts_are_blocked_by_heartbeats_and_four_validations() {
    let blocking = host_validations().filter(|one| one.unbound == Unbound::Blocks);
    let blocking: BTreeSet<&str> = blocking.map(|one| one.id.as_str()).collect();
    let expected = [
        "connected",
        "has-min-cpu-cores",
        "has-min-memory",
        "has-min-valid-disks",
        "hostname-valid",
        "media-connected",
    ];
    assert_eq!(blocking, BTreeSet::from(expected));

    let mut host = fixtures::host(0, HostRole::AutoAssign, 1);
    host.record.cluster_id = None;
    host.record.status = HostStatus::DiscoveringUnbound;
    host.record.discovery_agent_version = "agent:0".to_owned();
    refresh::unbound_host(&mut host, AGENT, &InstallationPolicy::default(), now());
    assert_eq!(host.record.status, HostStatus::KnownUnbound);
    let shown = entries(&host.record.validations_info.text());
    assert_eq!(shown["compatible-agent"].status, "failure");

    host.record.requested_hostname = "localhost".to_owned();
    refresh::unbound_host(&mut host, AGENT, &InstallationPolicy::default(), now());
    assert_eq!(host.record.status, HostStatus::InsufficientUnbound);
    assert!(!host.record.status_info.contains("agent"));
}

#[test]
fn names_that_every_machine_has_are_not_allowed() {
    let message = |name: &str| {
        let mut host = fixtures::host(0, HostRole::AutoAssign, 1);
        host.record.cluster_id = None;
        host.record.status = HostStatus::DiscoveringUnbound;
        host.record.requested_hostname = name.to_owned();
        refresh::unbound_host(&mut host, AGENT, &InstallationPolicy::default(), now());
        let mut shown = entries(&host.record.validations_info.text());
        shown.remove("hostname-valid").unwrap().message
    };
    for name in [
        "localhost",
        "localhost.localdomain",
        "localhost4",
        "localhost4.localdomain4",
        "localhost6",
        "localhost6.localdomain6",
    ] {
        let expected = format!("Hostname {name} is not allowed; give the host a name of its own");
        assert_eq!(message(name), expected);
    }
    for name in ["(none)", "Localhost"] {
        let expected = format!("Hostname {name} is not valid; ");
        assert!(message(name).starts_with(&expected), "{}", message(name));
    }
    for name in ["localhost5", "localhost.a"] {
        assert_eq!(message(name), format!("Hostname {name} is allowed"));
    }
}

#[test]
fn every_blocking_problem_is_explained_by_its_parts() {
    let failures = crate::explain::FailureTimes::default();
    let explained = |snapshot: &Snapshot, id: &str, of_host: bool| {
        let explanation =
            crate::explain::cluster(snapshot, &failures, &InstallationPolicy::default(), now());
        // The machine network of the cluster is one cause for all its hosts.
        let subject = if of_host && id != "machine-cidr-defined" {
            snapshot.hosts[0].record.id.0
        } else {
            snapshot.cluster.id.0
        };
        let mut causes = explanation.causes.into_iter();
        causes.find(|cause| cause.id == id && cause.subject.id == subject)
    };
    let hosts = HOSTS.iter().map(|row| (row, true));
    let clusters = CLUSTERS.iter().map(|row| (row, false));
    for ((id, status, change), of_host) in hosts.chain(clusters) {
        let blocks = if of_host {
            let mut rows = host_validations().filter(|row| row.id.as_str() == *id);
            !rows.any(|row| matches!(row.blocks, HostBlock::Nothing | HostBlock::Preparing))
        } else {
            let mut rows = cluster_validations().filter(|row| row.id.as_str() == *id);
            !rows.any(|row| row.blocks == ClusterBlock::Nothing)
        };
        let snapshot = judged(*change);
        let found = explained(&snapshot, id, of_host);
        let is_problem = matches!(*status, "failure" | "error" | "pending");
        // Of the validations that wait for one input, only the first is listed.
        let Some(cause) = found else {
            let is_silent = !blocks || !is_problem || *status == "pending";
            assert!(is_silent, "{id} {status} is not explained");
            continue;
        };
        assert!(blocks && is_problem, "{id} {status}");
        assert_eq!(cause.status.as_str(), *status, "{id}");
        for text in [&cause.observed, &cause.required, &cause.fix] {
            assert!(!text.is_empty(), "{id}: {cause:?}");
        }
        assert!(cause.fix.ends_with('.'), "{id}: {}", cause.fix);
        let text = if of_host {
            snapshot.hosts[0].record.validations_info.text()
        } else {
            snapshot.cluster.validations_info.clone()
        };
        let message = &entries(&text)[*id].message;
        assert_ne!(cause.observed, *message, "{id}: no observed value");
    }
}
