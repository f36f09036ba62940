//! Tests of whole installations: from the first registration to installed, and their failures.

mod checks;
mod retry;

use model::cluster::{ClusterStatus as C, LastInstallationPreparation, PreparationStatus};
use model::host::{HostCreateParams, HostRole, HostStage, HostStatus as H};
use model::infra_env::InfraEnv;
use model::operators::{MonitoredOperator, OperatorStatus};
use model::steps::{StepReply, StepType};
use model::time::Timestamp;
use serde_json::{Value, json};

use crate::HostState;
use crate::InstallationPolicy;
use crate::NewEvent;
use crate::cluster;
use crate::cluster::refresh;
use crate::fixtures::{self, later, now};
use crate::host;
use crate::snapshot::Snapshot;
use crate::steps::replies::{self, AcceptedReply, CheckedReply};

fn refreshed(snapshot: &mut Snapshot, at: Timestamp) -> Vec<NewEvent> {
    for host in &mut snapshot.hosts {
        host.record.checked_in_at = at.into();
        host.record.timestamp = at.timestamp();
    }
    refresh::cluster(snapshot, &InstallationPolicy::default(), at)
}

fn statuses(snapshot: &Snapshot) -> Vec<H> {
    snapshot
        .hosts
        .iter()
        .map(|host| host.record.status)
        .collect()
}

fn answer(
    snapshot: &mut Snapshot,
    at: usize,
    step: StepType,
    exit_code: i64,
    output: &Value,
) -> AcceptedReply {
    let reply = StepReply {
        step_type: Some(step),
        exit_code,
        output: output.to_string(),
        ..StepReply::default()
    };
    let cluster = snapshot.cluster.clone();
    replies::accept(
        &mut snapshot.hosts[at],
        Some(&cluster),
        &mut CheckedReply::new(reply).unwrap(),
        &InstallationPolicy::default(),
        now(),
    )
    .unwrap()
}

fn ready(masters: usize, workers: usize) -> Snapshot {
    let mut snapshot = fixtures::snapshot(masters, workers);
    refreshed(&mut snapshot, now());
    assert_eq!(
        snapshot.cluster.status,
        C::Ready,
        "{}",
        snapshot.cluster.status_info
    );
    snapshot
}

/// Requested, with disks measured, images pulled and files made.
fn installing(masters: usize, workers: usize) -> Snapshot {
    let mut snapshot = ready(masters, workers);
    cluster::apply(
        &mut snapshot,
        cluster::Trigger::Prepare,
        &InstallationPolicy::default(),
        now(),
    )
    .unwrap();
    for at in 0..snapshot.hosts.len() {
        answer(
            &mut snapshot,
            at,
            StepType::InstallationDiskSpeedCheck,
            0,
            &json!({"path": "/dev/disk/by-id/wwn-0x1", "io_sync_duration": 2}),
        );
        answer(
            &mut snapshot,
            at,
            StepType::ContainerImageAvailability,
            0,
            &json!({"images": [{"name": "release", "size_bytes": 4e8, "time": 4, "download_rate": 100, "result": "success"}]}),
        );
    }
    refreshed(&mut snapshot, now());
    assert!(
        statuses(&snapshot)
            .iter()
            .all(|one| *one == H::PreparingSuccessful)
    );
    snapshot.cluster.last_installation_preparation.status = Some(PreparationStatus::Success);
    refreshed(&mut snapshot, now());
    assert_eq!(snapshot.cluster.status, C::Installing);
    assert!(statuses(&snapshot).iter().all(|one| *one == H::Installing));
    snapshot
}

fn report(snapshot: &mut Snapshot, at: usize, stage: HostStage, moment: Timestamp) {
    let cluster = snapshot.cluster.clone();
    let trigger = host::Trigger::Progress {
        stage,
        info: String::new(),
    };
    host::apply(
        &mut snapshot.hosts[at],
        Some(&cluster),
        trigger,
        &InstallationPolicy::default(),
        moment,
    )
    .unwrap();
}

