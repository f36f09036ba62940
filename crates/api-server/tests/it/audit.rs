//! The audit log.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::harness::{BASE, PULL_SECRET, Server, inventory};
use crate::secured::SecuredServer;

async fn records(site: &SecuredServer, query: &str) -> Vec<Value> {
    let answer = site.get("root", &format!("/v2/audit{query}")).await;
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    parsed(&answer.text)
}

fn parsed(lines: &str) -> Vec<Value> {
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_by_users_are_recorded() {
    let site = SecuredServer::oidc(|_| {}).await;
    let own = site.resources("alice").await;
    let cluster = format!("/v2/clusters/{}", own.cluster);
    site.get("alice", &cluster).await.expect(200);
    let secret = json!({ "name": "renamed", "pull_secret": PULL_SECRET, "ssh_public_key": "" });
    site.send("alice", Method::PATCH, &cluster, Some(&secret))
        .await
        .expect(201);
    site.send("bob", Method::DELETE, &cluster, None)
        .await
        .expect(404);
    site.send("auditor", Method::DELETE, &cluster, None)
        .await
        .expect(403);
    site.server.delete(&cluster).await.expect(401);
    let request = site.server.request(
        Method::POST,
        &format!("{cluster}/actions/cancel?token=secret"),
    );
    let id = "0d7c0a52-9b9d-4f7c-9d0a-0d9b6f7f0a01";
    let request = request
        .header("x-request-id", id)
        .header("authorization", site.user("root"));
    Server::send(request).await.expect(409);
    let found = records(&site, "").await;
    let summary: Vec<_> = found
        .iter()
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap().to_owned();
            (
                text("user_name"),
                text("operation"),
                one["status"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("alice", "v2RegisterCluster", 201),
        ("alice", "RegisterInfraEnv", 201),
        ("alice", "V2UpdateCluster", 201),
        ("bob", "v2DeregisterCluster", 404),
        ("auditor", "v2DeregisterCluster", 403),
        ("root", "V2CancelInstallation", 409),
    ];
    let expected =
        expected.map(|(user, operation, status)| (user.to_owned(), operation.to_owned(), status));
    assert_eq!(summary, expected);
    assert_eq!(found[0]["cluster_id"], own.cluster.as_str());
    assert_eq!(found[1]["infra_env_id"], own.infra_env.as_str());
    assert_eq!(found[2]["path"], format!("{BASE}{cluster}"));
    assert_eq!(found[2]["method"], "PATCH");
    assert_eq!(found[5]["request_id"], id);
    assert_eq!(found[5]["path"], format!("{BASE}{cluster}/actions/cancel"));
    let text = serde_json::to_string(&found).unwrap();
    for secret in ["auths", "secret", "Bearer", "eyJ"] {
        assert!(!text.contains(secret), "{text}");
    }
    // Increments.
    let third = found[2]["id"].as_i64().unwrap();
    assert_eq!(records(&site, &format!("?after={third}")).await, found[3..]);
    site.get("alice", "/v2/audit").await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_connection_leaves_a_record() {
    let site = SecuredServer::oidc(|_| {}).await;
    let address = site.server.url.strip_prefix("http://").unwrap().to_owned();
    let mut connection = tokio::net::TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST {BASE}/v2/clusters HTTP/1.1\r\nhost: {address}\r\nauthorization: {}\r\ncontent-type: application/json\r\n\
         content-length: 1000\r\nexpect: 100-continue\r\n\r\n",
        site.user("alice")
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    // The handler has begun when it requests the body.
    let mut interim = [0; 12];
    connection.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100");
    drop(connection);
    let found = site
        .server
        .until("the record", async || match records(&site, "").await {
            found if found.is_empty() => Err("no record"),
            found => Ok(found),
        })
        .await;
    assert_eq!(found.len(), 1);
    // The handler sees the end of the body, or is dropped.
    let status = found[0]["status"].as_u64().unwrap();
    assert!([400, 499].contains(&status), "{status}");
    assert_eq!(found[0]["operation"], "v2RegisterCluster");
}

// limit: audit records
#[tokio::test(flavor = "multi_thread")]
async fn oldest_records_are_deleted() {
    let server = Server::with(|settings| settings.max_audit_records = 100).await;
    for _ in 0..200 {
        server.post("/v2/clusters", &json!({})).await.expect(400);
    }
    let found = parsed(&server.get("/v2/audit").await.text);
    // Each 64th record trims: so many may exceed the limit.
    assert!((100..100 + 64).contains(&found.len()), "{}", found.len());
    assert_eq!(found.last().unwrap()["id"], 200);
    assert!(
        found.iter().all(|one| one["user_name"] == "admin"),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_exported_page_by_page_and_never_changed() {
    use sqlx::Connection as _;
    let server = Server::start().await;
    let mut connection = sqlx::PgConnection::connect_with(&server.database.options())
        .await
        .unwrap();
    let fill = "insert into audit_records (recorded_at, user_name, org_id, operation, method, path, status)
        select now(), 'x', '', 'x', 'POST', '/', 200 from generate_series(1, 2500)";
    sqlx::query(fill).execute(&mut connection).await.unwrap();
    let found = parsed(&server.get("/v2/audit").await.text);
    let ids: Vec<_> = found
        .iter()
        .map(|one| one["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids, (1..=2500).collect::<Vec<_>>());
    let change = sqlx::query("update audit_records set user_name = 'y'");
    let refused = change.execute(&mut connection).await.unwrap_err();
    assert!(refused.to_string().contains("append-only"), "{refused}");
}

/// Without authentication hosts are administrators, too: their replies would push out the records of changes.
#[tokio::test(flavor = "multi_thread")]
async fn replies_of_hosts_are_not_recorded() {
    let server = Server::start().await;
    let cluster = server.cluster(json!({})).await;
    let infra_env = server.infra_env(Some(&cluster)).await;
    let host = server.host(&infra_env, 1).await;
    let reply = server.reply(&host, "inventory", &inventory(1)).await;
    reply.expect(204);
    let role = json!({ "host_role": "worker" });
    server.patch(&host, &role).await.expect(201);
    let found = parsed(&server.get("/v2/audit").await.text);
    let operations: Vec<_> = found
        .iter()
        .map(|one| one["operation"].as_str().unwrap())
        .collect();
    let expected = ["v2RegisterCluster", "RegisterInfraEnv", "v2UpdateHost"];
    assert_eq!(operations, expected);
}
