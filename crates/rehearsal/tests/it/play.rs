//! The end of rehearsals: judged, dropped, or failed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rehearsal::{
    Error, InstallationOutcome, InstallerApi, Pace, PlayOptions, RehearsalProgress,
    RehearsalReport, RehearsalRequest, Script, play,
};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::server::{CLUSTER, Server};

const REGISTRATION: &str = "POST /v2/infra-envs/";
const POLL: &str = "GET /v2/infra-envs/6a2a1b6e-8a4b-4b0e-9d0c-0f7f2f6f0a11/hosts/";
const REMOVAL: &str = "DELETE /v2/infra-envs/";

fn script() -> Script {
    let request = RehearsalRequest {
        profile: Some("3+0".to_owned()),
        ..RehearsalRequest::default()
    };
    Script::new(&request).unwrap().unwrap()
}

fn options() -> PlayOptions {
    PlayOptions::at(Pace::new(500.0))
}

fn start(
    server: &Server,
    progress: &RehearsalProgress,
    options: PlayOptions,
) -> JoinHandle<Result<Vec<InstallationOutcome>, Error>> {
    let api = InstallerApi::new(&server.url, Some("token".into()), None).unwrap();
    let progress = progress.clone();
    tokio::spawn(async move { play(&api, &script(), &options, &progress).await })
}

/// Whether no host sends requests any more.
async fn are_hosts_off(server: &Server) -> bool {
    // Requests that were sent before arrive.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let requests = server.count("");
    // Hosts poll every 120 ms at this pace.
    tokio::time::sleep(Duration::from_millis(500)).await;
    server.count("") == requests
}

#[tokio::test]
async fn a_cluster_without_changes_is_judged_and_removed() {
    let server = Server::start(|_| {}).await;
    let progress = RehearsalProgress::default();
    let mut options = options();
    options.quiet = Duration::from_millis(500);
    let outcomes = start(&server, &progress, options).await.unwrap().unwrap();
    let report = RehearsalReport::new(Vec::new(), outcomes);
    assert_eq!(report.verdict(), "not installed (insufficient), 1 mistake");
    let hosts: Vec<_> = report.of_clusters().into_keys().collect();
    assert!(
        hosts.iter().all(|one| one.id == "host-missing"),
        "{hosts:?}"
    );
    let state = progress.now();
    assert_eq!(state.machines, 3);
    let one = |name: &str| BTreeMap::from([(name.to_owned(), 1)]);
    assert_eq!(state.clusters, one("insufficient"));
    assert_eq!(state.hosts, one("discovering"));
    assert!(state.simulated > Duration::from_mins(4), "{state:?}");
    assert_eq!(server.count(&format!("DELETE /v2/clusters/{CLUSTER}")), 1);
    assert_eq!(server.count(REMOVAL), 1);
    assert!(are_hosts_off(&server).await);
    assert_eq!(progress.now(), state, "time ended");
}

#[tokio::test]
async fn a_dropped_rehearsal_leaves_neither_hosts_nor_records() {
    let server = Server::start(|_| {}).await;
    let running = start(&server, &RehearsalProgress::default(), options());
    server.until(POLL).await;
    running.abort();
    server.until(REMOVAL).await;
    assert_eq!(server.count(&format!("DELETE /v2/clusters/{CLUSTER}")), 1);
    assert!(are_hosts_off(&server).await);
}

#[tokio::test]
async fn records_that_are_kept_outlive_a_dropped_rehearsal() {
    let server = Server::start(|_| {}).await;
    let mut options = options();
    options.removes = false;
    let running = start(&server, &RehearsalProgress::default(), options);
    server.until(POLL).await;
    running.abort();
    let _ = running.await;
    assert!(are_hosts_off(&server).await);
    assert_eq!(server.count("DELETE"), 0);
}

#[tokio::test]
async fn a_record_that_is_created_while_the_rehearsal_is_dropped_is_removed() {
    let server = Server::start(|server| server.creations = Arc::new(Semaphore::new(0))).await;
    let running = start(&server, &RehearsalProgress::default(), options());
    server.until("POST /v2/clusters").await;
    running.abort();
    let _ = running.await;
    server.creations.add_permits(1);
    server.until(REMOVAL).await;
    assert_eq!(server.count(&format!("DELETE /v2/clusters/{CLUSTER}")), 1);
    assert_eq!(server.count(REGISTRATION), 0, "no host boots");
}

#[tokio::test]
async fn an_error_ends_and_removes_the_other_installations() {
    let server = Server::start(|server| server.broken = Some(1)).await;
    let mut options = options();
    (options.copies, options.at_once) = (3, 2);
    let running = start(&server, &RehearsalProgress::default(), options);
    let error = running.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Server { .. }), "{error}");
    assert_eq!(server.count("POST /v2/clusters"), 2 + 1, "with one cancel");
    assert_eq!(server.count(REMOVAL), 1);
    assert!(are_hosts_off(&server).await);
}