fn finish(snapshot: &mut Snapshot, at: usize) {
    for stage in crate::host::progress::stages(&snapshot.hosts[at].record, &snapshot.cluster) {
        report(snapshot, at, *stage, now());
    }
}

#[test]
fn three_and_two_become_installed() {
    let mut snapshot = installing(3, 2);
    assert!(
        snapshot.hosts[2].record.bootstrap,
        "the last master is the bootstrap host"
    );
    let progress = snapshot.cluster.progress.clone().unwrap();
    assert_eq!(progress.total_percentage, 10);
    for at in 0..5 {
        finish(&mut snapshot, at);
        refreshed(&mut snapshot, now());
    }
    assert_eq!(snapshot.cluster.status, C::Finalizing);
    assert_eq!(
        snapshot.cluster.progress.clone().unwrap().total_percentage,
        80
    );
    snapshot.cluster.monitored_operators = vec![MonitoredOperator {
        name: "console".to_owned(),
        status: Some(OperatorStatus::Available),
        ..MonitoredOperator::default()
    }];
    refreshed(&mut snapshot, now());
    assert_eq!(
        snapshot.cluster.status,
        C::Finalizing,
        "the kubeconfig is not there yet"
    );
    snapshot.files.kubeconfig = true;
    let events = refreshed(&mut snapshot, later(1));
    assert_eq!(snapshot.cluster.status, C::Installed);
    assert_eq!(snapshot.cluster.install_completed_at.0, Some(later(1)));
    assert_eq!(
        snapshot.cluster.progress.clone().unwrap().total_percentage,
        100
    );
    assert!(
        events
            .iter()
            .any(|event| event.name == "cluster_installation_completed")
    );
}

#[test]
fn a_single_node_becomes_installed() {
    let mut snapshot = installing(1, 0);
    assert_eq!(snapshot.cluster.api_vips[0].ip, "10.0.0.10");
    finish(&mut snapshot, 0);
    snapshot.files.kubeconfig = true;
    refreshed(&mut snapshot, now());
    assert_eq!(snapshot.cluster.status, C::Installed);
}

#[test]
fn five_fresh_hosts_become_known_and_get_roles() {
    let mut snapshot = Snapshot::new(fixtures::cluster(3), Vec::new());
    refreshed(&mut snapshot, now());
    let infra_env = InfraEnv::default();
    for at in 0..5 {
        let params = HostCreateParams {
            host_id: fixtures::host_id(at),
            discovery_agent_version: String::new(),
        };
        let host = host::new_host(&params, &infra_env, Some(&snapshot.cluster), now()).unwrap();
        snapshot.hosts.push(host);
    }
    refreshed(&mut snapshot, now());
    assert_eq!(statuses(&snapshot), [H::Discovering; 5]);
    for at in 0..5 {
        let inventory = serde_json::to_value(fixtures::inventory(at)).unwrap();
        answer(&mut snapshot, at, StepType::Inventory, 0, &inventory);
    }
    refreshed(&mut snapshot, now());
    assert_eq!(statuses(&snapshot), [H::Insufficient; 5]);
    let info = &snapshot.hosts[0].record.status_info;
    assert!(
        info.starts_with("Waiting for the host"),
        "only pending inputs are named: {info}"
    );
    for at in 0..5 {
        let domains = json!({"resolutions": [
            {"domain_name": "validateNoWildcardDNS.demo.example.com"},
            {"domain_name": "validateNoWildcardDNS.demo.example.com."}]});
        answer(&mut snapshot, at, StepType::DomainResolution, 0, &domains);
        let reached: Value = serde_json::from_str(&fixtures::connectivity(at, 5)).unwrap();
        answer(&mut snapshot, at, StepType::ConnectivityCheck, 0, &reached);
    }
    refreshed(&mut snapshot, now());
    assert_eq!(
        statuses(&snapshot),
        [H::Known; 5],
        "{}",
        snapshot.hosts[0].record.status_info
    );
    assert_eq!(
        snapshot.cluster.status,
        C::Ready,
        "{}",
        snapshot.cluster.status_info
    );
    cluster::apply(
        &mut snapshot,
        cluster::Trigger::Prepare,
        &InstallationPolicy::default(),
        now(),
    )
    .unwrap();
    let masters = snapshot
        .hosts
        .iter()
        .filter(|host| host.record.role == Some(HostRole::Master));
    assert_eq!(masters.count(), 3);
    assert_eq!(statuses(&snapshot), [H::PreparingForInstallation; 5]);
}

