//! Retries of single hosts while their cluster is being installed.

use std::time::Duration;

use model::Error;
use model::cluster::ClusterStatus as C;
use model::host::{Host, HostKind, HostStage, HostStatus as H};
use model::ids::HostId;
use model::steps::StepType;
use model::time::Timestamp;
use serde_json::json;

use super::{answer, finish, installing, report, statuses};
use crate::InstallationPolicy;
use crate::NewEvent;
use crate::cluster;
use crate::cluster::refresh;
use crate::fixtures::{later, now};
use crate::host;
use crate::snapshot::Snapshot;

/// Clusters wait half an hour for a retry.
fn patient() -> InstallationPolicy {
    InstallationPolicy {
        host_retry_timeout: Duration::from_mins(30),
        ..InstallationPolicy::default()
    }
}

/// Refreshes while all agents send heartbeats.
fn refreshed(snapshot: &mut Snapshot, policy: &InstallationPolicy, at: Timestamp) -> Vec<NewEvent> {
    for host in &mut snapshot.hosts {
        host.record.checked_in_at = at.into();
        host.record.timestamp = at.timestamp();
    }
    refresh::cluster(snapshot, policy, at)
}

fn host_id(snapshot: &Snapshot, at: usize) -> HostId {
    snapshot.hosts[at].record.id
}

fn fail(snapshot: &mut Snapshot, at: usize, policy: &InstallationPolicy, moment: Timestamp) {
    report(snapshot, at, HostStage::WritingImageToDisk, moment);
    report(snapshot, at, HostStage::Failed, moment);
    refreshed(snapshot, policy, moment);
}

fn retry(snapshot: &mut Snapshot, at: usize, moment: Timestamp) -> Result<Vec<NewEvent>, Error> {
    let id = host_id(snapshot, at);
    host::retry(snapshot, id, &patient(), moment)
}

/// Boots the discovery image, and sends the inventory.
fn register(snapshot: &mut Snapshot, at: usize, moment: Timestamp) -> Vec<NewEvent> {
    let inventory = snapshot.hosts[at].record.inventory.text();
    let inventory = serde_json::from_str(&inventory).unwrap();
    let cluster = snapshot.cluster.clone();
    let trigger = host::Trigger::Register {
        agent_version: "new".to_owned(),
    };
    host::apply(
        &mut snapshot.hosts[at],
        Some(&cluster),
        trigger,
        &patient(),
        moment,
    )
    .unwrap();
    let mut events = refreshed(snapshot, &patient(), moment);
    assert_eq!(snapshot.hosts[at].record.status, H::Discovering);
    answer(snapshot, at, StepType::Inventory, 0, &inventory);
    let synced = json!({"ntp_sources": [{"source_name": "ntp", "source_state": "synced"}]});
    answer(snapshot, at, StepType::NtpSynchronizer, 0, &synced);
    events.extend(refreshed(snapshot, &patient(), moment));
    events
}

fn refused(result: Result<Vec<NewEvent>, Error>, part: &str) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Conflict { .. }), "{error:?}");
    assert!(error.to_string().contains(part), "{error}");
}

fn record(snapshot: &Snapshot, at: usize) -> &Host {
    &snapshot.hosts[at].record
}

#[test]
fn a_needed_worker_is_retried() {
    let policy = patient();
    let mut snapshot = installing(3, 2);
    fail(&mut snapshot, 3, &policy, later(1));
    assert_eq!(record(&snapshot, 3).status, H::Error);
    assert!(record(&snapshot, 3).can_retry);
    assert_eq!(snapshot.cluster.status, C::InstallingPendingUserAction);
    let info = &snapshot.cluster.status_info;
    assert!(info.starts_with("Reset these failed hosts"), "{info}");
    let events = retry(&mut snapshot, 3, later(2)).unwrap();
    assert!(
        events
            .iter()
            .any(|event| event.name == "host_installation_reset")
    );
    refreshed(&mut snapshot, &policy, later(2));
    let host = record(&snapshot, 3);
    assert_eq!(host.status, H::ResettingPendingUserAction);
    assert!(!host.can_retry, "its retry is under way");
    assert_eq!(host.progress.clone().unwrap_or_default(), <_>::default());
    assert_eq!(host.logs_info, None);
    assert_eq!(snapshot.cluster.status, C::InstallingPendingUserAction);
    let info = &snapshot.cluster.status_info;
    assert!(info.contains("from the discovery image"), "{info}");
    retry(&mut snapshot, 3, later(3)).expect("a repeated request is idempotent");
    let events = register(&mut snapshot, 3, later(10));
    let host = record(&snapshot, 3);
    assert_eq!(host.status, H::Installing, "{}", host.status_info);
    assert_eq!(host.status_updated_at, later(10).into());
    assert!(
        events
            .iter()
            .any(|event| event.name == "host_installation_started")
    );
    assert_eq!(snapshot.cluster.status, C::Installing);
    for at in 0..5 {
        finish(&mut snapshot, at);
    }
    snapshot.files.kubeconfig = true;
    refreshed(&mut snapshot, &policy, later(11));
    assert_eq!(statuses(&snapshot), [H::Installed; 5]);
    assert_eq!(snapshot.cluster.status, C::Installed);
}

