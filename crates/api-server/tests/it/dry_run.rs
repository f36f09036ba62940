//! Dry runs: the response of the real request, and nothing written.

use std::collections::BTreeMap;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};

use crate::binding::pool_host;
use crate::day2::make_known;
use crate::harness::{AGENT, Answer, PULL_SECRET, Server, cluster_params, host_id, inventory};
use crate::installation::{install_single_node, ready};

/// Every row of the database except heartbeats, and every file, by table and path.
async fn content(server: &Server, connection: &mut PgConnection) -> BTreeMap<String, String> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.tables
        where table_schema = 'public' and table_type = 'BASE TABLE' and table_name <> 'host_check_ins'",
    )
    .fetch_all(&mut *connection)
    .await
    .unwrap();
    assert!(tables.len() >= 4, "{tables:?}");
    let mut found = BTreeMap::new();
    for table in tables {
        let rows = format!(
            "select coalesce(string_agg(t::text, E'\n' order by t::text), '') from {table} t"
        );
        let rows: String = sqlx::query_scalar(AssertSqlSafe(rows))
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        found.insert(table, rows);
    }
    add_files(server.work_dir(), &mut found);
    found
}

fn add_files(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_files(&path, found);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.insert(path.display().to_string(), format!("{bytes:?}"));
        }
    }
}

async fn wait_settled(server: &Server, connection: &mut PgConnection) {
    server
        .until("refreshes are done", async || {
            let due = sqlx::query_scalar("select count(*) from clusters where refresh_due");
            let due: i64 = due.fetch_one(&mut *connection).await.unwrap();
            if due == 0 { Ok(()) } else { Err(due) }
        })
        .await;
}

/// The response without ids and times of new objects.
fn comparable(answer: &Answer) -> (u16, Value) {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| {
                    let is_time = name.ends_with("_at") || name == "timestamp";
                    !(is_time
                        || matches!(name.as_str(), "id" | "href" | "cluster_id" | "download_url"))
                });
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut body = answer.body.clone();
    strip(&mut body);
    (answer.status.as_u16(), body)
}

async fn send(server: &Server, method: &Method, path: &str, body: &Value) -> Answer {
    let request = server.request(method.clone(), path);
    let request = match body {
        Value::Null => request,
        body => request.json(body),
    };
    Server::send(request).await
}