#[test]
fn too_little_memory_is_reported_with_its_numbers() {
    let mut snapshot = fixtures::snapshot(3, 2);
    let mut inventory = fixtures::inventory(4);
    let memory = inventory.memory.as_mut().unwrap();
    memory.usable_bytes = 4 << 30;
    memory.physical_bytes = 4 << 30;
    answer(
        &mut snapshot,
        4,
        StepType::Inventory,
        0,
        &serde_json::to_value(&inventory).unwrap(),
    );
    refreshed(&mut snapshot, now());
    let host = &snapshot.hosts[4].record;
    assert_eq!(host.status, H::Insufficient);
    assert!(
        host.status_info
            .contains("the host has 4096 MiB, needs 8192 MiB for worker"),
        "{}",
        host.status_info
    );
    let info: Value = host.validations_info.parse().unwrap();
    let entries = info["hardware"].as_array().unwrap();
    let entry = entries
        .iter()
        .find(|entry| entry["id"] == "has-min-memory")
        .unwrap();
    assert_eq!(entry["status"], "failure");
    assert_ne!(snapshot.cluster.status, C::Ready);
}

#[test]
fn operator_validations_of_the_page_are_sent() {
    let snapshot = ready(3, 2);
    let texts = [
        snapshot.cluster.validations_info.clone(),
        snapshot.hosts[0].record.validations_info.text(),
    ];
    for text in texts {
        let info: Value = serde_json::from_str(&text).unwrap();
        let operators = info["operators"].as_array().unwrap();
        for name in [
            "lso",
            "odf",
            "lvm",
            "cnv",
            "nvidia-gpu",
            "openshift-ai",
            "osc",
            "amd-gpu",
        ] {
            let id = format!("{name}-requirements-satisfied");
            let entry = operators
                .iter()
                .find(|entry| entry["id"] == id.as_str())
                .unwrap();
            assert_eq!(entry["status"], "success");
        }
        for entries in info.as_object().unwrap().values() {
            for entry in entries.as_array().unwrap() {
                assert_eq!(entry["status"], "success", "{entry}");
            }
        }
    }
}

#[test]
fn a_failed_preparation_can_be_retried() {
    let mut snapshot = ready(3, 2);
    cluster::apply(
        &mut snapshot,
        cluster::Trigger::Prepare,
        &InstallationPolicy::default(),
        now(),
    )
    .unwrap();
    snapshot.cluster.last_installation_preparation = LastInstallationPreparation {
        status: Some(PreparationStatus::Failed),
        reason: "the registry does not answer".to_owned(),
    };
    refreshed(&mut snapshot, now());
    assert_eq!(snapshot.cluster.status, C::Ready);
    assert!(
        snapshot
            .cluster
            .status_info
            .contains("the registry does not answer")
    );
    assert_eq!(statuses(&snapshot), [H::Known; 5]);
    refreshed(&mut snapshot, later(1));
    assert!(
        snapshot
            .cluster
            .status_info
            .contains("the registry does not answer")
    );
    cluster::apply(
        &mut snapshot,
        cluster::Trigger::Prepare,
        &InstallationPolicy::default(),
        now(),
    )
    .unwrap();
    assert_eq!(snapshot.cluster.status, C::PreparingForInstallation);
}

