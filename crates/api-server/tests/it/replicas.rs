//! Two replicas on one database: each shows the changes of the other at once, although it caches its own.

use serde_json::{Value, json};

use crate::harness::{Server, inventory};

async fn replicas() -> (Server, Server) {
    let first = Server::start().await;
    let second = Server::on(first.database.clone(), |_| {}).await;
    second.wait_ready().await;
    (first, second)
}

/// The cluster, and its entry of each listing.
async fn shown(server: &Server, cluster: &str) -> [Value; 3] {
    let path = format!("/v2/clusters/{cluster}");
    let whole = server.get(&path).await.expect(200);
    let listed = server.get("/v2/clusters").await.expect(200)[0].take();
    let with_hosts = server.get("/v2/clusters?with_hosts=true").await;
    [whole, listed, with_hosts.expect(200)[0].take()]
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_current_in_every_replica() {
    let (first, second) = replicas().await;
    let cluster = first.cluster(json!({})).await;
    let infra_env = first.infra_env(Some(&cluster)).await;
    shown(&second, &cluster).await;
    let host = first.host(&infra_env, 1).await;
    first
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let [whole, listed, with_hosts] = shown(&second, &cluster).await;
    assert_eq!(listed["total_host_count"], 1);
    assert_eq!(listed["hosts"], json!([]));
    for cluster in [&whole, &with_hosts] {
        assert_eq!(cluster["total_host_count"], 1);
        let text = cluster["hosts"][0]["inventory"].as_str().unwrap();
        assert!(text.contains("host-1"), "{text}");
    }
    for (number, (writer, reader)) in [(&first, &second), (&second, &first)]
        .into_iter()
        .enumerate()
    {
        let name = format!("name-{number}");
        let change = json!({ "name": name });
        let path = format!("/v2/clusters/{cluster}");
        writer.patch(&path, &change).await.expect(201);
        let change = json!({ "host_name": name });
        writer.patch(&host, &change).await.expect(201);
        for cluster in shown(reader, &cluster).await {
            assert_eq!(cluster["name"], name);
        }
        let [whole, _, with_hosts] = shown(reader, &cluster).await;
        for cluster in [whole, with_hosts] {
            assert_eq!(cluster["hosts"][0]["requested_hostname"], name);
        }
    }
    first.delete(&host).await.expect(204);
    let [whole, listed, _] = shown(&second, &cluster).await;
    assert_eq!(whole["hosts"], json!([]));
    assert!(listed.get("total_host_count").is_none());
    let path = format!("/v2/clusters/{cluster}");
    first.delete(&path).await.expect(204);
    second.get(&path).await.expect(404);
    assert_eq!(second.get("/v2/clusters").await.expect(200), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_show_heartbeats_of_every_replica() {
    let (first, second) = replicas().await;
    let cluster = first.cluster(json!({})).await;
    let infra_env = first.infra_env(Some(&cluster)).await;
    let host = first.host(&infra_env, 1).await;
    let path = format!("/v2/clusters/{cluster}");
    let seen = async |server: &Server| {
        let found = server.get(&path).await.expect(200);
        found["hosts"][0]["checked_in_at"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for reader in [&first, &second] {
        let before = seen(reader).await;
        let poll = first.get(&format!("{host}/instructions")).await;
        poll.expect(200);
        reader
            .until("the heartbeat is shown", async || {
                let now = seen(reader).await;
                if now > before { Ok(()) } else { Err(now) }
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_read_changed_infra_envs() {
    let (first, second) = replicas().await;
    let cluster = first.cluster(json!({})).await;
    let infra_env = first.infra_env(Some(&cluster)).await;
    let bound = first.host(&infra_env, 1).await;
    let pool = first.infra_env(None).await;
    let free = first.host(&pool, 2).await;
    for (infra_env, host) in [(infra_env, bound), (pool, free)] {
        first
            .reply(&host, "inventory", &inventory(1))
            .await
            .expect(204);
        let steps = async |server: &Server| {
            let answer = server.get(&format!("{host}/instructions")).await;
            answer.expect(200).to_string()
        };
        for server in [&first, &second] {
            assert!(!steps(server).await.contains("192.0.2.99"));
        }
        let change = json!({ "additional_ntp_sources": "192.0.2.99" });
        let path = format!("/v2/infra-envs/{infra_env}");
        first.patch(&path, &change).await.expect(201);
        for server in [&first, &second] {
            let steps = steps(server).await;
            assert!(steps.contains("192.0.2.99"), "{steps}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_outlive_changes_of_other_members() {
    let (first, second) = replicas().await;
    let infra_env = first.infra_env(None).await;
    let host = first.host(&infra_env, 1).await;
    first
        .reply(&host, "inventory", &inventory(1))
        .await
        .expect(204);
    let before = first.get(&host).await.expect(200);
    let change = json!({ "host_name": "renamed" });
    first.patch(&host, &change).await.expect(201);
    for server in [&first, &second] {
        let after = server.get(&host).await.expect(200);
        assert_eq!(after["requested_hostname"], "renamed");
        assert_eq!(after["inventory"], before["inventory"]);
        assert!(!after["validations_info"].as_str().unwrap().is_empty());
    }
}