/// Sends a request as a dry run, which must change nothing, and then really: both responses must agree.
async fn check(
    server: &Server,
    connection: &mut PgConnection,
    method: Method,
    path: &str,
    body: Value,
) -> Answer {
    wait_settled(server, connection).await;
    let before = content(server, connection).await;
    let dry = send(server, &method, &format!("{path}?dry_run=true"), &body).await;
    assert_eq!(dry.header("dry-run"), "true");
    let after = content(server, connection).await;
    for (name, rows) in &before {
        assert_eq!(
            after.get(name),
            Some(rows),
            "{method} {path} changed {name}"
        );
    }
    assert_eq!(before.len(), after.len(), "{method} {path} added a file");
    let real = send(server, &method, path, &body).await;
    assert_eq!(real.header("dry-run"), "");
    assert_eq!(comparable(&dry), comparable(&real), "{method} {path}");
    if real.status.is_success() {
        wait_settled(server, connection).await;
        let changed = content(server, connection).await;
        assert_ne!(before, changed, "{method} {path} is real");
    }
    real
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_of_clusters_write_nothing() {
    let server = Server::start().await;
    let mut connection = server.database.options().connect().await.unwrap();
    let db = &mut connection;
    let created = check(&server, db, Method::POST, "/v2/clusters", cluster_params())
        .await
        .expect(201);
    let path = format!("/v2/clusters/{}", created["id"].as_str().unwrap());
    check(
        &server,
        db,
        Method::PATCH,
        &path,
        json!({ "name": "other" }),
    )
    .await
    .expect(201);
    check(
        &server,
        db,
        Method::PATCH,
        &path,
        json!({ "name": "Not Good" }),
    )
    .await
    .expect(400);
    check(
        &server,
        db,
        Method::POST,
        &format!("{path}/actions/install"),
        json!({}),
    )
    .await
    .expect(409);
    check(
        &server,
        db,
        Method::POST,
        &format!("{path}/actions/cancel"),
        json!({}),
    )
    .await
    .expect(409);
    let overrides = json!(r#"{"fips":true}"#);
    check(
        &server,
        db,
        Method::PATCH,
        &format!("{path}/install-config"),
        overrides,
    )
    .await
    .expect(201);
    check(&server, db, Method::DELETE, &path, Value::Null)
        .await
        .expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_of_infra_envs_write_nothing() {
    let server = Server::start().await;
    let mut connection = server.database.options().connect().await.unwrap();
    let db = &mut connection;
    let params =
        json!({ "name": "rack-1", "pull_secret": PULL_SECRET, "openshift_version": "4.18" });
    let infra_env = check(&server, db, Method::POST, "/v2/infra-envs", params)
        .await
        .expect(201);
    let env_path = format!("/v2/infra-envs/{}", infra_env["id"].as_str().unwrap());
    let change = json!({ "additional_ntp_sources": "192.0.2.1" });
    check(&server, db, Method::PATCH, &env_path, change)
        .await
        .expect(201);

    let hosts = format!("{env_path}/hosts");
    let agent = json!({ "host_id": host_id(1), "discovery_agent_version": AGENT });
    check(&server, db, Method::POST, &hosts, agent)
        .await
        .expect(201);
    check(&server, db, Method::DELETE, &env_path, Value::Null)
        .await
        .expect(400);
    check(
        &server,
        db,
        Method::DELETE,
        &format!("{hosts}/{}", host_id(1)),
        Value::Null,
    )
    .await
    .expect(204);
    check(&server, db, Method::DELETE, &env_path, Value::Null)
        .await
        .expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_of_hosts_write_nothing() {
    let server = Server::start().await;
    let mut connection = server.database.options().connect().await.unwrap();
    let db = &mut connection;
    let cluster = server.cluster(json!({})).await;
    let pool = server.infra_env(None).await;
    let host = pool_host(&server, &pool, 1).await;
    let name = json!({ "host_name": "alpha", "host_role": "worker" });
    check(&server, db, Method::PATCH, &host, name)
        .await
        .expect(201);
    check(
        &server,
        db,
        Method::PATCH,
        &host,
        json!({ "host_name": "Not Good" }),
    )
    .await
    .expect(400);
    let args = json!({ "args": ["--append-karg", "nameserver=192.0.2.1"] });
    check(
        &server,
        db,
        Method::PATCH,
        &format!("{host}/installer-args"),
        args,
    )
    .await
    .expect(201);
    let bind = json!({ "cluster_id": cluster });
    check(
        &server,
        db,
        Method::POST,
        &format!("{host}/actions/bind"),
        bind,
    )
    .await
    .expect(200);
    let unbind = format!("{host}/actions/unbind");
    check(&server, db, Method::POST, &unbind, json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_of_installations_write_nothing() {
    let server = Server::start().await;
    let mut connection = server.database.options().connect().await.unwrap();
    let (id, _) = ready(&server).await;
    let path = format!("/v2/clusters/{id}");
    wait_settled(&server, &mut connection).await;
    let before = content(&server, &mut connection).await;
    let install = format!("{path}/actions/install?dry_run=true");
    let cluster = server.post(&install, &json!({})).await.expect(202);
    assert_eq!(cluster["status"], "preparing-for-installation");
    assert_eq!(before, content(&server, &mut connection).await);
    let cluster = server.get(&path).await.expect(200);
    assert_eq!(cluster["status"], "ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn dry_runs_of_day2_hosts_write_nothing() {
    let server = Server::start().await;
    let mut connection = server.database.options().connect().await.unwrap();
    let db = &mut connection;
    let (id, first) = install_single_node(&server).await;
    let allow = format!("/v2/clusters/{id}/actions/allow-add-hosts");
    check(&server, db, Method::POST, &allow, json!({}))
        .await
        .expect(202);
    let (infra_env, _) = first.split_once("/hosts/").unwrap();
    let infra_env = infra_env.rsplit('/').next().unwrap();
    let host = server.host(infra_env, 2).await;
    server
        .reply(&host, "inventory", &inventory(2))
        .await
        .expect(204);
    make_known(&server, &host, 2).await;
    let install = format!("{host}/actions/install");
    let installed = check(&server, db, Method::POST, &install, json!({}))
        .await
        .expect(202);
    assert_eq!(installed["role"], "worker");
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_without_dry_run_refuse_it() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}/ui-settings?dry_run=true");
    let refused = server.put(&path, &json!("{}")).await.expect(400);
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .starts_with("dry_run in query"),
        "{refused}"
    );
    let path = format!("/v2/clusters/{id}?dry_run=yes");
    server
        .patch(&path, &json!({ "name": "other" }))
        .await
        .expect(400);
    let cluster = server
        .get(&format!("/v2/clusters/{id}?dry_run=true"))
        .await
        .expect(200);
    assert_eq!(cluster["name"], "demo");
}
