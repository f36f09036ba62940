//! The audit log.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::harness::{BASE, PULL_SECRET, Server, cluster_params, inventory};
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
    half_sent(&site).await;
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
// limit: audit records of refused changes
#[tokio::test(flavor = "multi_thread")]
async fn oldest_records_are_deleted() {
    let server = Server::with(|settings| {
        settings.max_audit_records = 70;
        settings.max_audit_refusals = 100;
    })
    .await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}");
    for number in 0..200 {
        server.post("/v2/clusters", &json!({})).await.expect(400);
        let name = json!({ "name": format!("c{number}") });
        server.patch(&path, &name).await.expect(201);
    }
    let found = parsed(&server.get("/v2/audit").await.text);
    // Each 64th record trims: so many may exceed the limit.
    for (status, limit) in [(400, 100), (201, 70)] {
        let kept = found.iter().filter(|one| one["status"] == status).count();
        assert!((limit..limit + 64).contains(&kept), "{status}: {kept}");
    }
    assert_eq!(found.last().unwrap()["id"], 401, "the newest");
    assert!(
        found.iter().all(|one| one["user_name"] == "admin"),
        "{found:?}"
    );
}

// share: audit records
// share: audit records of refused changes
#[tokio::test(flavor = "multi_thread")]
async fn a_user_pushes_out_no_records_of_others() {
    let site = SecuredServer::oidc(|settings| {
        settings.max_audit_records = 70;
        settings.max_audit_refusals = 70;
    })
    .await;
    let (alice, bob) = (site.resources("alice").await, site.resources("bob").await);
    let of_bob = format!("/v2/clusters/{}", bob.cluster);
    let delete = async |user: &str| site.send(user, Method::DELETE, &of_bob, None).await;
    delete("auditor").await.expect(403);
    let of_alice = format!("/v2/clusters/{}", alice.cluster);
    for number in 0..150 {
        delete("alice").await.expect(404);
        let name = json!({ "name": format!("c{number}") });
        let rename = site.send("alice", Method::PATCH, &of_alice, Some(&name));
        rename.await.expect(201);
    }
    let found = records(&site, "").await;
    let count = |user: &str, status: u16| {
        let found = found.iter();
        let of_user = found.filter(|one| one["user_name"] == user && one["status"] == status);
        of_user.count()
    };
    assert_eq!(count("bob", 201), 2, "cluster and infra-env");
    assert_eq!(count("auditor", 403), 1);
    for status in [404, 201] {
        let own = count("alice", status);
        assert!((60..70 + 64).contains(&own), "{status}: {own}");
    }
}

/// A request of alice whose body stops, and whose connection is then closed.
async fn half_sent(site: &SecuredServer) {
    let address = site.server.url.strip_prefix("http://").unwrap();
    let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
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
}

#[tokio::test(flavor = "multi_thread")]
async fn records_wait_for_no_connection_of_the_pool() {
    use sqlx::Connection as _;
    const REQUESTS: i64 = 100;
    let site = SecuredServer::oidc(|settings| settings.db_max_open_connections = 4).await;
    let options = site.server.database.options();
    let mut blocking = sqlx::PgConnection::connect_with(&options).await.unwrap();
    let mut reading = sqlx::PgConnection::connect_with(&options).await.unwrap();
    // Requests hold every connection of the pool, and wait for the table.
    sqlx::raw_sql("begin; lock table clusters in access exclusive mode")
        .execute(&mut blocking)
        .await
        .unwrap();
    let params = cluster_params();
    let busy = (0..8).map(|_| site.send("root", Method::POST, "/v2/clusters", Some(&params)));
    let busy = futures_util::future::join_all(busy);
    let work = async {
        let is_busy = "select count(*) from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock'";
        loop {
            let waiting = sqlx::query_scalar::<_, i64>(is_busy);
            // One of the four listens for notifications.
            if waiting.fetch_one(&mut reading).await.unwrap() >= 3 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        for _ in 0..REQUESTS {
            half_sent(&site).await;
        }
        let count = "select count(*) from audit_records where operation = 'v2RegisterCluster'";
        let mut found = 0;
        while found < REQUESTS {
            let counted = sqlx::query_scalar::<_, i64>(count);
            found = counted.fetch_one(&mut reading).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        blocking.close().await.unwrap();
    };
    let (_, ()) = tokio::join!(busy, work);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_appended_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    std::fs::write(&path, "{\"id\":0}\n").unwrap();
    let server = Server::with(|settings| settings.audit_log_file = Some(path.clone())).await;
    let id = server.cluster(json!({})).await;
    server
        .delete(&format!("/v2/clusters/{id}"))
        .await
        .expect(204);
    server.post("/v2/clusters", &json!({})).await.expect(400);
    let lines = server
        .until("the lines", async || {
            let lines = std::fs::read_to_string(&path).unwrap();
            if lines.lines().count() == 4 {
                Ok(lines)
            } else {
                Err(lines)
            }
        })
        .await;
    let exported = parsed(&server.get("/v2/audit").await.text);
    assert_eq!(parsed(&lines)[1..], exported);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_fails_no_change() {
    let server = Server::with(|settings| settings.audit_log_file = Some("/dev/full".into())).await;
    server.cluster(json!({})).await;
    server.post("/v2/clusters", &json!({})).await.expect(400);
    let exported = parsed(&server.get("/v2/audit").await.text);
    assert_eq!(exported.len(), 2);
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
