//! Late binding: pool hosts join clusters and leave them.

use serde_json::{Value, json};

use crate::harness::{AGENT, Server, host_id, inventory};
use crate::installation::{reply_until, wait_status};

/// A known pool host's path.
pub(crate) async fn pool_host(server: &Server, infra_env: &str, number: u32) -> String {
    let host = server.host(infra_env, number).await;
    let reply = server.reply(&host, "inventory", &inventory(number)).await;
    reply.expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["status"], "known-unbound", "{record}");
    host
}

/// Binds a host.
pub(crate) async fn bind(server: &Server, host: &str, cluster: &str) -> Value {
    let params = json!({ "cluster_id": cluster });
    let path = format!("{host}/actions/bind");
    server.post(&path, &params).await.expect(200)
}

/// A single-node cluster without hosts.
pub(crate) async fn single_node(server: &Server) -> String {
    let params = json!({ "control_plane_count": 1, "high_availability_mode": "None" });
    server.cluster(params).await
}

/// Asserts that the agent is to exit, and registers it again.
pub(crate) async fn register_again(server: &Server, host: &str) -> Value {
    let instructions = format!("{host}/instructions");
    let steps = server.get(&instructions).await.expect(200);
    assert_eq!(steps["post_step_action"], "exit", "{steps}");
    assert!(steps["instructions"].is_null(), "{steps}");
    let (infra_env, id) = host.split_once("/hosts/").unwrap();
    let params = json!({ "host_id": id, "discovery_agent_version": AGENT });
    let registered = server.post(&format!("{infra_env}/hosts"), &params).await;
    registered.expect(201)
}

