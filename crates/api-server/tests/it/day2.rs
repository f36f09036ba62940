//! Day 2: hosts that join installed clusters, and clusters that are not installed here.

use std::time::Duration;

use serde_json::{Value, json};

use crate::binding::{bind, pool_host};
use crate::harness::{AGENT, Answer, PULL_SECRET, Server, host_id, inventory};
use crate::installation::{install_single_node, progress, ready};

const OPENSHIFT_ID: &str = "6b1f3a52-6f5a-4c5e-9c0e-3f4d5a6b7c8d";

/// An imported cluster's id.
async fn imported(server: &Server, api: &str) -> String {
    let params = json!({ "name": "scale-up-demo", "api_vip_dnsname": api, "openshift_cluster_id": OPENSHIFT_ID });
    let cluster = server.post("/v2/clusters/import", &params).await;
    cluster.expect(201)["id"].as_str().unwrap().to_owned()
}

/// The argument of a step in the host's instructions.
async fn step(server: &Server, host: &str, kind: &str) -> Value {
    let steps = server.get(&format!("{host}/instructions")).await;
    let steps = steps.expect(200);
    let found = steps["instructions"].as_array().into_iter().flatten();
    let mut found = found.filter(|step| step["step_type"] == kind);
    let step = found
        .next()
        .unwrap_or_else(|| panic!("no {kind} in {steps}"));
    serde_json::from_str(step["args"][0].as_str().unwrap()).unwrap()
}

async fn status(server: &Server, host: &str) -> String {
    let record = server.get(host).await.expect(200);
    record["status"].as_str().unwrap().to_owned()
}

/// Requests an action of a host.
async fn act(server: &Server, host: &str, action: &str) -> Answer {
    let path = format!("{host}/actions/{action}");
    server.post(&path, &json!({})).await
}

/// Polls as an agent with a good clock.
async fn poll(server: &Server, host: &str) {
    let now = service::clock::now().timestamp();
    let path = format!("{host}/instructions?timestamp={now}");
    server.get(&path).await.expect(200);
}

/// Sends the results that make a registered day-2 host known.
pub(crate) async fn make_known(server: &Server, host: &str, number: u32) {
    let reply = server.reply(host, "inventory", &inventory(number)).await;
    reply.expect(204);
    let downloaded = json!({ "is_success": true, "url": "http://api:22624/config/worker" });
    let reply = server.reply(host, "api-vip-connectivity-check", &downloaded);
    reply.await.expect(204);
    // Only hosts of user-managed networks need the names.
    let prefixes = ["api", "api-int", "console-openshift-console.apps"];
    let resolutions = prefixes.map(|prefix| {
        json!({ "domain_name": format!("{prefix}.demo.example.com"), "ipv4_addresses": ["192.0.2.9"], "ipv6_addresses": [] })
    });
    let resolved = json!({ "resolutions": resolutions });
    let reply = server.reply(host, "domain-resolution", &resolved);
    reply.await.expect(204);
    poll(server, host).await;
    let record = server.get(host).await.expect(200);
    assert_eq!(record["status"], "known", "{record}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_join_an_installed_cluster() {
    let server = Server::start().await;
    let (id, first) = install_single_node(&server).await;
    let path = format!("/v2/clusters/{id}");
    let allow = format!("{path}/actions/allow-add-hosts");
    let cluster = server.post(&allow, &json!({})).await.expect(202);
    assert_eq!(cluster["kind"], "AddHostsCluster");
    assert_eq!(cluster["status"], "adding-hosts");
    assert_eq!(cluster["api_vip_dns_name"], "api.demo.example.com");
    server.post(&allow, &json!({})).await.expect(400);
    assert_eq!(status(&server, &first).await, "installed");

    let (infra_env, _) = first.split_once("/hosts/").unwrap();
    let infra_env = infra_env.rsplit('/').next().unwrap().to_owned();
    let host = server.host(&infra_env, 2).await;
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["kind"], "AddToExistingClusterHost");
    let reply = server.reply(&host, "inventory", &inventory(2)).await;
    reply.expect(204);
    assert_eq!(status(&server, &host).await, "insufficient");
    let token = json!({ "ignition_endpoint_token": "secret-token" });
    server.patch(&host, &token).await.expect(201);
    let check = step(&server, &host, "api-vip-connectivity-check").await;
    let url = "http://api.demo.example.com:22624/config/worker";
    assert_eq!(check["url"], url);
    assert_eq!(check["request_headers"][0]["value"], "Bearer secret-token");
    act(&server, &host, "install").await.expect(409);
    make_known(&server, &host, 2).await;
    let ignition = format!("{host}/ignition");
    server.get(&ignition).await.expect(409);

    let installing = act(&server, &host, "install").await.expect(202);
    assert_eq!(installing["status"], "installing");
    assert_eq!(installing["role"], "worker");
    let config = server.get(&ignition).await.expect(200);
    let config: Value = serde_json::from_str(config["config"].as_str().unwrap()).unwrap();
    let merge = &config["ignition"]["config"]["merge"][0];
    assert_eq!(merge["source"], url);
    assert_eq!(merge["httpHeaders"][0]["value"], "Bearer secret-token");
    let file = host.replace("/infra-envs/", "/infra-env/");
    let file = server.get(&format!("{file}/downloads/ignition")).await;
    let name = format!("attachment; filename=\"worker-{}.ign\"", host_id(2));
    assert_eq!(file.header("content-disposition"), name);
    assert_eq!(file.expect(200), config);
    let request = step(&server, &host, "install").await;
    assert_eq!(request["role"], "worker");
    assert!(request.get("mco_image").is_none(), "{request}");

    let stages = [
        "Starting installation",
        "Installing",
        "Writing image to disk",
    ];
    progress(&server, &host, &stages).await;
    assert_eq!(status(&server, &host).await, "installing-in-progress");
    progress(&server, &host, &["Rebooting"]).await;
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["status"], "added-to-existing-cluster");
    assert_eq!(record["progress"]["current_stage"], "Done");
    assert_eq!(record["progress"]["installation_percentage"], 100);
    reset(&server, &infra_env, &host, &first).await;
}

