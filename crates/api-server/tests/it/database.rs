//! Database outages: 503, readiness, recovery; TLS.

use std::time::Duration;

use api_server::settings::SslMode;
use chrono::{DateTime, FixedOffset};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection};
use testkit::certificates::Authority;
use testkit::postgres::{self, TestDatabase};

use crate::harness::{Server, cluster_params};

#[tokio::test(flavor = "multi_thread")]
async fn requests_fail_with_503_without_a_database() {
    let nowhere = TestDatabase {
        host: "127.0.0.1".to_owned(),
        port: 1,
        user: "secret-user".to_owned(),
        password: "hidden".to_owned(),
        name: "installer".to_owned(),
    };
    let server = Server::on(nowhere, |_| {}).await;
    assert_eq!(
        (server.plain("/health").await, server.plain("/ready").await),
        (200, 503)
    );
    for answer in [
        server.get("/v2/clusters").await,
        server.get("/v2/openshift-versions").await,
        server.post("/v2/clusters", &cluster_params()).await,
        server.get("/v2/infra-envs/00000000-0000-4000-8000-000000000000/hosts/00000000-0000-4000-8000-000000000001/instructions").await,
    ] {
        assert_eq!(answer.header("retry-after"), "5");
        let body = answer.expect(503);
        assert_eq!((body["code"].as_str(), body["kind"].as_str()), (Some("503"), Some("Error")));
        let reason = body["reason"].as_str().unwrap();
        assert!(!reason.contains("secret-user") && !reason.contains("127.0.0.1"), "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn service_recovers_after_a_database_restart() {
    let mut database = postgres::PostgresServer::start().await.unwrap();
    let server = Server::on(database.database().await.unwrap(), |_| {}).await;
    server.wait_ready().await;
    let id = server.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}");
    database.stop();
    let answer = server.get(&path).await;
    assert_eq!(answer.header("retry-after"), "5");
    answer.expect(503);
    wait_status(&server, 503).await;
    assert_eq!(server.plain("/health").await, 200);
    database.start_again().await.unwrap();
    let cluster = server
        .until("the database is used again", async || {
            let answer = server.get(&path).await;
            if answer.status == 200 {
                Ok(answer.body)
            } else {
                Err(answer.text)
            }
        })
        .await;
    assert_eq!(cluster["name"], "demo", "acknowledged changes are durable");
    wait_status(&server, 200).await;
}

/// Heartbeat timeout: short, but longer than the start or recovery of a database.
const LIMIT: Duration = Duration::from_secs(2);

fn short_heartbeat_timeout(settings: &mut api_server::Settings) {
    settings.host_max_disconnection_time = LIMIT;
}

/// Waits until the host is disconnected; returns the time of the transition.
async fn disconnected_at(server: &Server, host: &str) -> DateTime<FixedOffset> {
    server
        .until("the host is disconnected", async || {
            let answer = server.get(host).await;
            if answer.body["status"] == "disconnected-unbound" {
                let time = answer.body["status_updated_at"].as_str().unwrap();
                Ok(DateTime::parse_from_rfc3339(time).unwrap())
            } else {
                Err(answer.text)
            }
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn grace_period_follows_a_server_outage() {
    let mut first = Server::start().await;
    let infra_env = first.infra_env(None).await;
    let host = first.host(&infra_env, 1).await;
    first.stop().await;
    let mut connection = first.database.options().connect().await.unwrap();
    for statement in [
        "update host_check_ins set checked_in_at = checked_in_at - interval '1 hour'",
        "update hosts set record = record || '{\"checked_in_at\": \"2026-01-01T00:00:00.000Z\"}'",
    ] {
        sqlx::query(statement)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    let started = service::clock::now();
    let second = Server::on(first.database.clone(), short_heartbeat_timeout).await;
    second.wait_ready().await;
    let lost = disconnected_at(&second, &host).await;
    assert!(lost > started + LIMIT, "{started} {lost}");
}

#[tokio::test(flavor = "multi_thread")]
async fn grace_period_follows_a_database_outage() {
    let mut database = postgres::PostgresServer::start().await.unwrap();
    // Longer, since stopping the database is slow on a busy machine.
    let limit = Duration::from_secs(5);
    let server = Server::on(database.database().await.unwrap(), |settings| {
        settings.host_max_disconnection_time = limit;
    })
    .await;
    server.wait_ready().await;
    let infra_env = server.infra_env(None).await;
    let host = server.host(&infra_env, 1).await;
    server
        .get(&format!("{host}/instructions"))
        .await
        .expect(200);
    database.stop();
    let stopped = service::clock::now();
    wait_status(&server, 503).await;
    server
        .until("the heartbeat would time out", async || {
            let outage = service::clock::now() - stopped;
            if outage.to_std().unwrap() > limit {
                Ok(())
            } else {
                Err(outage)
            }
        })
        .await;
    let returned = service::clock::now();
    database.start_again().await.unwrap();
    let lost = disconnected_at(&server, &host).await;
    assert!(lost > returned + limit, "{returned} {lost}");
}

/// Waits until `/ready` reports that reason for the database.
async fn wait_reason(server: &Server, expected: &str) {
    let client = service::http_client(None, false).unwrap();
    server
        .until("/ready reports the reason", async || {
            let answer = client.get(format!("{}/ready", server.url)).send().await;
            let body: Value = answer.unwrap().json().await.unwrap();
            let reason = body["waiting"]["database"].as_str().unwrap_or_default();
            if reason == expected {
                Ok(())
            } else {
                Err(body.to_string())
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_reports_wrong_settings() {
    let right = postgres::database().await.unwrap();
    for (wrong, reason) in [
        (
            TestDatabase {
                host: "no database".to_owned(),
                ..right.clone()
            },
            "not found: \"no database\" is no host name (DB_HOST)",
        ),
        (
            TestDatabase {
                host: "/nowhere".to_owned(),
                ..right.clone()
            },
            "not reached (DB_HOST, DB_PORT)",
        ),
        (
            TestDatabase {
                port: 1,
                ..right.clone()
            },
            "does not accept connections (DB_HOST, DB_PORT)",
        ),
        (
            TestDatabase {
                name: "nowhere".to_owned(),
                ..right.clone()
            },
            "has no database of that name (DB_NAME)",
        ),
        (
            TestDatabase {
                user: "unknown_user".to_owned(),
                ..right.clone()
            },
            "refuses the user (DB_USER)",
        ),
    ] {
        let server = Server::on(wrong, |_| {}).await;
        wait_reason(&server, reason).await;
        assert_eq!(server.plain("/health").await, 200);
        server.get("/v2/clusters").await.expect(503);
    }
    let by_name = TestDatabase {
        host: "localhost".to_owned(),
        ..right
    };
    Server::on(by_name, |_| {}).await.wait_ready().await;
}

/// Terminates all other connections.
async fn cut(connection: &mut PgConnection) {
    sqlx::query(
        "select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()",
    )
    .execute(connection)
    .await
    .unwrap();
}

/// Allows or refuses new connections, set from another database.
async fn open_to_others(database: &TestDatabase, is_open: bool) {
    let outside = database.options().database("postgres");
    let mut connection = outside.connect().await.unwrap();
    let name = &database.name;
    let statement = format!("alter database {name} allow_connections {is_open}");
    sqlx::query(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_databases_are_migrated_after_an_outage() {
    let server = Server::start().await;
    let lost = server.cluster(json!({})).await;
    let mut connection = server.database.options().connect().await.unwrap();
    for statement in ["drop schema public cascade", "create schema public"] {
        sqlx::query(statement)
            .execute(&mut connection)
            .await
            .unwrap();
    }
    cut(&mut connection).await;
    server
        .until("the database has its schema again", async || {
            let answer = server.get(&format!("/v2/clusters/{lost}")).await;
            if answer.status == 404 {
                Ok(())
            } else {
                Err(answer.text)
            }
        })
        .await;
    server.cluster(json!({})).await;
    wait_status(&server, 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn running_servers_accept_a_newer_schema() {
    let server = Server::start().await;
    let id = server.cluster(json!({})).await;
    let mut connection = server.database.options().connect().await.unwrap();
    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
        values (99999999999999, 'of a newer program', true, '', 0)",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    open_to_others(&server.database, false).await;
    cut(&mut connection).await;
    wait_reason(&server, "refuses connections, see the log").await;
    open_to_others(&server.database, true).await;
    wait_status(&server, 200).await;
    server.get(&format!("/v2/clusters/{id}")).await.expect(200);
    let older = Server::on(server.database.clone(), |_| {}).await;
    wait_reason(&older, NEWER).await;
    refuses_agents(&older).await;
}

const NEWER: &str = "its schema is newer than this program: start the newer version, or restore the backup from before the upgrade";
const FOREIGN: &str = "its schema belongs to another program, or to an unreleased version: set another database (DB_NAME), or restore a backup";

/// Asserts 503 for agents, which stop polling after other errors.
async fn refuses_agents(server: &Server) {
    let path = "/v2/infra-envs/00000000-0000-4000-8000-000000000000/hosts/00000000-0000-4000-8000-000000000001/instructions";
    let answer = server.get(path).await;
    assert_eq!(answer.header("retry-after"), "5");
    answer.expect(503);
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_schemas_are_not_changed() {
    for statements in [
        // An edited migration, as in versions before the first release.
        vec!["update _sqlx_migrations set checksum = 'other' where version = 1"],
        // Another program's tables.
        vec![
            "drop schema public cascade",
            "create schema public",
            "create table clusters (id text)",
        ],
    ] {
        let database = postgres::database().await.unwrap();
        let mut connection = database.options().connect().await.unwrap();
        for statement in &statements {
            sqlx::query(*statement)
                .execute(&mut connection)
                .await
                .unwrap();
        }
        let before = tables(&mut connection).await;
        let server = Server::on(database, |_| {}).await;
        wait_reason(&server, FOREIGN).await;
        refuses_agents(&server).await;
        assert_eq!(tables(&mut connection).await, before, "{statements:?}");
    }
}

async fn tables(connection: &mut PgConnection) -> Vec<String> {
    sqlx::query_scalar(
        "select tablename::text from pg_tables where schemaname = 'public' order by 1",
    )
    .fetch_all(connection)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_one_database() {
    let first = Server::start().await;
    let second = Server::on(first.database.clone(), |_| {}).await;
    second.wait_ready().await;
    let id = first.cluster(json!({})).await;
    let path = format!("/v2/clusters/{id}");
    assert_eq!(second.get(&path).await.expect(200)["name"], "demo");
    second
        .patch(&path, &json!({ "name": "renamed" }))
        .await
        .expect(201);
    assert_eq!(
        first.get(&path).await.expect(200)["name"],
        "renamed",
        "the cache is not stale"
    );
}

async fn wait_status(server: &Server, expected: u16) {
    server
        .until("/ready has the expected status", async || {
            let status = server.plain("/ready").await;
            if status == expected {
                Ok(())
            } else {
                Err(status)
            }
        })
        .await;
}

/// A server on the database `right`, with these TLS settings.
async fn with_tls(
    right: &TestDatabase,
    host: &str,
    mode: SslMode,
    authority: Option<&std::path::Path>,
) -> Server {
    let database = TestDatabase {
        host: host.to_owned(),
        ..right.clone()
    };
    Server::on(database, |settings| {
        settings.db_sslmode = mode;
        settings.db_ca_file = authority.map(ToOwned::to_owned);
    })
    .await
}

/// Numbers of encrypted and plain connections of API servers.
async fn encryption(database: &TestDatabase) -> (i64, i64) {
    let mut connection = database.options().connect().await.unwrap();
    sqlx::query_as(
        "select count(*) filter (where ssl), count(*) filter (where not ssl)
        from pg_stat_ssl join pg_stat_activity using (pid)
        where application_name = 'atoll-api-server' and datname = current_database()",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_verified_as_configured() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let authority = Authority::new("right").unwrap();
    let right = file("right.pem", &authority.certificate);
    let wrong = file("wrong.pem", &Authority::new("wrong").unwrap().certificate);
    let (certificate, key) = authority.sign(&["localhost"]).unwrap();
    let database = postgres::PostgresServer::start_with_tls(&certificate, &key)
        .await
        .unwrap();
    for (host, mode, ca) in [
        ("127.0.0.1", SslMode::Prefer, None),
        ("127.0.0.1", SslMode::Require, None),
        ("127.0.0.1", SslMode::VerifyCa, Some(&right)),
        ("localhost", SslMode::VerifyFull, Some(&right)),
    ] {
        let own = database.database().await.unwrap();
        let server = with_tls(&own, host, mode, ca.map(std::path::PathBuf::as_path)).await;
        server.wait_ready().await;
        // A ready server may have no open connection; a request opens one.
        server
            .until("connections are encrypted", async || {
                server.get("/v2/clusters").await.expect(200);
                let (encrypted, plain) = encryption(&own).await;
                assert_eq!(plain, 0, "{mode:?}");
                (encrypted > 0)
                    .then_some(())
                    .ok_or(format!("{mode:?}: none"))
            })
            .await;
    }
    let own = database.database().await.unwrap();
    let untrusted = "its certificate is not signed by a trusted authority (DB_CA_FILE)";
    for (host, mode, ca, reason) in [
        ("127.0.0.1", SslMode::Require, &wrong, untrusted),
        ("127.0.0.1", SslMode::VerifyCa, &wrong, untrusted),
        ("localhost", SslMode::VerifyFull, &wrong, untrusted),
        (
            "127.0.0.1",
            SslMode::VerifyFull,
            &right,
            "its certificate is for other names (DB_HOST, DB_SSLMODE)",
        ),
    ] {
        let server = with_tls(&own, host, mode, Some(ca)).await;
        wait_reason(&server, reason).await;
        server.get("/v2/clusters").await.expect(503);
        assert_eq!(encryption(&own).await, (0, 0), "{mode:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn required_tls_never_falls_back_to_plain_text() {
    let database = postgres::PostgresServer::start().await.unwrap();
    let own = database.database().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, Authority::new("any").unwrap().certificate).unwrap();
    for mode in [SslMode::Require, SslMode::VerifyCa, SslMode::VerifyFull] {
        let server = with_tls(&own, "localhost", mode, Some(&ca)).await;
        wait_reason(
            &server,
            "does not offer TLS, which is required (DB_SSLMODE)",
        )
        .await;
        server.get("/v2/clusters").await.expect(503);
        assert_eq!(encryption(&own).await, (0, 0), "{mode:?}");
    }
    let server = with_tls(&own, "127.0.0.1", SslMode::Prefer, None).await;
    server.wait_ready().await;
}