#[test]
fn a_master_is_retried_until_its_installed_system_starts() {
    let policy = patient();
    let mut snapshot = installing(3, 0);
    fail(&mut snapshot, 0, &policy, later(1));
    assert_eq!(snapshot.cluster.status, C::InstallingPendingUserAction);
    retry(&mut snapshot, 0, later(2)).unwrap();
    register(&mut snapshot, 0, later(3));
    assert_eq!(record(&snapshot, 0).status, H::Installing);
    assert_eq!(snapshot.cluster.status, C::Installing);
    for stage in [HostStage::Rebooting, HostStage::Configuring] {
        report(&mut snapshot, 0, stage, later(4));
    }
    report(&mut snapshot, 0, HostStage::Failed, later(4));
    let earlier = snapshot.clone();
    refreshed(&mut snapshot, &policy, later(4));
    assert_eq!(snapshot.cluster.status, C::Error);
    snapshot = earlier;
    refused(retry(&mut snapshot, 0, later(4)), "member of etcd");
}

#[test]
fn without_the_setting_a_cluster_fails_at_once_and_stays_failed() {
    let policy = InstallationPolicy::default();
    let mut snapshot = installing(3, 2);
    fail(&mut snapshot, 3, &policy, later(1));
    assert_eq!(snapshot.cluster.status, C::Error);
    assert!(!record(&snapshot, 3).can_retry);
    refused(retry(&mut snapshot, 3, later(2)), "reset the cluster");
    assert_eq!(statuses(&snapshot), [H::Error; 5]);
}

#[test]
fn a_cluster_fails_when_no_retry_is_requested_in_time() {
    let policy = patient();
    let mut snapshot = installing(3, 2);
    fail(&mut snapshot, 3, &policy, later(1));
    refreshed(&mut snapshot, &policy, later(31));
    assert_eq!(snapshot.cluster.status, C::Error, "a start times out first");
    let mut snapshot = installing(3, 2);
    for at in [0, 1, 2, 4] {
        report(&mut snapshot, at, HostStage::Installing, later(1));
    }
    fail(&mut snapshot, 3, &policy, later(1));
    refreshed(&mut snapshot, &policy, later(31));
    assert_eq!(snapshot.cluster.status, C::InstallingPendingUserAction);
    refreshed(&mut snapshot, &policy, later(32));
    assert_eq!(snapshot.cluster.status, C::Error);
    let info = &snapshot.cluster.status_info;
    assert!(info.contains("node-3"), "{info}");
}

#[test]
fn a_retry_that_is_never_ready_times_out() {
    let policy = InstallationPolicy::default();
    let mut snapshot = installing(3, 3);
    fail(&mut snapshot, 5, &policy, later(1));
    assert_eq!(
        snapshot.cluster.status,
        C::Installing,
        "two workers are enough"
    );
    retry(&mut snapshot, 5, later(2)).unwrap();
    refreshed(&mut snapshot, &policy, later(2));
    for at in 0..5 {
        finish(&mut snapshot, at);
    }
    snapshot.files.kubeconfig = true;
    refreshed(&mut snapshot, &policy, later(62));
    assert_eq!(
        snapshot.cluster.status,
        C::InstallingPendingUserAction,
        "its boot is awaited"
    );
    refreshed(&mut snapshot, &policy, later(63));
    let host = record(&snapshot, 5);
    assert_eq!(host.status, H::Error);
    assert!(
        host.status_info.contains("discovery image"),
        "{}",
        host.status_info
    );
    assert_eq!(snapshot.cluster.status, C::Installed);
    assert!(snapshot.cluster.status_info.contains("node-5"));
    refused(retry(&mut snapshot, 5, later(64)), "accept further hosts");
}

#[test]
fn a_retried_host_fails_with_its_cluster() {
    let policy = InstallationPolicy::default();
    let mut snapshot = installing(3, 3);
    fail(&mut snapshot, 5, &policy, later(1));
    retry(&mut snapshot, 5, later(2)).unwrap();
    refreshed(&mut snapshot, &policy, later(2));
    snapshot.hosts[5].record.status = H::Insufficient;
    fail(&mut snapshot, 0, &policy, later(3));
    assert_eq!(snapshot.cluster.status, C::Error);
    assert_eq!(statuses(&snapshot), [H::Error; 6]);
    cluster::apply(&mut snapshot, cluster::Trigger::Reset, &policy, later(4)).unwrap();
    assert_eq!(statuses(&snapshot), [H::ResettingPendingUserAction; 6]);
}

