//! Events: recording, listing, counting.

use serde_json::json;

use crate::harness::Server;

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
