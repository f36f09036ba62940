//! Registration, instructions, replies.

use std::sync::Arc;
use std::time::Duration;

use host_sim::image::BootConfig;
use host_sim::{Fleet, Network, Pace, Role, SimulationOutcome, SimulationPlan, run};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::server::Server;

const INFRA_ENV: Uuid = Uuid::from_u128(0x5a2a_1b6e_8a4b_4b0e_9d0c_0f7f_2f6f_0a11);

fn plan(url: &str) -> SimulationPlan {
    let fleet = Fleet {
        seed: "seed".into(),
        hosts: vec![(Role::Worker, 1)],
        faults: Vec::new(),
        network: "192.168.126.0/24".parse().unwrap(),
    };
    SimulationPlan {
        boot: BootConfig {
            url: url.to_owned(),
            infra_env_id: INFRA_ENV,
            agent_version: "q.io/agent:1".into(),
            insecure: false,
            ca_pem: None,
            token: Some("token".into()),
        },
        machines: fleet.machines().unwrap(),
        network: Network::default(),
        pace: Pace::new(2000.0),
        seed: "seed".into(),
        has_dummy_files: false,
        state: None,
        interval: None,
    }
}

fn host_id() -> Uuid {
    plan("").machines[0].host_id
}

fn registered() -> (u16, Value) {
    let arg =
        json!({ "infra_env_id": INFRA_ENV, "host_id": host_id(), "agent_version": "q.io/agent:1" })
            .to_string();
    (
        201,
        json!({ "next_step_runner_command": { "command": "", "args": [arg], "retry_seconds": 60 } }),
    )
}

fn steps(steps: &Value) -> (u16, Value) {
    (
        200,
        json!({ "instructions": steps, "next_instruction_seconds": 60, "post_step_action": "continue" }),
    )
}

fn refused(status: u16) -> (u16, Value) {
    (
        status,
        json!({ "code": status.to_string(), "reason": "because" }),
    )
}

fn start(
    server: &Server,
    change: impl FnOnce(&mut SimulationPlan),
) -> JoinHandle<SimulationOutcome> {
    let mut plan = plan(&server.url);
    change(&mut plan);
    tokio::spawn(async move { run(&plan, Arc::default()).await.unwrap() })
}

#[tokio::test]
async fn refusals_of_the_registration_freeze_the_agent() {
    for status in [401, 403, 404, 409] {
        let server = Server::start(vec![refused(status)], vec![steps(&json!(null))]).await;
        let outcome = start(&server, |_| {}).await.unwrap();
        assert_eq!(outcome.frozen.len(), 1, "{status}");
        assert!(outcome.frozen[0].1.contains("because"));
        assert_eq!(server.asked("POST").len(), 1, "{status} is asked once only");
    }
}

#[tokio::test]
async fn other_failures_of_the_registration_are_retried() {
    let script = vec![
        refused(503),
        refused(503),
        refused(503),
        refused(503),
        refused(500),
        refused(400),
        registered(),
    ];
    let server = Server::start(script, vec![steps(&json!(null))]).await;
    let running = start(&server, |_| {});
    server
        .until("instructions are asked for", |s| !s.asked("GET").is_empty())
        .await;
    let registrations = server.asked("POST");
    assert_eq!(registrations.len(), 7);
    assert_eq!(
        registrations[6].1,
        json!({ "host_id": host_id(), "discovery_agent_version": "q.io/agent:1" })
    );
    running.abort();
}

#[tokio::test]
async fn a_missing_host_freezes_the_agent() {
    let server = Server::start(vec![registered()], vec![steps(&json!(null)), refused(404)]).await;
    let outcome = start(&server, |_| {}).await.unwrap();
    assert_eq!(outcome.frozen.len(), 1);
    assert_eq!(server.asked("POST /v2/infra-envs/").len(), 1);
}