/// Names of a host's events.
pub(crate) async fn event_names(server: &Server, host: u32) -> Vec<String> {
    let path = format!("/v2/events?host_id={}", host_id(host));
    let events = server.get(&path).await.expect(200);
    let names = events.as_array().unwrap().iter();
    names
        .map(|event| event["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pool_hosts_join_a_cluster_and_leave_it() {
    let server = Server::start().await;
    let pool = server.infra_env(None).await;
    let host = pool_host(&server, &pool, 1).await;
    let name = json!({ "host_name": "alpha" });
    server.patch(&host, &name).await.expect(201);
    let cluster = single_node(&server).await;
    let path = format!("/v2/clusters/{cluster}");

    let bound = bind(&server, &host, &cluster).await;
    assert_eq!(bound["status"], "binding");
    assert_eq!(bound["cluster_id"], *cluster);
    assert_eq!(bound["requested_hostname"], "alpha");
    assert!(bound.get("inventory").is_none(), "{bound}");
    let members = server.get(&path).await.expect(200);
    assert_eq!(members["hosts"][0]["id"], host_id(1));
    let again = json!({ "cluster_id": cluster });
    server
        .post(&format!("{host}/actions/bind"), &again)
        .await
        .expect(409);

    let server = server.restart().await;
    let registered = register_again(&server, &host).await;
    assert_eq!(registered["status"], "discovering");
    assert_eq!(registered["cluster_id"], *cluster);
    reply_until(&server, &host, "known").await;
    wait_status(&server, &path, "ready").await;

    let unbind = format!("{host}/actions/unbind");
    let unbound = server.post(&unbind, &json!({})).await.expect(200);
    assert_eq!(unbound["status"], "unbinding");
    assert!(unbound.get("cluster_id").is_none(), "{unbound}");
    assert_eq!(unbound["role"], "auto-assign");
    let members = server.get(&path).await.expect(200);
    assert_eq!(members["hosts"], json!([]));
    assert_eq!(members["status"], "insufficient", "{members}");
    server.post(&unbind, &json!({})).await.expect(409);

    let server = server.restart().await;
    let registered = register_again(&server, &host).await;
    assert_eq!(registered["status"], "discovering-unbound");
    reply_until(&server, &host, "known-unbound").await;
    let names = event_names(&server, 1).await;
    for name in ["host_bind_succeeded", "host_unbind_succeeded"] {
        assert!(names.iter().any(|one| one == name), "{name}: {names:?}");
    }
    bind(&server, &host, &cluster).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bindings_that_do_not_fit_are_refused() {
    let server = Server::start().await;
    let pool = server.infra_env(None).await;
    let host = server.host(&pool, 1).await;
    let bind = format!("{host}/actions/bind");
    let cluster = single_node(&server).await;
    let early = server.post(&bind, &json!({ "cluster_id": cluster })).await;
    let early = early.expect(409);
    assert!(
        early["reason"]
            .as_str()
            .unwrap()
            .contains("discovering-unbound"),
        "{early}"
    );
    let reply = server.reply(&host, "inventory", &inventory(1)).await;
    reply.expect(204);
    let unknown = json!({ "cluster_id": host_id(99) });
    server.post(&bind, &unknown).await.expect(400);
    server.post(&bind, &json!({})).await.expect(400);
    let other = format!("/v2/infra-envs/{pool}/hosts/{}/actions/bind", host_id(7));
    server.post(&other, &unknown).await.expect(404);
    let names = event_names(&server, 1).await;
    let failed = names.iter().filter(|name| *name == "host_bind_failed");
    assert_eq!(failed.count(), 2, "{names:?}");

    let own = server.infra_env(Some(&cluster)).await;
    let member = server.host(&own, 2).await;
    let unbind = format!("{member}/actions/unbind");
    server.post(&unbind, &json!({})).await.expect(409);
    let names = event_names(&server, 2).await;
    assert!(names.iter().any(|name| name == "host_unbind_failed"));

    // The same machine booted the images of two infra-envs.
    let twin = pool_host(&server, &pool, 2).await;
    let twin = format!("{twin}/actions/bind");
    server
        .post(&twin, &json!({ "cluster_id": cluster }))
        .await
        .expect(409);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_clusters_take_no_pool_host() {
    let server = Server::with(|settings| settings.max_hosts_per_cluster = 1).await;
    let pool = server.infra_env(None).await;
    let cluster = server.cluster(json!({})).await;
    let first = pool_host(&server, &pool, 1).await;
    let second = pool_host(&server, &pool, 2).await;
    bind(&server, &first, &cluster).await;
    let params = json!({ "cluster_id": cluster });
    let refused = server
        .post(&format!("{second}/actions/bind"), &params)
        .await;
    refused.expect(400);
    let record = server.get(&second).await.expect(200);
    assert_eq!(record["status"], "known-unbound");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_cluster_leaves_its_late_bound_hosts_to_the_pool() {
    let server = Server::start().await;
    let pool = server.infra_env(None).await;
    let guest = pool_host(&server, &pool, 1).await;
    let cluster = server.cluster(json!({})).await;
    let own = server.infra_env(Some(&cluster)).await;
    let member = server.host(&own, 2).await;
    bind(&server, &guest, &cluster).await;
    server
        .delete(&format!("/v2/clusters/{cluster}"))
        .await
        .expect(204);
    server.get(&member).await.expect(404);
    let record = server.get(&guest).await.expect(200);
    assert_eq!(record["status"], "unbinding");
    assert!(record.get("cluster_id").is_none(), "{record}");
    let registered = register_again(&server, &guest).await;
    assert_eq!(registered["status"], "discovering-unbound");
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_bindings_and_polls_end_in_one_cluster() {
    let server = Server::start().await;
    let pool = server.infra_env(None).await;
    let host = pool_host(&server, &pool, 1).await;
    let (one, two) = (single_node(&server).await, single_node(&server).await);
    let path = format!("{host}/actions/bind");
    let bind = async |cluster: &str| {
        let answer = server.post(&path, &json!({ "cluster_id": cluster })).await;
        answer.status.as_u16()
    };
    let instructions = format!("{host}/instructions");
    let poll = async || {
        for _ in 0..20 {
            server.get(&instructions).await.expect(200);
        }
    };
    let (first, second, ()) = tokio::join!(bind(&one), bind(&two), poll());
    let mut statuses = [first, second];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    let cluster = if first == 200 { one } else { two };
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["cluster_id"], *cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn pool_hosts_need_four_validations() {
    let server = Server::start().await;
    let pool = server.infra_env(None).await;
    let params = json!({ "host_id": host_id(1), "discovery_agent_version": "registry.example.com/agent:old" });
    let path = format!("/v2/infra-envs/{pool}/hosts");
    server.post(&path, &params).await.expect(201);
    let host = format!("{path}/{}", host_id(1));
    let mut machine = inventory(1);
    machine["routes"] = json!([]);
    let reply = server.reply(&host, "inventory", &machine).await;
    reply.expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["status"], "known-unbound", "{record}");
    let shown = record["validations_info"].as_str().unwrap();
    assert!(shown.contains("compatible-agent"), "{shown}");

    machine["hostname"] = json!("localhost");
    let reply = server.reply(&host, "inventory", &machine).await;
    reply.expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["status"], "insufficient-unbound", "{record}");
    let info = record["status_info"].as_str().unwrap();
    assert!(info.contains("localhost"), "{info}");
    assert!(!info.contains("agent"), "only blocking messages: {info}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_follow_the_inventory_until_a_user_sets_one() {
    let server = Server::start().await;
    let pool = server.infra_env(None).await;
    let host = pool_host(&server, &pool, 1).await;
    let mut machine = inventory(1);
    machine["hostname"] = json!("renamed");
    let reply = server.reply(&host, "inventory", &machine).await;
    reply.expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["requested_hostname"], "renamed");
    let listed = server.get(&format!("/v2/infra-envs/{pool}/hosts")).await;
    assert_eq!(listed.expect(200)[0]["requested_hostname"], "renamed");

    let name = json!({ "host_name": "renamed" });
    server.patch(&host, &name).await.expect(201);
    let reply = server.reply(&host, "inventory", &inventory(1)).await;
    reply.expect(204);
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["requested_hostname"], "renamed");
}
