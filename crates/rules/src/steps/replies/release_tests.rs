//! Replies of the agents of two releases, one a line.
//!
//! Not recorded: written after the structs of openshift/assisted-installer-agent, release-4.12 at 07762001765a and
//! release-4.20 at 637327ec40cd, with values of a virtual machine.

use std::collections::BTreeMap;

use model::host::{HostRole, HostStatus};
use model::network::MachineNetwork;
use model::steps::{StepReply, StepType};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{CheckedReply, accept, store_vips};
use crate::InstallationPolicy;
use crate::cluster::refresh;
use crate::fixtures::{self, now};
use crate::hardware::disks;
use crate::host::images::images_outcome;
use crate::snapshot::Snapshot;

const OLD: (&str, &str) = ("4.12.85", include_str!("agents/4.12.jsonl"));
const NEW: (&str, &str) = ("4.20.4", include_str!("agents/4.20.jsonl"));

fn replies(lines: &str) -> Vec<StepReply> {
    let lines = lines.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// A cluster of the release, whose only host has sent all replies.
fn answered((version, lines): (&str, &str)) -> Snapshot {
    let policy = InstallationPolicy::default();
    let mut cluster = fixtures::cluster(3);
    version.clone_into(&mut cluster.openshift_version);
    cluster.vip_dhcp_allocation = Some(true);
    cluster.machine_networks = vec![MachineNetwork {
        cluster_id: Some(cluster.id),
        cidr: "192.168.122.0/24".to_owned(),
    }];
    let mut snapshot = Snapshot::new(cluster, vec![fixtures::discovering(0)]);
    snapshot.hosts[0].record.role = Some(HostRole::Master);
    for reply in replies(lines) {
        let cluster = snapshot.cluster.clone();
        let host = &mut snapshot.hosts[0];
        let mut checked = CheckedReply::new(reply.clone()).unwrap();
        let accepted = accept(host, Some(&cluster), &mut checked, &policy, now());
        let accepted = accepted.unwrap_or_else(|error| panic!("{version} {reply:?}: {error}"));
        if let Some(leased) = accepted.leased {
            leased.store(&mut snapshot);
        }
        store_vips(&mut snapshot.cluster, &accepted.vips);
    }
    refresh::cluster(&mut snapshot, &policy, now());
    snapshot
}

/// Statuses of the host's validations by id.
fn verdicts(snapshot: &Snapshot) -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    struct Entry {
        id: String,
        status: String,
    }
    let text = snapshot.hosts[0].record.validations_info.text();
    let groups: BTreeMap<String, Vec<Entry>> = serde_json::from_str(&text).unwrap();
    let entries = groups.into_values().flatten();
    entries.map(|entry| (entry.id, entry.status)).collect()
}

fn state(snapshot: &Snapshot) -> Value {
    let host = &snapshot.hosts[0];
    let record = &host.record;
    json!({
        "name": host.name(),
        "status": record.status,
        "inventory_error": record.inventory_error,
        "disk": [record.installation_disk_id, record.installation_disk_path],
        "disk_speed": format!("{:?}", disks::speed(host)),
        "images": format!("{:?}", images_outcome(record)),
        "vips": [snapshot.cluster.api_vips[0].ip, snapshot.cluster.ingress_vips[0].ip],
    })
}

/// Answers that are stored as they came.
fn stored(snapshot: &Snapshot) -> [String; 4] {
    let record = &snapshot.hosts[0].record;
    [
        record.ntp_sources.clone(),
        record.free_addresses.text(),
        record.tang_connectivity.clone(),
        record.api_vip_connectivity.clone(),
    ]
}

#[test]
fn hosts_of_both_releases_reach_the_same_state() {
    let (old, new) = (answered(OLD), answered(NEW));
    for snapshot in [&old, &new] {
        let expected = json!({
            "name": "vm-1",
            "status": "insufficient",
            "inventory_error": "",
            "disk": ["/dev/disk/by-path/pci-0000:04:00.0", "/dev/vda"],
            "disk_speed": "Measured(9)",
            "images": "Good",
            "vips": ["192.168.122.100", "192.168.122.101"],
        });
        assert_eq!(state(snapshot), expected);
        assert!(stored(snapshot).iter().all(|text| text.len() > 2));
    }
    assert_eq!(stored(&old), stored(&new));
    assert_eq!(old.hosts[0].reaches(), new.hosts[0].reaches());

    let (old, new) = (verdicts(&old), verdicts(&new));
    assert_eq!(old, new);
    for id in [
        "has-inventory",
        "has-min-valid-disks",
        "ntp-synced",
        "dns-wildcard-not-configured",
        "sufficient-installation-disk-speed",
        "container-images-available",
    ] {
        assert_eq!(new[id], "success", "{id}");
    }
}

/// Agents of all releases refuse proxies of `https://`.
#[test]
fn a_refused_installation_has_the_reason_of_the_agent() {
    for (version, lines) in [OLD, NEW] {
        let mut host = fixtures::host(0, HostRole::Master, 1);
        host.record.status = HostStatus::Installing;
        let failed =
            |reply: &StepReply| reply.step_type == Some(StepType::Install) && reply.exit_code != 0;
        let reply = replies(lines).into_iter().find(failed).unwrap();
        let mut reply = CheckedReply::new(reply).unwrap();
        let cluster = fixtures::cluster(3);
        let policy = InstallationPolicy::default();
        accept(&mut host, Some(&cluster), &mut reply, &policy, now()).unwrap();
        assert_eq!(host.record.status, HostStatus::Error, "{version}");
        let info = &host.record.status_info;
        assert!(info.contains("The URL scheme must be http"), "{info}");
    }
}
