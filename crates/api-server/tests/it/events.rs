//! Events: recording, listing, counting.

use serde_json::{Value, json};
use sqlx::ConnectOptions as _;

use crate::harness::{Server, host_id};

/// An agent retries every minute, for as long as its host cannot pull the image.
#[tokio::test(flavor = "multi_thread")]
async fn failed_upgrades_are_reported_once_an_hour() {
    let server = Server::start().await;
    let pool = server.infra_env(None).await;
    let hosts = [server.host(&pool, 1).await, server.host(&pool, 2).await];
    for result in ["failure", "failure", "success", "failure"] {
        let output = json!({ "agent_image": "quay.io/a/agent:v2", "result": result });
        for host in &hosts {
            let reply = server.reply(host, "upgrade-agent", &output).await;
            reply.expect(204);
        }
    }
    let mut connection = server.database.options().connect().await.unwrap();
    let count = async |number: u32| {
        let path = format!("/v2/events?host_id={}", host_id(number));
        let events = server.get(&path).await.expect(200);
        ["upgrade_agent_failed", "upgrade_agent_finished"].map(|name| {
            let of_name = |event: &&Value| event["name"] == name;
            events.as_array().unwrap().iter().filter(of_name).count()
        })
    };
    assert_eq!((count(1).await, count(2).await), ([1, 1], [1, 1]));
    sqlx::query("update events set event_time = event_time - interval '1 hour'")
        .execute(&mut connection)
        .await
        .unwrap();
    let output = json!({ "agent_image": "quay.io/a/agent:v2", "result": "failure" });
    let reply = server.reply(&hosts[0], "upgrade-agent", &output).await;
    reply.expect(204);
    assert_eq!((count(1).await, count(2).await), ([2, 1], [1, 1]));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_have_the_request_id() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let request_id = "11111111-2222-4333-8444-555555555555";
    let change = server
        .request(reqwest::Method::POST, "/v2/infra-envs")
        .header("x-request-id", request_id)
        .json(&json!({ "name": "rack", "pull_secret": crate::harness::PULL_SECRET, "cluster_id": id }));
    Server::send(change).await.expect(201);
    let answer = server.get(&format!("/v2/events?cluster_id={id}")).await;
    assert_eq!(
        answer.header("event-count"),
        answer.body.as_array().unwrap().len().to_string()
    );
    let events = answer.expect(200);
    let names: Vec<_> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names.first(),
        Some(&"cluster_registration_succeeded"),
        "{names:?}"
    );
    let registered = events
        .as_array()
        .unwrap()
        .iter()
        .find(|event| event["name"] == "infra_env_registered")
        .unwrap();
    assert_eq!(registered["request_id"], request_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_are_filtered_paginated_and_counted() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    for (number, severity) in ["info", "warning", "warning", "critical"]
        .into_iter()
        .enumerate()
    {
        let event = json!({
            "name": "reboots_for_node", "cluster_id": id, "severity": severity, "category": "user",
            "message": format!("Trial number {number}"), "event_time": "2001-01-01T00:00:00.000Z",
        });
        server.post("/v2/events", &event).await.expect(201);
    }
    let base = format!("/v2/events?cluster_id={id}&message=trial");
    let answer = server
        .get(&format!(
            "{base}&severities=warning&limit=1&order=descending"
        ))
        .await;
    assert_eq!(
        ["info", "warning", "error", "critical"]
            .map(|name| answer.header(&format!("severity-count-{name}")).to_owned()),
        ["1", "2", "0", "1"]
    );
    assert_eq!(answer.header("event-count"), "2");
    let events = answer.expect(200);
    assert_eq!(
        (
            events.as_array().unwrap().len(),
            events[0]["message"].as_str()
        ),
        (1, Some("Trial number 2"))
    );
    assert!(
        events[0]["event_time"].as_str().unwrap() > "2026",
        "the server sets the time"
    );
    let page = server
        .get(&format!("{base}&offset=1&limit=2"))
        .await
        .expect(200);
    assert_eq!(
        (page[0]["message"].as_str(), page[1]["message"].as_str()),
        (Some("Trial number 1"), Some("Trial number 2"))
    );
    assert_eq!(
        server.get(&format!("{base}&limit=0")).await.expect(200),
        json!([])
    );
    assert_eq!(
        server
            .get(&format!("{base}&limit=-1"))
            .await
            .expect(200)
            .as_array()
            .unwrap()
            .len(),
        4
    );
    assert_eq!(
        server
            .get(&format!("{base}&categories=metrics"))
            .await
            .expect(200),
        json!([])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_deleted_hosts_are_listed_on_request() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&id)).await;
    let host = server.host(&infra_env, 1).await;
    let path = format!("/v2/events?cluster_id={id}&deleted_hosts=true");
    assert_eq!(server.get(&path).await.expect(200), json!([]));
    server.delete(&host).await.expect(204);
    assert!(
        !server
            .get(&path)
            .await
            .expect(200)
            .as_array()
            .unwrap()
            .is_empty()
    );
    let of_cluster = server
        .get(&format!("/v2/events?cluster_id={id}&cluster_level=true"))
        .await
        .expect(200);
    assert!(
        of_cluster
            .as_array()
            .unwrap()
            .iter()
            .all(|event| event.get("host_id").is_none())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_unknown_clusters_are_refused() {
    let server = Server::start().await;
    let event = json!({
        "name": "x", "cluster_id": "00000000-0000-4000-8000-000000000000", "severity": "info", "category": "user",
        "message": "x", "event_time": "2001-01-01T00:00:00.000Z",
    });
    server.post("/v2/events", &event).await.expect(404);
}