#[tokio::test]
async fn failed_instruction_requests_are_retried() {
    let mut script = vec![refused(503); 9];
    script.push(steps(&json!(null)));
    let server = Server::start(vec![registered()], script).await;
    let running = start(&server, |_| {});
    server
        .until("requests after the failures", |s| s.asked("GET").len() > 10)
        .await;
    assert_eq!(server.asked("POST").len(), 1, "the host stays registered");
    running.abort();
}

#[tokio::test]
async fn an_unchanged_reply_is_sent_once() {
    let inventory = json!([{ "step_type": "inventory", "step_id": "inventory-1", "args": [host_id().to_string()] }]);
    let server = Server::start(vec![registered()], vec![steps(&inventory)]).await;
    // The cache of replies lasts an hour of simulated time: here long enough for the whole test.
    let running = start(&server, |plan| {
        plan.interval = Some(Duration::from_millis(20));
    });
    server
        .until("instructions are asked for", |s| s.asked("GET").len() > 5)
        .await;
    let replies: Vec<_> = server
        .asked("POST")
        .into_iter()
        .filter(|(what, _)| what.ends_with("instructions"))
        .collect();
    assert!(
        replies.len() <= 1 + replies.len() / 5,
        "{} replies",
        replies.len()
    );
    assert_eq!(replies[0].1["exit_code"], 0);
    assert!(
        replies[0].1["output"]
            .as_str()
            .unwrap()
            .contains("worker-0")
    );
    running.abort();
}

#[tokio::test]
async fn invalid_arguments_are_refused_and_counted() {
    let step = json!([{ "step_type": "inventory", "step_id": "inventory-1", "args": [] }]);
    let server = Server::start(vec![registered()], vec![steps(&step), refused(404)]).await;
    let outcome = start(&server, |_| {}).await.unwrap();
    let replies = server.asked(&format!(
        "POST /v2/infra-envs/{INFRA_ENV}/hosts/{}/instructions",
        host_id()
    ));
    assert_eq!(replies[0].1["exit_code"], -1);
    assert!(
        outcome
            .breaches
            .iter()
            .any(|fault| fault.contains("inventory")),
        "{:?}",
        outcome.breaches
    );
}

#[tokio::test]
async fn exit_makes_the_agent_register_again() {
    let mut exit = steps(&json!(null));
    exit.1["post_step_action"] = json!("exit");
    let server = Server::start(vec![registered()], vec![exit, steps(&json!(null))]).await;
    let running = start(&server, |_| {});
    server
        .until("it registers twice", |s| s.asked("POST").len() == 2)
        .await;
    running.abort();
}

#[tokio::test]
async fn a_restarted_simulation_does_not_register_again() {
    let state = tempfile::tempdir().unwrap();
    let server = Server::start(vec![registered()], vec![steps(&json!(null))]).await;
    for round in 1..=2_usize {
        let polls = server.asked("GET").len();
        let running = start(&server, |plan| plan.state = Some(state.path().to_owned()));
        server
            .until("it polls", |s| s.asked("GET").len() > polls)
            .await;
        running.abort();
        let _ = running.await;
        assert_eq!(server.asked("POST").len(), 1, "round {round}");
    }
}

#[tokio::test]
async fn a_dropped_simulation_ends_its_installer() {
    let request = json!({
        "cluster_id": INFRA_ENV,
        "infra_env_id": INFRA_ENV,
        "host_id": host_id(),
        "role": "worker",
        "boot_device": plan("").machines[0].disks[0].path,
        "controller_image": "q.io/controller:1",
        "installer_image": "q.io/installer:1",
    });
    let install =
        json!([{ "step_type": "install", "step_id": "install-1", "args": [request.to_string()] }]);
    let server = Server::start(vec![registered()], vec![steps(&install)]).await;
    let running = start(&server, |plan| plan.pace = Pace::new(100.0));
    server
        .until("the installer reports", |s| !s.asked("PUT").is_empty())
        .await;
    running.abort();
    let _ = running.await;
    // Requests that were sent before arrive.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let requests = server.asked("").len();
    // Cleanup takes 150 ms at this pace, and the next request follows.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(server.asked("").len(), requests);
}