#[test]
fn images_that_cannot_be_pulled_end_the_preparation() {
    let mut snapshot = ready(3, 2);
    cluster::apply(
        &mut snapshot,
        cluster::Trigger::Prepare,
        &InstallationPolicy::default(),
        now(),
    )
    .unwrap();
    let failed = json!({"images": [{"name": "quay.example/release", "result": "failure"}]});
    answer(
        &mut snapshot,
        1,
        StepType::ContainerImageAvailability,
        2,
        &failed,
    );
    let events = refreshed(&mut snapshot, now());
    assert!(events.iter().any(|event| {
        event
            .props
            .get("new_status")
            .is_some_and(|to| to == "preparing-failed")
    }));
    assert_eq!(snapshot.cluster.status, C::Ready);
    assert!(
        snapshot
            .cluster
            .status_info
            .contains("quay.example/release"),
        "{}",
        snapshot.cluster.status_info
    );
    assert_eq!(statuses(&snapshot), [H::Known; 5]);
    cluster::apply(
        &mut snapshot,
        cluster::Trigger::Prepare,
        &InstallationPolicy::default(),
        now(),
    )
    .unwrap();
    assert_eq!(
        snapshot.hosts[1].record.images_status, "",
        "failed images are tried again"
    );
}

#[test]
fn missing_results_time_out_the_preparation() {
    let mut snapshot = ready(3, 2);
    cluster::apply(
        &mut snapshot,
        cluster::Trigger::Prepare,
        &InstallationPolicy::default(),
        now(),
    )
    .unwrap();
    refreshed(&mut snapshot, later(8));
    assert_eq!(snapshot.cluster.status, C::PreparingForInstallation);
    refreshed(&mut snapshot, later(9));
    assert_eq!(snapshot.cluster.status, C::Ready);
    assert!(
        snapshot
            .cluster
            .status_info
            .contains("no result of the speed"),
        "{}",
        snapshot.cluster.status_info
    );
}

#[test]
fn hosts_without_heartbeats_disconnect_and_reconnect() {
    let mut snapshot = ready(3, 2);
    refresh::cluster(&mut snapshot, &InstallationPolicy::default(), later(4));
    assert_eq!(statuses(&snapshot), [H::Disconnected; 5]);
    assert_eq!(snapshot.cluster.status, C::Insufficient);
    refreshed(&mut snapshot, later(5));
    assert_eq!(statuses(&snapshot), [H::Known; 5]);
}

#[test]
fn a_heartbeat_timeout_while_installing_fails_the_cluster() {
    let mut snapshot = installing(3, 2);
    report(&mut snapshot, 0, HostStage::Installing, now());
    for host in snapshot.hosts.iter_mut().skip(1) {
        host.record.checked_in_at = later(5).into();
    }
    let events = refresh::cluster(&mut snapshot, &InstallationPolicy::default(), later(5));
    assert_eq!(snapshot.hosts[0].record.status, H::Error);
    assert_eq!(snapshot.cluster.status, C::Error);
    assert!(
        events
            .iter()
            .any(|event| event.name == "cluster_installation_failed")
    );
    assert_eq!(
        statuses(&snapshot),
        [H::Error; 5],
        "the others fail with their cluster"
    );
}

