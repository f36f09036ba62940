//! Clusters and infra-envs of users, and of their organisations.

use std::collections::BTreeSet;

use api_server::operations::access::Scheme;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, cluster_params, merged};
use crate::secured::{SecuredServer, pull_secret, with};

#[tokio::test(flavor = "multi_thread")]
async fn users_see_their_own() {
    let site = SecuredServer::oidc(|_| {}).await;
    let (own, other) = (site.resources("alice").await, site.resources("bob").await);
    let names = async |user: &str, path: &str| -> BTreeSet<String> {
        let listed = site.get(user, path).await.expect(200);
        let listed = listed.as_array().unwrap().iter();
        listed
            .map(|one| one["user_name"].as_str().unwrap().to_owned())
            .collect()
    };
    for path in [
        "/v2/clusters",
        "/v2/infra-envs",
        "/v2/clusters?with_hosts=true",
    ] {
        for (user, expected) in [
            ("alice", "alice"),
            ("bob", "bob"),
            ("carol", ""),
            ("admin", ""),
            ("root", "alice bob"),
            ("auditor", "alice bob"),
        ] {
            let expected: BTreeSet<String> =
                expected.split_whitespace().map(str::to_owned).collect();
            assert_eq!(names(user, path).await, expected, "{user} {path}");
        }
    }
    let cluster = format!("/v2/clusters/{}", own.cluster);
    let shown = site.get("alice", &cluster).await.expect(200);
    assert_eq!(shown["email_domain"], "lab.example");
    assert_eq!(shown["hosts"][0]["user_name"], "alice");
    // Clusters that bodies name.
    let params = json!({
        "name": "x", "pull_secret": pull_secret("bob"), "openshift_version": "4.18", "cluster_id": own.cluster,
    });
    site.send("bob", Method::POST, "/v2/infra-envs", Some(&params))
        .await
        .expect(404);
    let bind = format!(
        "/v2/infra-envs/{}/hosts/{}/actions/bind",
        other.infra_env, other.host
    );
    let params = json!({ "cluster_id": own.cluster });
    site.send("bob", Method::POST, &bind, Some(&params))
        .await
        .expect(404);
    // Events of others, and of all.
    let events =
        async |user: &str, query: String| site.get(user, &format!("/v2/events{query}")).await;
    events("alice", format!("?cluster_id={}", own.cluster))
        .await
        .expect(200);
    events("alice", format!("?infra_env_id={}", own.infra_env))
        .await
        .expect(200);
    events("bob", format!("?cluster_id={}", own.cluster))
        .await
        .expect(404);
    let mixed = format!(
        "?cluster_id={}&infra_env_id={}",
        other.cluster, own.infra_env
    );
    events("bob", mixed).await.expect(404);
    events("bob", format!("?host_ids={}", own.host))
        .await
        .expect(403);
    events("bob", String::new()).await.expect(403);
    events("root", String::new()).await.expect(200);
    // Deleted clusters.
    site.send("alice", Method::DELETE, &cluster, None)
        .await
        .expect(204);
    let deleted = async |user: &str| {
        let request = site.server.request(Method::GET, &cluster);
        let request = request.header("get_unregistered_clusters", "true");
        Server::send(with(request, Scheme::User, &site.user(user))).await
    };
    deleted("alice").await.expect(404);
    deleted("root").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn organisations_read_together() {
    let site = SecuredServer::oidc(|settings| settings.enable_org_tenancy = true).await;
    let of = |name: &str, org: &str| site.user_with(name, json!({ "org_id": org }));
    let params = cluster_params();
    let params = merged(params, json!({ "pull_secret": pull_secret("alice") }));
    let send = async |token: String, method: Method, path: &str, body: &Value| {
        let request = site.server.request(method, path).json(body);
        Server::send(with(request, Scheme::User, &token)).await
    };
    let create = send(
        of("alice", "research"),
        Method::POST,
        "/v2/clusters",
        &params,
    )
    .await;
    let id = create.expect(201)["id"].as_str().unwrap().to_owned();
    let path = format!("/v2/clusters/{id}");
    let change = json!({ "name": "renamed" });
    send(of("dora", "research"), Method::GET, &path, &json!({}))
        .await
        .expect(200);
    send(of("dora", "research"), Method::PATCH, &path, &change)
        .await
        .expect(403);
    send(of("eve", "sales"), Method::GET, &path, &json!({}))
        .await
        .expect(404);
    send(of("eve", "sales"), Method::PATCH, &path, &change)
        .await
        .expect(404);
    send(of("eve", ""), Method::GET, &path, &json!({}))
        .await
        .expect(404);
    send(of("alice", "research"), Method::PATCH, &path, &change)
        .await
        .expect(201);
    // Credentials of a cluster are its owner's.
    let credentials = format!("{path}/downloads/credentials?file_name=kubeconfig");
    send(
        of("dora", "research"),
        Method::GET,
        &credentials,
        &json!({}),
    )
    .await
    .expect(403);
    let listed = send(
        of("dora", "research"),
        Method::GET,
        "/v2/clusters",
        &json!({}),
    )
    .await;
    assert_eq!(listed.expect(200).as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn organisations_have_one_share() {
    let site = SecuredServer::oidc(|settings| {
        settings.enable_org_tenancy = true;
        settings.max_clusters_per_owner = 2;
    })
    .await;
    let create = async |user: &str, org: &str| {
        let secret = json!({ "pull_secret": pull_secret(user) });
        let params = merged(cluster_params(), secret);
        let request = site.server.request(Method::POST, "/v2/clusters");
        let token = site.user_with(user, json!({ "org_id": org }));
        let request = with(request.json(&params), Scheme::User, &token);
        Server::send(request).await
    };
    create("alice", "research").await.expect(201);
    create("dora", "research").await.expect(201);
    let refused = create("alice", "research").await;
    assert!(refused.text.contains("research has 2"), "{}", refused.text);
    refused.expect(409);
    create("eve", "sales").await.expect(201);
}
