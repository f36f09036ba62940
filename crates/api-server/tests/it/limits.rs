//! Limits of stored data, each at the limit and one above.

use model::time::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, cluster_params};
use crate::installation::upload;

/// JSON padded with spaces to `length` bytes.
fn padded(json: &str, length: usize) -> String {
    format!("{json}{}", " ".repeat(length - json.len()))
}

// limit: JSON body
#[tokio::test(flavor = "multi_thread")]
async fn body_limit_is_enforced() {
    let server = Server::start().await;
    let status = async |length| {
        let body = padded("{}", length);
        let request = server.request(Method::POST, "/v2/clusters");
        let request = request.header("content-type", "application/json");
        Server::send(request.body(body)).await.status.as_u16()
    };
    assert_eq!(status(2 << 20).await, 400, "read, and lacks a name");
    assert_eq!(status((2 << 20) + 1).await, 413);
}

// limit: JSON body of a step reply
#[tokio::test(flavor = "multi_thread")]
async fn reply_limit_is_enforced() {
    let server = Server::start().await;
    let infra_env = server.infra_env(None).await;
    let host = server.host(&infra_env, 1).await;
    let reply = r#"{"step_type":"inventory","step_id":"x","exit_code":0,"output":"{}"}"#;
    let status = async |length| {
        let body = padded(reply, length);
        let request = server.request(Method::POST, &format!("{host}/instructions"));
        let request = request.header("content-type", "application/json");
        Server::send(request.body(body)).await.status.as_u16()
    };
    assert_eq!(status(12 << 20).await, 204);
    assert_eq!(status((12 << 20) + 1).await, 413);
}

// limit: images, tested disks or time sources
#[tokio::test(flavor = "multi_thread")]
async fn results_of_a_host_are_limited_over_all_replies() {
    let server = Server::start().await;
    let infra_env = server.infra_env(None).await;
    let host = server.host(&infra_env, 1).await;
    let images = |from: usize, count: usize| {
        let image =
            |number| json!({ "name": format!("registry/image:{number}"), "result": "success" });
        json!({ "images": (from..from + count).map(image).collect::<Vec<Value>>() })
    };
    let step = "container-image-availability";
    server.reply(&host, step, &images(0, 128)).await.expect(204);
    server
        .reply(&host, step, &images(128, 128))
        .await
        .expect(204);
    let refused = server.reply(&host, step, &images(256, 1)).await;
    assert!(refused.text.contains("at most 256"), "{}", refused.text);
    refused.expect(400);
}

// limit: progress text of a host
#[tokio::test(flavor = "multi_thread")]
async fn progress_text_limit_is_enforced() {
    let server = Server::start().await;
    let infra_env = server.infra_env(None).await;
    let host = server.host(&infra_env, 1).await;
    let status = async |length| {
        let progress =
            json!({ "current_stage": "Installing", "progress_info": "x".repeat(length) });
        let answer = server.put(&format!("{host}/progress"), &progress).await;
        answer.status.as_u16()
    };
    assert_ne!(
        status(4096).await,
        413,
        "refused for the host's status alone"
    );
    assert_eq!(status(4097).await, 413);
}

// limit: texts of an event
// limit: text of the user interface
#[tokio::test(flavor = "multi_thread")]
async fn text_limits_are_enforced() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let event = |length| {
        json!({
            "name": "e", "cluster_id": id, "severity": "info", "category": "user",
            "message": "x".repeat(length), "event_time": Timestamp::UNIX_EPOCH.to_rfc3339(),
        })
    };
    let bound = (16 << 10) - 1;
    server.post("/v2/events", &event(bound)).await.expect(201);
    server
        .post("/v2/events", &event(bound + 1))
        .await
        .expect(413);
    let settings = async |length: usize| {
        let request = server.request(Method::PUT, &format!("/v2/clusters/{id}/ui-settings"));
        let request = request.json(&"x".repeat(length));
        Server::send(request).await.status.as_u16()
    };
    assert_eq!(settings(257 << 10).await, 413);
    assert_eq!(settings(255 << 10).await, 200);
}

