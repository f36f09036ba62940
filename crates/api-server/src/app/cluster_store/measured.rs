//! Measurements of a committed change, from the difference that it makes.

use std::collections::BTreeMap;

use model::cluster::{Cluster, ClusterStatus};
use model::host::{Host, HostProgressInfo, HostStage};
use model::ids::HostId;
use model::inventory::DiskInfo;
use model::time::{DateTime, Timestamp};
use rules::HostState;
use rules::NewEvent;
use rules::Snapshot;
use rules::host::images::image_statuses;
use rules::host::metric_events;
use rules::host::metric_events::HARDWARE;
use serde::Deserialize;

use super::{ClusterTransaction, StoredSnapshot};
use crate::measurements::{
    CLUSTER_VALIDATION_CHANGED, CLUSTER_VALIDATION_FAILED, DISK_SYNC, HOST_CORES, HOST_DISK,
    HOST_NIC, HOST_RAM, HOST_VALIDATION_CHANGED, HOST_VALIDATION_FAILED, HOSTS, IMAGE_PULL,
    INSTALLATION_SECONDS, INSTALLATION_STARTED, Measurement, PHASE_SECONDS,
};

/// Label of an image that the server did not ask for: agents may name any.
const OTHER_IMAGE: &str = "other";

/// Measurements of a change, to be recorded after its commit.
pub(super) fn of_change(before: &StoredSnapshot, change: &ClusterTransaction) -> Vec<Measurement> {
    let mut found = Vec::new();
    let (old, new) = (&before.snapshot, &change.snapshot);
    installation(&old.cluster, &new.cluster, change.now, &mut found);
    let is_requested = |image: &str| {
        image == old.components.installer
            || image == new.cluster.ocp_release_image
            || before.release.holds(image)
    };
    for (old, new) in changed_hosts(old, new) {
        let ended = ended(&change.events, new.record.id);
        stage(old, new, ended, change.now, &mut found);
        disks(&old.record, &new.record, &mut found);
        images(&old.record, &new.record, is_requested, &mut found);
    }
    found.extend(change.events.iter().filter_map(failed_validation));
    if change.side_writes.delete_cluster {
        deletion(old, &mut found);
    }
    found
}

/// Hosts before and after the change. Their order only differs where hosts join or leave, which changes no installation.
fn changed_hosts<'a>(
    old: &'a Snapshot,
    new: &'a Snapshot,
) -> impl Iterator<Item = (&'a HostState, &'a HostState)> {
    let count = old.hosts.len().min(new.hosts.len());
    let is_changed = move |at: &usize| !new.hosts.is_shared(*at, &old.hosts, *at);
    let pairs = (0..count).filter(is_changed);
    let pairs = pairs.map(move |at| (&old.hosts[at], &new.hosts[at]));
    pairs.filter(|(old, new)| old.record.id == new.record.id)
}

/// Source: assisted-service, internal/cluster/transition.go, PostPrepareForInstallation; cluster.go, CompleteInstallation.
fn installation(old: &Cluster, new: &Cluster, now: Timestamp, found: &mut Vec<Measurement>) {
    if old.status == new.status {
        return;
    }
    match new.status {
        ClusterStatus::Installing if old.status == ClusterStatus::PreparingForInstallation => {
            found.push(INSTALLATION_STARTED.count(&[]));
        }
        ClusterStatus::Installed | ClusterStatus::Error | ClusterStatus::Cancelled => {
            let seconds = seconds_since(new.install_started_at, now);
            found.push(INSTALLATION_SECONDS.value(seconds, &[new.status.as_str()]));
        }
        _ => {}
    }
}

/// Last stage of a host whose installation ended, or Failed: a failed host keeps the stage it was in.
fn ended(events: &[NewEvent], id: HostId) -> Option<HostStage> {
    let mut events = events.iter();
    let event = events.find(|event| event.name == HARDWARE && event.host_id == Some(id))?;
    event.props.get("host_result")?.as_str()?.parse().ok()
}