/// Boots the discovery image by mistake, resets the host and registers it again.
async fn reset(server: &Server, infra_env: &str, host: &str, first: &str) {
    server.host(infra_env, 2).await;
    let pending = status(server, host).await;
    assert_eq!(pending, "installing-pending-user-action");
    let reset = act(server, host, "reset").await.expect(200);
    assert_eq!(reset["status"], "resetting-pending-user-action");
    act(server, first, "reset").await.expect(409);
    server.host(infra_env, 2).await;
    assert_eq!(status(server, host).await, "discovering");
    let again = act(server, host, "reset").await.expect(200);
    assert_eq!(again["status"], "resetting-pending-user-action");
    let events = server
        .get(&format!("/v2/events?host_id={}", host_id(2)))
        .await
        .expect(200);
    let mut names = events.as_array().unwrap().iter();
    assert!(names.any(|event| event["name"] == "host_installation_started"));
}

#[tokio::test(flavor = "multi_thread")]
async fn only_installed_clusters_accept_day2_hosts() {
    let server = Server::start().await;
    let (id, host) = ready(&server).await;
    for action in ["allow-add-hosts", "allow-add-workers"] {
        let path = format!("/v2/clusters/{id}/actions/{action}");
        server.post(&path, &json!({})).await.expect(400);
        let unknown = format!("/v2/clusters/{}/actions/{action}", host_id(9));
        server.post(&unknown, &json!({})).await.expect(404);
    }
    act(&server, &host, "install").await.expect(409);
    let pool = server.infra_env(None).await;
    let alone = pool_host(&server, &pool, 2).await;
    for action in ["install", "reset"] {
        act(&server, &alone, action).await.expect(409);
    }
    server.get(&format!("{alone}/ignition")).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn pool_hosts_join_an_imported_cluster() {
    let server = Server::start().await;
    let id = imported(&server, "api.demo.example.com").await;
    let path = format!("/v2/clusters/{id}");
    let cluster = server.get(&path).await.expect(200);
    assert_eq!(cluster["name"], "demo");
    assert_eq!(cluster["base_dns_domain"], "example.com");
    assert_eq!(cluster["kind"], "AddHostsCluster");
    assert_eq!(cluster["status"], "adding-hosts");
    assert_eq!(cluster["imported"], true);
    assert_eq!(cluster["openshift_cluster_id"], OPENSHIFT_ID);
    let secret = json!({ "pull_secret": PULL_SECRET, "api_vip_dns_name": "192.0.2.9" });
    server.patch(&path, &secret).await.expect(201);

    let pool = server.infra_env(None).await;
    let host = pool_host(&server, &pool, 1).await;
    bind(&server, &host, &id).await;
    server.host(&pool, 1).await;
    let record = server.get(&host).await.expect(200);
    assert_eq!(record["kind"], "AddToExistingClusterHost");
    make_known(&server, &host, 1).await;
    let check = step(&server, &host, "api-vip-connectivity-check").await;
    assert_eq!(check["url"], "http://192.0.2.9:22624/config/worker");
    act(&server, &host, "install").await.expect(202);
    progress(&server, &host, &["Starting installation", "Rebooting"]).await;
    assert_eq!(status(&server, &host).await, "added-to-existing-cluster");
    let unbound = act(&server, &host, "unbind").await.expect(200);
    assert_eq!(unbound["status"], "unbinding-pending-user-action");
    assert_eq!(unbound["kind"], "Host");
}

#[tokio::test(flavor = "multi_thread")]
async fn day2_hosts_that_stop_while_installing_fail() {
    let server = Server::with(|settings| {
        settings.host_max_disconnection_time = Duration::from_secs(1);
    })
    .await;
    let id = imported(&server, "api.demo.example.com").await;
    let infra_env = server.infra_env(Some(&id)).await;
    let host = server.host(&infra_env, 1).await;
    server
        .until("the installation starts", async || {
            let downloaded = json!({ "is_success": true });
            let check = "api-vip-connectivity-check";
            let params = json!({ "host_id": host_id(1), "discovery_agent_version": AGENT });
            let register = format!("/v2/infra-envs/{infra_env}/hosts");
            server.post(&register, &params).await.expect(201);
            server.reply(&host, "inventory", &inventory(1)).await;
            server.reply(&host, check, &downloaded).await;
            poll(&server, &host).await;
            let install = act(&server, &host, "install").await;
            if install.status == 202 {
                Ok(())
            } else {
                Err(install.text)
            }
        })
        .await;
    server
        .until("the host failed", async || {
            let found = status(&server, &host).await;
            if found == "error" { Ok(()) } else { Err(found) }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnected_clusters_are_records_alone() {
    let server = Server::start().await;
    let path = "/v2/clusters/disconnected";
    let params = json!({ "name": "edge", "openshift_version": "4.19" });
    let cluster = server.post(path, &params).await.expect(201);
    assert_eq!(cluster["kind"], "DisconnectedCluster");
    assert_eq!(cluster["status"], "unmonitored");
    let id = cluster["id"].as_str().unwrap();
    let stored = server.get(&format!("/v2/clusters/{id}")).await.expect(200);
    assert_eq!(stored["status"], "unmonitored");
    let pool = server.infra_env(None).await;
    let host = pool_host(&server, &pool, 1).await;
    let bind = json!({ "cluster_id": id });
    let refused = server.post(&format!("{host}/actions/bind"), &bind).await;
    refused.expect(409);
    let nameless = json!({ "openshift_version": "4.19" });
    server.post(path, &nameless).await.expect(400);
    let versionless = json!({ "name": "edge", "openshift_version": "" });
    server.post(path, &versionless).await.expect(400);
    let nowhere =
        json!({ "name": "x", "api_vip_dnsname": "", "openshift_cluster_id": OPENSHIFT_ID });
    server
        .post("/v2/clusters/import", &nowhere)
        .await
        .expect(400);
    let nameless = json!({ "name": "No_Name", "api_vip_dnsname": "192.0.2.1", "openshift_cluster_id": OPENSHIFT_ID });
    server
        .post("/v2/clusters/import", &nameless)
        .await
        .expect(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_validation_is_checked_again() {
    let server = Server::start().await;
    let (_, host) = ready(&server).await;
    let broken = json!({
        "step_type": "installation-disk-speed-check", "step_id": "installation-disk-speed-check-1", "exit_code": 1,
        "output": json!({ "path": "/dev/disk/by-id/wwn-1", "io_sync_duration": 0 }).to_string(),
    });
    let reply = server.post(&format!("{host}/instructions"), &broken).await;
    reply.expect(204);
    assert_eq!(status(&server, &host).await, "insufficient");
    let reset = |host: &str, id: &str| format!("{host}/actions/reset-validation/{id}");
    let speed = "sufficient-installation-disk-speed";
    let answer = server.patch(&reset(&host, speed), &json!({})).await;
    assert_eq!(answer.text, "");
    answer.expect(200);
    assert_eq!(status(&server, &host).await, "known");
    let images = reset(&host, "container-images-available");
    server.patch(&images, &json!({})).await.expect(200);
    let other = reset(&host, "ntp-synced");
    server.patch(&other, &json!({})).await.expect(400);
    let pool = server.infra_env(None).await;
    let alone = pool_host(&server, &pool, 2).await;
    let unbound = reset(&alone, speed);
    server.patch(&unbound, &json!({})).await.expect(409);
}