#[test]
fn a_wrong_boot_order_waits_for_the_user() {
    let mut snapshot = installing(3, 2);
    report(&mut snapshot, 0, HostStage::Rebooting, now());
    let again = || host::Trigger::Register {
        agent_version: String::new(),
    };
    let cluster = snapshot.cluster.clone();
    let policy = InstallationPolicy::default();
    host::apply(
        &mut snapshot.hosts[0],
        Some(&cluster),
        again(),
        &policy,
        now(),
    )
    .unwrap();
    refreshed(&mut snapshot, now());
    assert_eq!(
        snapshot.hosts[0].record.status,
        H::InstallingPendingUserAction
    );
    assert_eq!(snapshot.cluster.status, C::InstallingPendingUserAction);
    let refused = host::apply(
        &mut snapshot.hosts[0],
        Some(&cluster),
        again(),
        &policy,
        now(),
    );
    assert!(matches!(refused, Err(model::Error::Forbidden { .. })));
    report(&mut snapshot, 0, HostStage::Configuring, now());
    refreshed(&mut snapshot, now());
    assert_eq!(snapshot.hosts[0].record.status, H::InstallingInProgress);
    assert_eq!(snapshot.cluster.status, C::Installing);
}

#[test]
fn stages_only_go_forward() {
    let mut snapshot = installing(3, 2);
    report(&mut snapshot, 0, HostStage::WritingImageToDisk, now());
    assert_eq!(
        snapshot.hosts[0]
            .record
            .progress
            .clone()
            .unwrap()
            .installation_percentage,
        37
    );
    let cluster = snapshot.cluster.clone();
    for stage in [HostStage::Installing, HostStage::WaitingForIgnition] {
        let trigger = host::Trigger::Progress {
            stage,
            info: String::new(),
        };
        let refused = host::apply(
            &mut snapshot.hosts[0],
            Some(&cluster),
            trigger,
            &InstallationPolicy::default(),
            now(),
        );
        assert!(
            matches!(refused, Err(model::Error::Conflict { .. })),
            "{stage}"
        );
    }
}

#[test]
fn an_installed_host_only_repeats_its_last_stage() {
    let mut snapshot = installing(3, 2);
    report(&mut snapshot, 0, HostStage::Done, now());
    report(&mut snapshot, 0, HostStage::Done, later(1));
    assert_eq!(snapshot.hosts[0].record.status, H::Installed);
    let cluster = snapshot.cluster.clone();
    for stage in [HostStage::Failed, HostStage::Configuring] {
        let trigger = host::Trigger::Progress {
            stage,
            info: String::new(),
        };
        let refused = host::apply(
            &mut snapshot.hosts[0],
            Some(&cluster),
            trigger,
            &InstallationPolicy::default(),
            later(2),
        );
        assert!(
            matches!(refused, Err(model::Error::Conflict { .. })),
            "{stage}: {refused:?}"
        );
    }
    assert_eq!(snapshot.hosts[0].record.status, H::Installed);
}

#[test]
fn a_stage_timeout_fails_or_is_reported() {
    for soft in [false, true] {
        let mut snapshot = installing(3, 2);
        report(&mut snapshot, 0, HostStage::WritingImageToDisk, now());
        for at in 1..5 {
            report(&mut snapshot, at, HostStage::Installing, later(20));
        }
        let policy = InstallationPolicy {
            soft_timeouts: soft,
            ..InstallationPolicy::default()
        };
        for host in &mut snapshot.hosts {
            host.record.checked_in_at = later(31).into();
        }
        let events = refresh::cluster(&mut snapshot, &policy, later(31));
        let reported = events
            .iter()
            .any(|event| event.name == "host_stage_timed_out");
        assert_eq!(reported, soft);
        let expected = if soft {
            H::InstallingInProgress
        } else {
            H::Error
        };
        assert_eq!(snapshot.hosts[0].record.status, expected);
    }
}

#[test]
fn a_reboot_timeout_waits_for_the_user() {
    let mut snapshot = installing(3, 2);
    for at in 0..5 {
        report(&mut snapshot, at, HostStage::Rebooting, now());
    }
    refreshed(&mut snapshot, later(41));
    assert_eq!(statuses(&snapshot), [H::InstallingPendingUserAction; 5]);
    assert_eq!(snapshot.cluster.status, C::InstallingPendingUserAction);
}