/// Source: assisted-service, internal/metrics/metricsManager.go, ReportHostInstallationMetrics.
fn stage(
    old: &HostState,
    new: &HostState,
    ended: Option<HostStage>,
    now: Timestamp,
    found: &mut Vec<Measurement>,
) {
    let of = |host: &HostState| host.record.progress.clone().unwrap_or_default();
    let (old, progress): (HostProgressInfo, HostProgressInfo) = (of(old), of(new));
    if let Some(result) = ended {
        hardware(new, result.as_str(), found);
    }
    let has_failed = ended == Some(HostStage::Failed);
    if progress.current_stage.is_none()
        || (old.current_stage == progress.current_stage && !has_failed)
    {
        return;
    }
    if let Some(phase) = old.current_stage {
        let result = if has_failed {
            HostStage::Failed
        } else {
            HostStage::Done
        };
        let seconds = seconds_since(old.stage_started_at, now);
        found.push(PHASE_SECONDS.value(seconds, &[phase.as_str(), result.as_str()]));
    }
}

/// The machine of a host whose installation ended.
fn hardware(host: &HostState, result: &str, found: &mut Vec<Measurement>) {
    let role = metric_events::role(&host.record);
    let labels = [role, result];
    found.push(HOSTS.count(&labels));
    let Some(inventory) = &host.inventory else {
        return;
    };
    if let Some(cpu) = &inventory.cpu {
        found.push(HOST_CORES.value(float(cpu.count), &labels));
    }
    if let Some(memory) = &inventory.memory {
        found.push(HOST_RAM.value(gib(memory.physical_bytes), &labels));
    }
    for disk in &inventory.disks {
        let kind = disk.known_type().as_str();
        found.push(HOST_DISK.value(gib(disk.size_bytes), &[kind, role, result]));
    }
    for interface in &inventory.interfaces {
        found.push(HOST_NIC.value(float(interface.speed_mbps) / 1e3, &labels));
    }
}

/// New results of speed tests.
fn disks(old: &Host, new: &Host, found: &mut Vec<Measurement>) {
    if old.disks_info == new.disks_info {
        return;
    }
    let parse = |text: &str| -> BTreeMap<String, DiskInfo> {
        serde_json::from_str(text).unwrap_or_default()
    };
    let before = parse(&old.disks_info);
    let results = parse(&new.disks_info).into_iter();
    let results = results.filter(|(path, disk)| before.get(path) != Some(disk));
    let speeds = results.filter_map(|(_, disk)| disk.disk_speed);
    for speed in speeds.filter(|speed| speed.tested && speed.exit_code == 0) {
        found.push(DISK_SYNC.value(float(speed.speed_ms), &[]));
    }
}

/// First results of images.
fn images(
    old: &Host,
    new: &Host,
    is_requested: impl Fn(&str) -> bool,
    found: &mut Vec<Measurement>,
) {
    if old.images_status == new.images_status {
        return;
    }
    let before = image_statuses(old);
    let first = image_statuses(new).into_iter();
    for (name, image) in first.filter(|(name, _)| !before.contains_key(name)) {
        let name = if is_requested(&name) {
            &name
        } else {
            OTHER_IMAGE
        };
        let result = image.result.unwrap_or_default();
        found.push(IMAGE_PULL.value(image.download_rate, &[name, result.as_str()]));
    }
}

fn failed_validation(event: &NewEvent) -> Option<Measurement> {
    let metric = match event.name {
        "host_validation_failed" => HOST_VALIDATION_CHANGED,
        "cluster_validation_failed" => CLUSTER_VALIDATION_CHANGED,
        _ => return None,
    };
    let was_success = event.props.get("previous_status")? == "success";
    let id = event.props.get("validation_id")?.as_str()?;
    was_success.then(|| metric.count(&[id]))
}

/// Source: assisted-service, internal/cluster/cluster.go, DeregisterCluster.
fn deletion(snapshot: &Snapshot, found: &mut Vec<Measurement>) {
    for id in failing(&snapshot.cluster.validations_info) {
        found.push(CLUSTER_VALIDATION_FAILED.count(&[&id]));
    }
    for host in &snapshot.hosts {
        for id in failing(&host.record.validations_info.text()) {
            found.push(HOST_VALIDATION_FAILED.count(&[&id]));
        }
    }
}