#[test]
fn impossible_retries_are_refused_with_their_remedy() {
    let policy = patient();
    let mut snapshot = installing(3, 3);
    refused(retry(&mut snapshot, 3, later(1)), "only a host that failed");
    finish(&mut snapshot, 3);
    refreshed(&mut snapshot, &policy, later(1));
    refused(retry(&mut snapshot, 3, later(1)), "it is installed");
    // The bootstrap host boots the image again.
    let bootstrap = 2;
    assert!(record(&snapshot, bootstrap).bootstrap);
    snapshot.hosts[bootstrap].record.status = H::InstallingPendingUserAction;
    refused(retry(&mut snapshot, bootstrap, later(1)), "bootstrap host");
    let unknown = HostId(uuid::Uuid::nil());
    let result = host::retry(&mut snapshot, unknown, &policy, later(1));
    assert!(matches!(result, Err(Error::NotFound { .. })));
    for status in C::ALL {
        let mut snapshot = installing(3, 3);
        fail(&mut snapshot, 5, &policy, later(1));
        snapshot.cluster.status = *status;
        let is_possible = matches!(
            status,
            C::Installing | C::InstallingPendingUserAction | C::Finalizing
        );
        let result = retry(&mut snapshot, 5, later(2));
        assert_eq!(result.is_ok(), is_possible, "{status}: {result:?}");
    }
}

#[test]
fn the_last_host_cannot_be_retried() {
    let policy = patient();
    let mut snapshot = installing(3, 3);
    for at in 0..5 {
        finish(&mut snapshot, at);
    }
    fail(&mut snapshot, 5, &policy, later(1));
    assert_eq!(snapshot.cluster.status, C::Finalizing);
    assert!(!record(&snapshot, 5).can_retry);
    refused(retry(&mut snapshot, 5, later(1)), "no longer observes");
}

#[test]
fn a_timed_out_stage_can_be_retried() {
    let policy = InstallationPolicy {
        soft_timeouts: true,
        ..InstallationPolicy::default()
    };
    let mut snapshot = installing(3, 3);
    for at in 0..5 {
        report(&mut snapshot, at, HostStage::Installing, now());
    }
    report(&mut snapshot, 5, HostStage::WritingImageToDisk, now());
    refreshed(&mut snapshot, &policy, later(31));
    let host = record(&snapshot, 5);
    assert_eq!(host.status, H::InstallingInProgress);
    assert!(host.can_retry);
    assert_eq!(host.kind, HostKind::Host);
    retry(&mut snapshot, 5, later(31)).unwrap();
    register(&mut snapshot, 5, later(32));
    let host = record(&snapshot, 5);
    assert_eq!(host.status, H::Installing, "{}", host.status_info);
    assert!(!host.can_retry);
}

#[test]
fn a_waiting_host_keeps_its_stage_while_a_retry_is_awaited() {
    let policy = patient();
    let mut snapshot = installing(3, 2);
    for at in [1, 3, 4] {
        report(&mut snapshot, at, HostStage::Installing, later(1));
    }
    let waiting = HostStage::WaitingForControlPlane;
    report(&mut snapshot, 2, waiting, later(1));
    fail(&mut snapshot, 0, &policy, later(50));
    retry(&mut snapshot, 0, later(51)).unwrap();
    for minutes in [51, 60, 70] {
        for at in [1, 3, 4] {
            report(&mut snapshot, at, HostStage::Installing, later(minutes));
        }
        refreshed(&mut snapshot, &policy, later(minutes));
        assert_eq!(record(&snapshot, 2).status, H::InstallingInProgress);
    }
    assert_eq!(snapshot.cluster.status, C::InstallingPendingUserAction);
}

#[test]
fn a_retried_host_keeps_its_role_and_name() {
    let mut snapshot = installing(3, 3);
    fail(&mut snapshot, 5, &patient(), later(1));
    retry(&mut snapshot, 5, later(2)).unwrap();
    snapshot.hosts[5].record.status = H::Insufficient;
    let cluster = snapshot.cluster.clone();
    let role = record(&snapshot, 5).role.unwrap();
    let disk = record(&snapshot, 5).installation_disk_id.clone();
    let mut change = |body: serde_json::Value| {
        let params = serde_json::from_value(body).unwrap();
        cluster::update::host(&mut snapshot.hosts[5], Some(&cluster), params)
    };
    refused(change(json!({"host_role": "master"})), "as it was prepared");
    refused(change(json!({"host_name": "other"})), "as it was prepared");
    change(json!({"host_role": role})).unwrap();
    change(json!({"disks_selected_config": [{"id": disk, "role": "install"}]})).unwrap();
}
