//! Reclaim: an installed host that left its cluster boots the discovery image by itself.

use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::binding::{bind, event_names, pool_host, register_again, single_node};
use crate::harness::{AGENT, Answer, Server, host_id};
use crate::installation::{install, reply_until, wait_status};

/// An installed host that was bound late, unbound and is reclaimed. Its path.
///
/// No request of the API reclaims a host: the peer's Kubernetes controller does, which also starts an agent there.
async fn reclaimed_host(server: &Server) -> String {
    let pool = server.infra_env(None).await;
    let host = pool_host(server, &pool, 1).await;
    let cluster = single_node(server).await;
    bind(server, &host, &cluster).await;
    register_again(server, &host).await;
    reply_until(server, &host, "known").await;
    wait_status(server, &format!("/v2/clusters/{cluster}"), "ready").await;
    install(server, &cluster, &host).await;
    let unbind = format!("{host}/actions/unbind");
    let unbound = server.post(&unbind, &json!({})).await.expect(200);
    assert_eq!(unbound["status"], "unbinding-pending-user-action");
    set(server, "status", "reclaiming").await;
    host
}

/// Changes a field of all host records.
async fn set(server: &Server, field: &str, value: &str) {
    let mut connection = server.database.options().connect().await.unwrap();
    sqlx::query(
        "update hosts
        set record = record || jsonb_build_object($1::text, $2::text),
            status = case $1 when 'status' then $2 else status end",
    )
    .bind(field)
    .bind(value)
    .execute(&mut connection)
    .await
    .unwrap();
    connection.close().await.unwrap();
}

/// The type and the request of the host's only step.
async fn only_step(server: &Server, host: &str) -> (Value, Value) {
    let steps = server
        .get(&format!("{host}/instructions"))
        .await
        .expect(200);
    let [step] = steps["instructions"].as_array().unwrap().as_slice() else {
        panic!("{steps}");
    };
    let request = serde_json::from_str(step["args"][0].as_str().unwrap()).unwrap();
    (step["step_type"].clone(), request)
}

async fn reply_failure(server: &Server, host: &str, step: &str) -> Answer {
    let reply = json!({ "step_type": step, "exit_code": -1, "error": "no space left" });
    server.post(&format!("{host}/instructions"), &reply).await
}

#[tokio::test(flavor = "multi_thread")]
async fn reclaimed_hosts_are_discovered_again() {
    let server = Server::start().await;
    let host = reclaimed_host(&server).await;
    let (step, request) = only_step(&server, &host).await;
    assert_eq!(step, "download-boot-artifacts");
    assert_eq!(request["host_fs_mount_dir"], "/host");
    for url in ["kernel_url", "rootfs_url", "initrd_url"] {
        assert!(
            request[url].as_str().unwrap().starts_with("http"),
            "{request}"
        );
    }
    let done = json!("boot artifacts are in place");
    for _ in 0..2 {
        let reply = server.reply(&host, "download-boot-artifacts", &done).await;
        reply.expect(204);
    }
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["status"], "reclaiming-rebooting", "{record}");

    let server = server.restart().await;
    let (step, request) = only_step(&server, &host).await;
    assert_eq!(step, "reboot-for-reclaim");
    assert_eq!(request["host_fs_mount_dir"], "/host");
    // The agent that restarts the host may be asked again.
    reply_failure(&server, &host, "reboot-for-reclaim")
        .await
        .expect(204);
    let reply = server.reply(&host, "reboot-for-reclaim", &json!("")).await;
    reply.expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["status"], "reclaiming-rebooting", "{record}");

    let (infra_env, _) = host.split_once("/hosts/").unwrap();
    let params = json!({ "host_id": host_id(1), "discovery_agent_version": AGENT });
    let registered = server.post(&format!("{infra_env}/hosts"), &params).await;
    assert_eq!(registered.expect(201)["status"], "discovering-unbound");
    reply_until(&server, &host, "known-unbound").await;
    let events = format!("/v2/events?host_id={}", host_id(1));
    let events = server.get(&events).await.expect(200);
    let entered: Vec<&Value> = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| {
            event["message"]
                .as_str()
                .unwrap()
                .contains("to reclaiming-rebooting")
        })
        .collect();
    assert_eq!(entered.len(), 1, "{events}");
    // A further installation.
    bind(&server, &host, &single_node(&server).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_cannot_be_reclaimed_wait_for_their_user() {
    let server = Server::start().await;
    let host = reclaimed_host(&server).await;
    reply_failure(&server, &host, "download-boot-artifacts")
        .await
        .expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(
        record["status"], "unbinding-pending-user-action",
        "{record}"
    );
    let info = record["status_info"].as_str().unwrap();
    assert!(
        info.contains("boot the host from the discovery image"),
        "{info}"
    );
    let names = event_names(&server, 1).await;
    assert!(names.iter().any(|name| name == "host_status_updated"));

    // No agent runs on the host.
    set(&server, "status", "reclaiming").await;
    set(&server, "status_updated_at", "2026-01-01T00:00:00.000Z").await;
    let timed_out = wait_status(&server, &host, "unbinding-pending-user-action").await;
    let info = timed_out["status_info"].as_str().unwrap();
    assert!(info.contains("in time"), "{info}");
    register_again(&server, &host).await;
}