/// Ids of failing validations in a stored text.
fn failing(validations: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct StoredValidation {
        id: String,
        status: String,
    }
    let by_category: BTreeMap<String, Vec<StoredValidation>> =
        serde_json::from_str(validations).unwrap_or_default();
    let all = by_category.into_values().flatten();
    all.filter(|one| one.status == "failure")
        .map(|one| one.id)
        .collect()
}

fn seconds_since(start: DateTime, now: Timestamp) -> f64 {
    let elapsed = start.0.map(|start| now - start);
    elapsed.map_or(0.0, |elapsed| elapsed.as_seconds_f64().max(0.0))
}

/// As a float; counts of machines are far below the integers that it cannot hold.
#[expect(
    clippy::cast_precision_loss,
    reason = "a histogram's values are floats"
)]
fn float(count: i64) -> f64 {
    count.max(0) as f64
}

fn gib(bytes: i64) -> f64 {
    float(bytes >> 30)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::host::HostRole;
    use serde_json::{Value, json};

    fn text(measurements: &[Measurement]) -> Vec<String> {
        let one = |one: &Measurement| {
            let labels: Vec<&str> = one.labels.iter().map(|(_, value)| value.as_str()).collect();
            let name = one
                .metric
                .name
                .trim_start_matches("service_assisted_installer_");
            format!("{name} {} {}", labels.join(","), one.value)
        };
        measurements.iter().map(one).collect()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn installations_are_counted_when_they_start_and_measured_when_they_end() {
        use ClusterStatus::{
            Cancelled, Error, Finalizing, Installed, Installing, InstallingPendingUserAction,
            PreparingForInstallation, Ready,
        };
        for (from, to, expected) in [
            (
                PreparingForInstallation,
                Installing,
                vec!["cluster_installation_started  1"],
            ),
            (InstallingPendingUserAction, Installing, vec![]),
            (PreparingForInstallation, Ready, vec![]),
            (Installing, Finalizing, vec![]),
            (
                Finalizing,
                Installed,
                vec!["cluster_installation_seconds installed 90"],
            ),
            (
                Installing,
                Error,
                vec!["cluster_installation_seconds error 90"],
            ),
            (
                Installing,
                Cancelled,
                vec!["cluster_installation_seconds cancelled 90"],
            ),
            (Installed, Installed, vec![]),
        ] {
            let cluster = |status| Cluster {
                status,
                install_started_at: at(10).into(),
                ..Cluster::default()
            };
            let mut found = Vec::new();
            installation(&cluster(from), &cluster(to), at(100), &mut found);
            assert_eq!(text(&found), expected, "{from:?} {to:?}");
        }
    }

    fn host(stage: Option<HostStage>) -> HostState {
        let inventory = json!({
            "cpu": { "count": 8 }, "memory": { "physical_bytes": 17_179_869_184_i64 },
            "disks": [{ "drive_type": "SSD", "size_bytes": 128_849_018_880_i64 }, { "size_bytes": 1 }],
            "interfaces": [{ "speed_mbps": 25_000 }],
        });
        HostState::new(Host {
            role: Some(HostRole::Worker),
            inventory: inventory.to_string().into(),
            progress: stage.map(|stage| HostProgressInfo {
                current_stage: Some(stage),
                stage_started_at: at(10).into(),
                ..HostProgressInfo::default()
            }),
            ..Host::default()
        })
    }

    #[test]
    fn stages_are_measured_when_hosts_leave_them() {
        let end = |old, new: &HostState, ended| {
            let mut found = Vec::new();
            stage(&host(old), new, ended, at(40), &mut found);
            text(&found)
        };
        let of = |old, new: &HostState| end(old, new, None);
        let installing = host(Some(HostStage::Installing));
        assert!(of(None, &installing).is_empty());
        assert!(of(Some(HostStage::Installing), &installing).is_empty());
        assert!(
            of(Some(HostStage::Installing), &host(None)).is_empty(),
            "reset"
        );
        assert_eq!(
            of(Some(HostStage::StartingInstallation), &installing),
            ["host_installation_phase_seconds Starting installation,Done 30"]
        );
        assert_eq!(
            end(
                Some(HostStage::Joined),
                &host(Some(HostStage::Done)),
                Some(HostStage::Done)
            ),
            [
                "cluster_hosts worker,Done 1",
                "cluster_host_cores worker,Done 8",
                "cluster_host_ram_gb worker,Done 16",
                "cluster_host_disk_gb SSD,worker,Done 120",
                "cluster_host_disk_gb Unknown,worker,Done 0",
                "cluster_host_nic_gb worker,Done 25",
                "host_installation_phase_seconds Joined,Done 30",
            ]
        );
        let mut failed = host(Some(HostStage::Installing));
        failed.record.bootstrap = true;
        let found = end(
            Some(HostStage::Installing),
            &failed,
            Some(HostStage::Failed),
        );
        assert_eq!(found[0], "cluster_hosts bootstrap,Failed 1");
        assert_eq!(
            found.last().unwrap(),
            "host_installation_phase_seconds Installing,Failed 30"
        );
    }

    #[test]
    fn images_and_disks_are_measured_once() {
        let with = |disks: &Value, images: &Value| Host {
            disks_info: disks.to_string(),
            images_status: images.to_string(),
            ..Host::default()
        };
        let image =
            |name, rate| json!({ "name": name, "result": "success", "download_rate": rate });
        let disk = |ms, code| json!({ "path": "/dev/sda", "disk_speed": { "tested": true, "exit_code": code, "speed_ms": ms } });
        let old = with(
            &json!({ "a": disk(3, 0) }),
            &json!({ "ours": image("ours", 5.0) }),
        );
        let new = with(
            &json!({ "a": disk(3, 0), "b": disk(7, 0), "c": disk(9, 1) }),
            &json!({ "ours": image("ours", 6.0), "asked": image("asked", 7.5), "any": image("any", 8.0) }),
        );
        let mut found = Vec::new();
        disks(&old, &new, &mut found);
        images(&old, &new, |name| name == "asked", &mut found);
        assert_eq!(
            text(&found),
            [
                "cluster_host_disk_sync_duration_ms  7",
                "cluster_image_pull_status other,success 8",
                "cluster_image_pull_status asked,success 7.5",
            ]
        );
        found.clear();
        disks(&new, &new, &mut found);
        images(&new, &new, |_| true, &mut found);
        assert!(found.is_empty());
    }

    #[test]
    fn validations_are_counted_after_a_success_and_when_a_cluster_is_deleted() {
        let event = |name, before: &str| {
            NewEvent::new(name, model::events::EventSeverity::Warning, "")
                .prop("validation_id", "connected")
                .prop("previous_status", before)
        };
        let found = failed_validation(&event("host_validation_failed", "success"));
        let expected = "host_validation_failed_after_success_before_installation connected 1";
        assert_eq!(text(&[found.unwrap()]), [expected]);
        assert_eq!(
            failed_validation(&event("host_validation_failed", "pending")),
            None
        );
        assert_eq!(
            failed_validation(&event("host_validation_fixed", "success")),
            None
        );
        let found = failed_validation(&event("cluster_validation_failed", "success"));
        assert_eq!(found.unwrap().metric, CLUSTER_VALIDATION_CHANGED);

        let validations = |id| {
            let entry = |id, status| json!({ "id": id, "status": status, "message": "" });
            json!({ "network": [entry(id, "failure"), entry("x", "success"), entry("y", "pending")] }).to_string()
        };
        let cluster = Cluster {
            validations_info: validations("ntp-server-configured"),
            ..Cluster::default()
        };
        let mut member = host(None);
        member.record.validations_info = validations("connected").into();
        let mut found = Vec::new();
        deletion(&Snapshot::new(cluster, vec![member]), &mut found);
        assert_eq!(
            text(&found),
            [
                "cluster_validation_is_in_failed_status_on_cluster_deletion ntp-server-configured 1",
                "host_validation_is_in_failed_status_on_cluster_deletion connected 1",
            ]
        );
    }
}