// limit: clusters
// limit: infra-envs
#[tokio::test(flavor = "multi_thread")]
async fn cluster_and_infra_env_limits_are_enforced() {
    let server = Server::with(|settings| {
        settings.max_clusters = 1;
        settings.max_infra_envs = 1;
    })
    .await;
    let id = server.cluster(json!({})).await;
    let infra_env = server.infra_env(None).await;
    let refused = server.post("/v2/clusters", &cluster_params()).await;
    assert!(refused.text.contains("MAX_CLUSTERS"), "{}", refused.text);
    refused.expect(409);
    let params = json!({ "name": "rack-2", "pull_secret": crate::harness::PULL_SECRET });
    server.post("/v2/infra-envs", &params).await.expect(409);
    server
        .delete(&format!("/v2/clusters/{id}"))
        .await
        .expect(204);
    server
        .delete(&format!("/v2/infra-envs/{infra_env}"))
        .await
        .expect(204);
    server.cluster(json!({})).await;
    server.infra_env(None).await;
}

// limit: events of a cluster
// limit: events
// limit: events of an answer
#[tokio::test(flavor = "multi_thread")]
async fn oldest_events_are_deleted() {
    let server = Server::with(|settings| {
        settings.max_events_per_cluster = 10;
        settings.max_events = 100;
    })
    .await;
    let busy = server.cluster(json!({})).await;
    let count = async |query: &str| {
        let answer = server.get(&format!("/v2/events?{query}limit=-1")).await;
        let listed = answer.body.as_array().unwrap().len();
        assert_eq!(answer.header("event-count"), listed.to_string());
        listed
    };
    for number in 0..200 {
        let event = json!({
            "name": "e", "cluster_id": busy, "severity": "info", "category": "user",
            "message": number.to_string(), "event_time": Timestamp::UNIX_EPOCH.to_rfc3339(),
        });
        server.post("/v2/events", &event).await.expect(201);
    }
    // Each 64th event trims: so many may exceed the limit.
    let kept = count(&format!("cluster_id={busy}&")).await;
    assert!((10..10 + 64).contains(&kept), "{kept}");
    let all = count("").await;
    assert!(all < 100 + 64, "{all}");
    let newest = server
        .get(&format!(
            "/v2/events?cluster_id={busy}&order=descending&limit=1"
        ))
        .await;
    assert_eq!(newest.expect(200)[0]["message"], "199");
}

// limit: logs
#[tokio::test(flavor = "multi_thread")]
async fn log_limit_is_enforced() {
    let server = Server::with(|settings| settings.max_log_bytes = 1000).await;
    let id = server.cluster(json!({})).await;
    let upload = async |length| {
        let path = format!("/v2/clusters/{id}/logs?logs_type=controller");
        upload(&server, &path, "upfile", &"x".repeat(length)).await
    };
    upload(1000).await.expect(204);
    let refused = upload(1001).await;
    assert!(refused.text.contains("1000 bytes"), "{}", refused.text);
    refused.expect(413);
    let stored = std::fs::read_dir(server.work_dir().join(&id).join("logs/controller"));
    assert_eq!(
        stored.unwrap().count(),
        1,
        "the first one, and nothing of the second"
    );
}

// limit: manifests
#[tokio::test(flavor = "multi_thread")]
async fn manifest_limit_is_enforced() {
    let server = Server::with(|settings| settings.max_manifests_per_cluster = 2).await;
    let id = server.cluster(json!({})).await;
    let create = async |name: &str| {
        let manifest = json!({ "file_name": name, "folder": "openshift", "content": "YTogMQo=" });
        server
            .post(&format!("/v2/clusters/{id}/manifests"), &manifest)
            .await
    };
    create("a.yaml").await.expect(201);
    create("b.yaml").await.expect(201);
    let refused = create("c.yaml").await;
    assert!(
        refused.text.contains("MAX_MANIFESTS_PER_CLUSTER"),
        "{}",
        refused.text
    );
    refused.expect(400);
    create("b.yaml").await.expect(201);
}
