//! Limits of stored data, each at the limit and one above.

use api_server::operations::access::Scheme;
use futures_util::future::join_all;
use model::time::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Answer, Server, cluster_params, merged};
use crate::installation::upload;
use crate::secured::{Owned, SecuredServer, cloud_token, pull_secret, with};

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

async fn register(site: &SecuredServer, user: &str, noun: &str) -> Answer {
    let secret = pull_secret(user);
    let params = match noun {
        "clusters" => merged(cluster_params(), json!({ "pull_secret": secret })),
        _ => json!({ "name": "rack", "pull_secret": secret, "openshift_version": "4.18" }),
    };
    site.send(user, Method::POST, &format!("/v2/{noun}"), Some(&params))
        .await
}

// share: clusters
// share: infra-envs
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_leaves_clusters_and_infra_envs_to_others() {
    let site = SecuredServer::oidc(|settings| {
        settings.max_clusters = 5;
        settings.max_clusters_per_owner = 2;
        settings.max_infra_envs = 5;
        settings.max_infra_envs_per_owner = 2;
    })
    .await;
    for (noun, variable) in [
        ("clusters", "MAX_CLUSTERS_PER_OWNER"),
        ("infra-envs", "MAX_INFRA_ENVS_PER_OWNER"),
    ] {
        // At once: the counts of concurrent registrations include each other.
        let answers = join_all((0..8).map(|_| register(&site, "alice", noun))).await;
        let created = answers.iter().filter(|answer| answer.status == 201);
        assert_eq!(created.count(), 2);
        for refused in answers.iter().filter(|answer| answer.status != 201) {
            assert_eq!(refused.status, 409);
            assert!(refused.text.contains(variable), "{}", refused.text);
        }
        for _ in 0..2 {
            register(&site, "bob", noun).await.expect(201);
        }
        register(&site, "bob", noun).await.expect(409);
        let last = register(&site, "carol", noun).await.expect(201);
        let full = register(&site, "dave", noun).await;
        assert!(full.text.contains("limit of 5"), "{}", full.text);
        full.expect(409);
        let path = format!("/v2/{noun}/{}", last["id"].as_str().unwrap());
        site.send("carol", Method::DELETE, &path, None)
            .await
            .expect(204);
        register(&site, "alice", noun).await.expect(409);
        register(&site, "dave", noun).await.expect(201);
    }
}

// share: events
#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_an_owner_leave_room_for_others() {
    let site = SecuredServer::oidc(|settings| settings.max_events_per_owner = 10).await;
    let (alice, bob) = (site.resources("alice").await, site.resources("bob").await);
    let trigger = async |own: &Owned, number: usize| {
        let event = json!({
            "name": "e", "cluster_id": own.cluster, "severity": "info", "category": "user",
            "message": number.to_string(), "event_time": Timestamp::UNIX_EPOCH.to_rfc3339(),
        });
        let request = site.server.request(Method::POST, "/v2/events").json(&event);
        let request = with(request, Scheme::Agent, &own.agent);
        Server::send(request).await.expect(201);
    };
    let count = async |user: &str, own: &Owned| {
        let path = format!("/v2/events?cluster_id={}&limit=-1", own.cluster);
        let listed = site.get(user, &path).await.expect(200);
        listed.as_array().unwrap().len()
    };
    for number in 0..5 {
        trigger(&bob, number).await;
    }
    let of_bob = count("bob", &bob).await;
    for number in 0..200 {
        trigger(&alice, number).await;
    }
    // Each 64th event trims: so many may exceed the share.
    let of_alice = count("alice", &alice).await;
    assert!((10..10 + 64).contains(&of_alice), "{of_alice}");
    assert!(count("bob", &bob).await >= of_bob);
}

// share: files of all clusters
#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_an_owner_leave_room_for_others() {
    let site = SecuredServer::oidc(|settings| settings.max_files_bytes_per_owner = 1000).await;
    let upload = async |user: &str, length: usize| {
        let created = register(&site, user, "clusters").await.expect(201);
        let id = created["id"].as_str().unwrap();
        let path = format!("/v2/clusters/{id}/logs?logs_type=controller");
        let content = "x".repeat(length);
        let body = format!(
            "--b\r\nContent-Disposition: form-data; name=\"upfile\"; filename=\"l.tgz\"\r\n\r\n{content}\r\n--b--\r\n"
        );
        let request = site.server.request(Method::POST, &path);
        let request = request.header("content-type", "multipart/form-data; boundary=b");
        let request = with(request.body(body), Scheme::Agent, &cloud_token(user));
        Server::send(request).await
    };
    upload("alice", 600).await.expect(204);
    upload("alice", 400).await.expect(204);
    let refused = upload("alice", 1).await;
    assert!(refused.text.contains("owner"), "{}", refused.text);
    refused.expect(413);
    upload("bob", 600).await.expect(204);
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
