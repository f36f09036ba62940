//! Later results of checks of disks and images.

use model::cluster::ClusterStatus as C;
use model::host::HostStatus as H;
use model::steps::StepType;
use serde_json::{Value, json};

use super::{answer, ready, refreshed};
use crate::InstallationPolicy;
use crate::cluster;
use crate::fixtures::{self, now};

#[test]
fn a_failed_image_check_keeps_size_and_rate() {
    let mut snapshot = ready(3, 2);
    let image = |more: Value| {
        let mut image = json!({"name": "quay.example/release"});
        image
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "images": [image] })
    };
    let measured = json!({"size_bytes": 4e8, "time": 4, "download_rate": 100, "result": "success"});
    let again = json!({"size_bytes": 1, "time": 4, "download_rate": 1, "result": "failure"});
    for report in [measured, json!({"result": "success"}), again] {
        answer(
            &mut snapshot,
            1,
            StepType::ContainerImageAvailability,
            0,
            &image(report),
        );
    }
    let status: Value = serde_json::from_str(&snapshot.hosts[1].record.images_status).unwrap();
    let status = &status["quay.example/release"];
    assert_eq!(status["result"], "failure");
    assert_eq!(
        (
            status["size_bytes"].as_f64(),
            status["download_rate"].as_f64()
        ),
        (Some(4e8), Some(100.0))
    );
}

#[test]
fn a_disk_that_fails_after_the_preparation_stops_the_installation() {
    let mut snapshot = ready(3, 2);
    let policy = InstallationPolicy::default();
    cluster::apply(&mut snapshot, cluster::Trigger::Prepare, &policy, now()).unwrap();
    let speed = json!({"path": "/dev/disk/by-id/wwn-0x1", "io_sync_duration": 2});
    let images = json!({"images": [{"name": "release", "size_bytes": 4e8, "time": 4, "download_rate": 100, "result": "success"}]});
    answer(
        &mut snapshot,
        0,
        StepType::InstallationDiskSpeedCheck,
        0,
        &speed,
    );
    answer(
        &mut snapshot,
        0,
        StepType::ContainerImageAvailability,
        0,
        &images,
    );
    refreshed(&mut snapshot, now());
    assert_eq!(snapshot.hosts[0].record.status, H::PreparingSuccessful);
    answer(
        &mut snapshot,
        0,
        StepType::InstallationDiskSpeedCheck,
        -1,
        &speed,
    );
    refreshed(&mut snapshot, now());
    assert_eq!(snapshot.hosts[0].record.status, H::Insufficient);
    assert_eq!(snapshot.cluster.status, C::Insufficient);
}

#[test]
fn a_disk_without_path_is_known_by_its_name() {
    let mut snapshot = fixtures::snapshot(3, 0);
    let mut inventory = fixtures::inventory(0);
    inventory.disks[0].path.clear();
    snapshot.hosts[0].record.inventory = serde_json::to_string(&inventory).unwrap().into();
    let record = snapshot.hosts[0].record.clone();
    snapshot.hosts[0] = crate::HostState::new(record);
    refreshed(&mut snapshot, now());
    assert_eq!(snapshot.hosts[0].record.installation_disk_path, "/dev/sda");
}