#[test]
fn a_spare_worker_times_out_without_failing_the_cluster() {
    let mut snapshot = installing(3, 3);
    for at in 0..5 {
        finish(&mut snapshot, at);
    }
    report(&mut snapshot, 5, HostStage::Rebooting, now());
    refreshed(&mut snapshot, later(41));
    assert_eq!(
        snapshot.hosts[5].record.status,
        H::InstallingPendingUserAction
    );
    refreshed(&mut snapshot, later(102));
    assert_eq!(snapshot.hosts[5].record.status, H::Error);
    assert_eq!(snapshot.cluster.status, C::Finalizing);
    snapshot.files.kubeconfig = true;
    refreshed(&mut snapshot, later(103));
    assert_eq!(snapshot.cluster.status, C::Installed);
    assert!(snapshot.cluster.status_info.contains("node-5"));
}

#[test]
fn cancel_and_reset_apply_to_the_hosts() {
    let mut snapshot = installing(3, 2);
    report(&mut snapshot, 0, HostStage::Installing, now());
    let policy = InstallationPolicy::default();
    let events = cluster::apply(&mut snapshot, cluster::Trigger::Cancel, &policy, now()).unwrap();
    assert_eq!(snapshot.cluster.status, C::Cancelled);
    assert_eq!(statuses(&snapshot), [H::Cancelled; 5]);
    let early = host::Trigger::Register {
        agent_version: String::new(),
    };
    let cancelled = snapshot.cluster.clone();
    let refused = host::apply(
        &mut snapshot.hosts[0],
        Some(&cancelled),
        early,
        &policy,
        now(),
    );
    assert!(
        matches!(refused, Err(model::Error::Invalid { .. })),
        "its agent comes again"
    );
    assert!(
        events
            .iter()
            .any(|event| event.name == "cluster_installation_canceled")
    );
    cluster::apply(&mut snapshot, cluster::Trigger::Reset, &policy, now()).unwrap();
    assert_eq!(snapshot.cluster.status, C::Insufficient);
    assert_eq!(statuses(&snapshot), [H::ResettingPendingUserAction; 5]);
    assert_eq!(snapshot.cluster.install_started_at.0, None);
    let cluster = snapshot.cluster.clone();
    for host in &mut snapshot.hosts {
        let trigger = host::Trigger::Register {
            agent_version: String::new(),
        };
        host::apply(host, Some(&cluster), trigger, &policy, now()).unwrap();
        assert!(
            host.record
                .role
                .is_some_and(|role| role != HostRole::AutoAssign)
        );
    }
    refreshed(&mut snapshot, now());
    assert_eq!(statuses(&snapshot), [H::Discovering; 5]);
    let refused = cluster::apply(&mut snapshot, cluster::Trigger::Cancel, &policy, now());
    assert!(matches!(refused, Err(model::Error::Conflict { .. })));
}

#[test]
fn cancel_while_preparing_returns_to_ready() {
    let mut snapshot = ready(3, 2);
    let policy = InstallationPolicy::default();
    cluster::apply(&mut snapshot, cluster::Trigger::Prepare, &policy, now()).unwrap();
    cluster::apply(&mut snapshot, cluster::Trigger::Cancel, &policy, now()).unwrap();
    assert_eq!(snapshot.cluster.status, C::Ready);
    assert_eq!(statuses(&snapshot), [H::Known; 5]);
}

#[test]
fn a_cluster_that_is_not_ready_is_refused_with_its_reasons() {
    let mut snapshot = fixtures::snapshot(3, 2);
    snapshot.cluster.base_dns_domain.clear();
    let refused = cluster::apply(
        &mut snapshot,
        cluster::Trigger::Prepare,
        &InstallationPolicy::default(),
        now(),
    );
    let Err(model::Error::Conflict { reason }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("base_dns_domain"), "{reason}");
}

