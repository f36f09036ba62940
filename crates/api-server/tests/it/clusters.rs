//! Clusters: create, list, read, update, delete.

use serde_json::{Value, json};

use crate::harness::{PULL_SECRET, Server, cluster_params, host_id, inventory, merged};

#[tokio::test(flavor = "multi_thread")]
async fn new_clusters_have_defaults() {
    let server = Server::start().await;
    let answer = server.post("/v2/clusters", &cluster_params()).await;
    let cluster = answer.expect(201);
    assert_eq!(cluster["kind"], "Cluster");
    assert_eq!(cluster["openshift_version"], "4.18.7");
    assert_eq!(cluster["control_plane_count"], 3);
    assert_eq!(cluster["cluster_networks"][0]["cidr"], "10.128.0.0/14");
    assert_eq!(cluster["service_networks"][0]["cidr"], "172.30.0.0/16");
    assert_eq!(cluster["pull_secret_set"], true);
    assert_eq!(cluster["install_completed_at"], "0001-01-01T00:00:00.000Z");
    assert_eq!(cluster["hosts"], json!([]));
    assert!(
        !cluster.to_string().contains("dXNlcjpwYXNzd29yZA"),
        "the pull secret is not in the response"
    );
    assert!(
        cluster["validations_info"]
            .as_str()
            .unwrap()
            .contains("sufficient-masters-count")
    );

    let id = cluster["id"].as_str().unwrap();
    // A registration is answered with the state before the first evaluation.
    assert_eq!(cluster["status"], "insufficient");
    let mut read = server.get(&format!("/v2/clusters/{id}")).await.expect(200);
    assert_eq!(read["status"], "pending-for-input");
    for field in ["status", "status_info"] {
        read[field] = cluster[field].clone();
    }
    assert_eq!(read, cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_are_listed_oldest_first_with_counters() {
    let server = Server::start().await;
    assert_eq!(server.get("/v2/clusters").await.expect(200), json!([]));
    let first = server.cluster(json!({ "name": "first" })).await;
    server.cluster(json!({ "name": "second" })).await;
    let infra_env = server.infra_env(Some(&first)).await;
    server.host(&infra_env, 1).await;

    let list = server.get("/v2/clusters/").await.expect(200);
    assert_eq!(
        (list[0]["name"].as_str(), list[1]["name"].as_str()),
        (Some("first"), Some("second"))
    );
    assert_eq!(list[0]["total_host_count"], 1);
    assert_eq!(list[0]["hosts"], json!([]));
    let list = server.get("/v2/clusters?with_hosts=true").await.expect(200);
    assert_eq!(list[0]["hosts"].as_array().unwrap().len(), 1);
    let cluster = server
        .get(&format!("/v2/clusters/{first}?exclude-hosts=true"))
        .await
        .expect(200);
    assert_eq!(
        (&cluster["hosts"], &cluster["total_host_count"]),
        (&json!([]), &json!(1))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_are_validated_and_stored() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}");
    let changed = server
        .patch(&path, &json!({ "name": "other", "tags": "blue,green" }))
        .await
        .expect(201);
    assert_eq!(
        (changed["name"].as_str(), changed["tags"].as_str()),
        (Some("other"), Some("blue,green"))
    );
    let refused = server
        .patch(&path, &json!({ "name": "Not Good" }))
        .await
        .expect(400);
    assert_eq!(
        (refused["kind"].as_str(), refused["id"].as_i64()),
        (Some("Error"), Some(400))
    );
    assert!(
        refused["reason"].as_str().unwrap().contains("name"),
        "{refused}"
    );
    assert_eq!(server.get(&path).await.expect(200)["name"], "other");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_unbinds_the_infra_env() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&id)).await;
    let host = server.host(&infra_env, 1).await;
    let answer = server.reply(&host, "inventory", &inventory(1)).await;
    answer.expect(204);
    server
        .delete(&format!("/v2/clusters/{id}"))
        .await
        .expect(204);
    server.get(&format!("/v2/clusters/{id}")).await.expect(404);
    server
        .delete(&format!("/v2/clusters/{id}"))
        .await
        .expect(404);
    server.get(&host).await.expect(404);
    let infra_env = server
        .get(&format!("/v2/infra-envs/{infra_env}"))
        .await
        .expect(200);
    assert!(infra_env.get("cluster_id").is_none(), "{infra_env}");
    assert_eq!(
        server
            .get(&format!("/v2/clusters/{id}/hosts"))
            .await
            .expect(200),
        json!([])
    );
    for (query, hosts) in [("", 0), ("?with_hosts=true", 1)] {
        let list = server
            .request(reqwest::Method::GET, &format!("/v2/clusters{query}"))
            .header("get_unregistered_clusters", "true");
        let listed = Server::send(list).await.expect(200);
        assert_ne!(listed[0]["deleted_at"], json!(null));
        assert_eq!(listed[0]["hosts"].as_array().unwrap().len(), hosts);
    }
    let deleted = async |id: &str| {
        let request = server
            .request(reqwest::Method::GET, &format!("/v2/clusters/{id}"))
            .header("get_unregistered_clusters", "true");
        Server::send(request).await
    };
    let cluster = deleted(&id).await.expect(200);
    assert_eq!(
        (&cluster["id"], &cluster["name"]),
        (&json!(id), &json!("demo"))
    );
    assert_ne!(cluster["deleted_at"], json!(null));
    let left = &cluster["hosts"][0];
    assert_eq!(
        (&left["id"], &left["requested_hostname"]),
        (&json!(host_id(1)), &json!("host-1"))
    );
    assert_eq!(left.get("inventory"), None, "reports are large");
    let unknown = "00000000-0000-4000-8000-000000000000";
    deleted(unknown).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_and_infra_envs_have_an_owner() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&id)).await;
    let host = server.host(&infra_env, 1).await;
    let cluster = server.get(&format!("/v2/clusters/{id}")).await.expect(200);
    assert_eq!(cluster["user_name"], "admin");
    assert_eq!(cluster["email_domain"], "Unknown");
    assert_eq!(cluster["org_soft_timeouts_enabled"], true);
    assert!(cluster["feature_usage"].as_str().unwrap().starts_with('{'));
    let path = format!("/v2/infra-envs/{infra_env}");
    assert_eq!(server.get(&path).await.expect(200)["user_name"], "admin");
    assert_eq!(server.get(&host).await.expect(200)["user_name"], "admin");

    let subscription = "00000000-0000-4000-8000-000000000001";
    for (path, count) in [
        ("/v2/clusters".to_owned(), 1),
        ("/v2/clusters?owner=admin".to_owned(), 1),
        ("/v2/clusters?owner=another".to_owned(), 0),
        (
            format!("/v2/clusters?ams_subscription_ids={subscription}"),
            0,
        ),
        ("/v2/infra-envs?owner=admin".to_owned(), 1),
        ("/v2/infra-envs?owner=another".to_owned(), 0),
    ] {
        let found = server.get(&path).await.expect(200);
        assert_eq!(found.as_array().map(Vec::len), Some(count), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn finalizing_stages_are_refused_before_the_installation() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}");
    let done = json!({ "finalizing_stage": "Done" });
    server
        .put(&format!("{path}/progress"), &done)
        .await
        .expect(400);
    let cluster = server.get(&path).await.expect(200);
    assert!(cluster["progress"].get("finalizing_stage").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn long_answers_are_compressed_on_request() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let request = server
        .request(reqwest::Method::GET, &format!("/v2/clusters/{id}"))
        .header("accept-encoding", "gzip");
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let packed = response.bytes().await.unwrap();
    let plain = flate2::read::GzDecoder::new(&packed[..]);
    let cluster: Value = serde_json::from_reader(plain).unwrap();
    assert_eq!(cluster["id"], json!(id));
}

#[tokio::test(flavor = "multi_thread")]
async fn creation_errors_name_the_field() {
    let server = Server::start().await;
    for (more, field) in [
        (json!({ "openshift_version": "4.1" }), "openshift_version"),
        (json!({ "pull_secret": "{}" }), "pull_secret"),
        (json!({ "ssh_public_key": "nonsense" }), "ssh_public_key"),
        (json!({ "base_dns_domain": "-bad-" }), "base_dns_domain"),
    ] {
        let answer = server
            .post("/v2/clusters", &merged(cluster_params(), more))
            .await
            .expect(400);
        assert!(
            answer["reason"].as_str().unwrap().contains(field),
            "{answer}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ui_settings_are_stored() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/ui-settings");
    assert_eq!(server.get(&path).await.expect(200), json!(""));
    let text = json!("AI_UI:{\"addCustomManifests\":false}");
    assert_eq!(server.put(&path, &text).await.expect(200), text);
    assert_eq!(server.get(&path).await.expect(200), text);
    server
        .put(
            "/v2/clusters/00000000-0000-4000-8000-000000000000/ui-settings",
            &text,
        )
        .await
        .expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_validations_are_strings_or_lists() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/ignored-validations");
    assert_eq!(server.get(&path).await.expect(200), json!({}));
    let set = json!({ "host-validation-ids": "[\"ntp-synced\"]", "cluster-validation-ids": ["ntp-server-configured"] });
    let answer = server.put(&path, &set).await.expect(201);
    assert_eq!(answer["host-validation-ids"], "[\"ntp-synced\"]");
    assert_eq!(
        answer["cluster-validation-ids"],
        "[\"ntp-server-configured\"]"
    );
    server
        .put(&path, &json!({ "host-validation-ids": "[\"connected\"]" }))
        .await
        .expect(400);
    assert_eq!(server.get(&path).await.expect(200), answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_registrations_are_serialized() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&id)).await;
    let register = async |number| server.host(&infra_env, number).await;
    tokio::join!(
        register(1),
        register(2),
        register(3),
        register(4),
        register(5)
    );
    let cluster = server.get(&format!("/v2/clusters/{id}")).await.expect(200);
    assert_eq!(cluster["total_host_count"], 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn install_configs_are_shown_and_overridden() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/install-config");
    let shown = async || {
        let text = server.get(&path).await.expect(200);
        let config: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        config
    };
    let config = shown().await;
    assert_eq!(config["metadata"]["name"], "demo");
    assert_eq!(
        (&config["fips"], &config["pullSecret"]),
        (&json!(false), &json!(PULL_SECRET))
    );
    let overrides = json!(r#"{"fips": true, "Networking": {"networkType": "Calico"}}"#);
    let stored = server.patch(&path, &overrides).await;
    assert_eq!((stored.status.as_u16(), stored.text.as_str()), (201, ""));
    let config = shown().await;
    assert_eq!(config["fips"], true);
    assert_eq!(config["networking"]["networkType"], "Calico");
    for wrong in [
        json!(r#"{"nothing": 1}"#),
        json!("no JSON"),
        json!({ "fips": true }),
    ] {
        server.patch(&path, &wrong).await.expect(400);
    }
    assert_eq!(shown().await["fips"], true);
    let unknown = "/v2/clusters/00000000-0000-4000-8000-000000000000/install-config";
    server.get(unknown).await.expect(404);
}