#[test]
fn a_media_disconnect_lasts_until_the_next_good_reply() {
    let mut snapshot = ready(3, 2);
    answer(&mut snapshot, 0, StepType::Inventory, 256, &json!(""));
    refreshed(&mut snapshot, now());
    assert_eq!(snapshot.hosts[0].record.status, H::Disconnected);
    let inventory = serde_json::to_value(fixtures::inventory(0)).unwrap();
    answer(&mut snapshot, 0, StepType::Inventory, 0, &inventory);
    refreshed(&mut snapshot, now());
    assert_eq!(snapshot.hosts[0].record.status, H::Known);
}

#[test]
fn a_null_list_is_stored_as_empty() {
    let mut snapshot = ready(3, 2);
    for step in [StepType::FreeNetworkAddresses, StepType::VerifyVips] {
        answer(&mut snapshot, 0, step, 0, &json!(null));
    }
    assert_eq!(snapshot.hosts[0].record.free_addresses.text(), "[]");
}

#[test]
fn only_round_trips_beyond_the_limits_need_a_refresh() {
    let mut snapshot = ready(3, 2);
    let report = |rtt_ms: f64| {
        let text = fixtures::connectivity(0, 5).replace("0.3", &rtt_ms.to_string());
        serde_json::from_str(&text).unwrap()
    };
    let step = StepType::ConnectivityCheck;
    answer(&mut snapshot, 0, step, 0, &report(0.2));
    let before = snapshot.hosts[0].record.clone();
    assert!(!answer(&mut snapshot, 0, step, 0, &report(100.0)).refresh);
    assert_eq!(snapshot.hosts[0].record, before);
    assert!(answer(&mut snapshot, 0, step, 0, &report(100.1)).refresh);
    refreshed(&mut snapshot, now());
    assert_ne!(
        snapshot.hosts[0].record.validations_info,
        before.validations_info
    );
}

#[test]
fn an_installer_that_cannot_run_fails_its_host() {
    let mut snapshot = installing(3, 2);
    let cluster = snapshot.cluster.clone();
    let mut reply = StepReply {
        step_type: Some(StepType::Install),
        exit_code: 125,
        error: "the container name is already in use".to_owned(),
        ..StepReply::default()
    };
    let policy = InstallationPolicy::default();
    let host = &mut snapshot.hosts[0];
    let accept = |host: &mut HostState, reply: &StepReply| {
        let mut reply = CheckedReply::new(reply.clone()).unwrap();
        replies::accept(host, Some(&cluster), &mut reply, &policy, now()).unwrap();
    };
    accept(host, &reply);
    assert_eq!(host.record.status, H::Installing);
    reply.exit_code = 1;
    accept(host, &reply);
    assert_eq!(host.record.status, H::Error);
}

#[test]
fn refresh_is_idempotent() {
    for (masters, workers) in [(3, 2), (1, 0), (2, 0), (5, 0)] {
        let mut snapshot = fixtures::snapshot(masters, workers);
        refreshed(&mut snapshot, now());
        let hosts: Vec<_> = snapshot
            .hosts
            .iter()
            .map(|host| host.record.clone())
            .collect();
        let cluster = snapshot.cluster.clone();
        assert_eq!(refreshed(&mut snapshot, now()), []);
        assert_eq!(snapshot.cluster, cluster);
        let again: Vec<_> = snapshot
            .hosts
            .iter()
            .map(|host| host.record.clone())
            .collect();
        assert_eq!(again, hosts);
    }
}

#[test]
fn five_hundred_hosts_are_refreshed() {
    let mut snapshot = fixtures::snapshot(3, 497);
    let start = std::time::Instant::now();
    refreshed(&mut snapshot, now());
    println!("500 hosts, first refresh: {:?}", start.elapsed());
    let start = std::time::Instant::now();
    refreshed(&mut snapshot, now());
    println!("500 hosts, second refresh: {:?}", start.elapsed());
    assert_eq!(
        snapshot.cluster.status,
        C::Ready,
        "{}",
        snapshot.cluster.status_info
    );
}
