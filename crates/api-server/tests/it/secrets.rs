//! Secrets at rest: sealed columns, members and files; older values, rotations, missing keys.

use std::path::{Path, PathBuf};

use api_server::Settings;
use api_server::operations::access::Scheme;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use testkit::postgres::{self, TestDatabase};

use crate::harness::{Server, inventory, settings};
use crate::installation::install_single_node;
use crate::process::Process;
use crate::secured::{SecuredServer, image_token, with};

/// Password in the test's pull secret, as it is stored.
const SECRET: &str = "dXNlcjpwYXNzd29yZA==";
const OVERRIDES: &str = r#"{"platform":{"vsphere":{"password":"vsphere-password"}}}"#;

/// A key file with these keys, the newest first.
fn key_file(folder: &Path, keys: &[u8]) -> PathBuf {
    let lines: Vec<String> = keys.iter().map(|key| BASE64.encode([*key; 32])).collect();
    let path = folder.join("keys");
    std::fs::write(&path, lines.join("\n")).unwrap();
    path
}

fn with_keys(path: &Path) -> impl FnOnce(&mut Settings) + use<> {
    let path = path.to_owned();
    move |settings| settings.secrets_key_file = Some(path)
}

/// The database as text.
async fn dump(database: &TestDatabase) -> String {
    String::from_utf8(postgres::dump(database).await.unwrap()).unwrap()
}

/// Contents of the files below `folder`.
fn contents(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            bytes.extend(contents(&path));
        } else {
            bytes.extend(std::fs::read(path).unwrap());
        }
    }
    bytes
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// Keys that the database's secrets are sealed with, and whether that is all.
async fn keys_in_use(connection: &mut PgConnection) -> Vec<(String, bool)> {
    sqlx::query_as("select id, complete from secret_keys order by id")
        .fetch_all(connection)
        .await
        .unwrap()
}

/// Waits until everything is sealed with one key; returns its id.
async fn sealed(server: &Server) -> String {
    let mut connection = server.database.options().connect().await.unwrap();
    server
        .until("secrets are sealed", async || {
            match keys_in_use(&mut connection).await.as_slice() {
                [(id, true)] => Ok(id.clone()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
}
/// Paths of a cluster, an infra-env and an unbound host, with secrets of each kind.
struct Stored {
    cluster: String,
    infra_env: String,
    host: String,
}

async fn add_secrets(server: &Server) -> Stored {
    let cluster = format!("/v2/clusters/{}", server.cluster(json!({})).await);
    let id = server.infra_env(None).await;
    let infra_env = format!("/v2/infra-envs/{id}");
    let path = format!("{cluster}/install-config");
    server.patch(&path, &json!(OVERRIDES)).await.expect(201);
    let proxy = json!({ "http_proxy": PROXY });
    server.patch(&cluster, &proxy).await.expect(201);
    let proxy = json!({ "proxy": proxy, "ignition_config_override": user("infra-env-password") });
    server.patch(&infra_env, &proxy).await.expect(201);
    let list = json!({ "hosts": [{ "serial_number": "S9", "name": "omega" }] });
    let path = format!("{infra_env}/expected-hosts");
    server.put(&path, &list).await.expect(200);

    let host = server.host(&id, 1).await;
    let reply = server.reply(&host, "inventory", &inventory(1)).await;
    reply.expect(204);
    let token = json!({ "ignition_endpoint_token": "endpoint-token" });
    server.patch(&host, &token).await.expect(201);
    let config = json!({ "config": user("host-password") });
    let path = format!("{host}/ignition");
    server.patch(&path, &config).await.expect(201);
    Stored {
        cluster,
        infra_env,
        host,
    }
}

/// An ignition config with that hash of a password.
fn user(hash: &str) -> String {
    let users = json!([{ "name": "core", "passwordHash": hash }]);
    json!({ "ignition": { "version": "3.2.0" }, "passwd": { "users": users } }).to_string()
}

const PROXY: &str = "http://user:proxy-password@proxy.example.com:3128";
const PLAIN: &[&str] = &[
    SECRET,
    "vsphere-password",
    "endpoint-token",
    "proxy-password",
    "infra-env-password",
    "host-password",
];

async fn assert_readable(server: &Server, stored: &Stored) {
    let found = server.get(&stored.cluster).await.expect(200);
    assert_eq!(found["install_config_overrides"], OVERRIDES);
    assert_eq!(found["http_proxy"], PROXY);
    let listed = server.get("/v2/clusters").await.expect(200);
    let listed = listed.as_array().unwrap();
    let listed = listed.iter().find(|one| one["id"] == found["id"]);
    assert_eq!(listed.unwrap()["http_proxy"], PROXY);

    let path = format!("{}/hosts", stored.infra_env);
    let hosts = server.get(&path).await.expect(200);
    let host = server.get(&stored.host).await.expect(200);
    for host in [&hosts[0], &host] {
        assert_eq!(host["ignition_config_overrides"], user("host-password"));
        assert!(host["inventory"].as_str().unwrap().contains("host-1"));
    }
    let path = format!("{}/expected-hosts", stored.infra_env);
    let list = server.get(&path).await.expect(200);
    assert_eq!(list["hosts"][0]["expected"]["name"], "omega", "{list}");

    let found = server.get(&stored.infra_env).await.expect(200);
    assert_eq!(found["proxy"]["http_proxy"], PROXY);
    let path = format!(
        "{}/downloads/files?file_name=discovery.ign",
        stored.infra_env
    );
    let config = server.get(&path).await;
    let config = ignition::IgnitionConfig::parse(config.text.as_bytes()).unwrap();
    let file = config.find_file("/root/.docker/config.json").unwrap();
    let bytes = file.contents.inline_bytes().unwrap().unwrap();
    let pull_secret: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        pull_secret["auths"]["registry.example.com:5000"]["auth"],
        SECRET
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_sealed_in_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with(with_keys(&key_file(folder.path(), &[1]))).await;
    let paths = add_secrets(&server).await;
    sealed(&server).await;
    let text = dump(&server.database).await;
    for secret in PLAIN {
        assert!(!text.contains(secret), "{secret} is stored as it is");
    }
    assert_readable(&server, &paths).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_checked_with_sealed_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let site = SecuredServer::oidc(with_keys(&key_file(folder.path(), &[1]))).await;
    // Its host registers with the token of the pull secret.
    let own = site.resources("alice").await;
    let hosts = format!("/v2/clusters/{}/hosts", own.cluster);
    let open = async |path: &str, scheme, token: &str| {
        let request = site.server.request(Method::GET, path);
        Server::send(with(request, scheme, token)).await
    };
    open(&hosts, Scheme::Agent, &own.agent).await.expect(200);
    open(&hosts, Scheme::Agent, "other").await.expect(401);
    let infra_env = format!("/v2/infra-envs/{}", own.infra_env);
    // The first use makes the signing key, the second reads it.
    let token = image_token(&site, "alice", &own.infra_env).await;
    for _ in 0..2 {
        open(&infra_env, Scheme::Image, &token).await.expect(200);
    }
    let mut connection = site.server.database.options().connect().await.unwrap();
    let length: i32 = sqlx::query_scalar("select length(signing_key) from infra_envs")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(length > 32, "{length}");
    assert_eq!(sealed_rows(&mut connection).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_sealed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with(with_keys(&key_file(folder.path(), &[1]))).await;
    install_single_node(&server).await;
    let bytes = contents(server.work_dir());
    assert!(!bytes.is_empty() && !contains(&bytes, "certificate-authority-data"));
    let clusters = server.get("/v2/clusters").await.expect(200);
    let id = clusters[0]["id"].as_str().unwrap();
    let link = format!("/v2/clusters/{id}/downloads/credentials-presigned?file_name=kubeconfig");
    server.get(&link).await.expect(200);
    let mut connection = server.database.options().connect().await.unwrap();
    let length: i32 = sqlx::query_scalar("select length(signing_key) from clusters")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(length > 32, "{length}");
    let path = format!("/v2/clusters/{id}/downloads/credentials?file_name=kubeconfig");
    let kubeconfig = server.get(&path).await;
    assert!(kubeconfig.text.contains("certificate-authority-data"));
    assert_eq!(
        kubeconfig.header("content-length"),
        kubeconfig.text.len().to_string()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_secrets_are_sealed_and_keys_rotated() {
    let folder = tempfile::tempdir().unwrap();
    let plain = Server::start().await;
    let paths = add_secrets(&plain).await;
    install_single_node(&plain).await;
    let text = dump(&plain.database).await;
    assert!(PLAIN.iter().all(|secret| text.contains(secret)));
    assert!(contains(
        &contents(plain.work_dir()),
        "certificate-authority-data"
    ));

    let keys = key_file(folder.path(), &[1]);
    let server = plain.restart_with(with_keys(&keys)).await;
    let first = sealed(&server).await;
    let text = dump(&server.database).await;
    assert!(!PLAIN.iter().any(|secret| text.contains(secret)));
    assert!(!contains(
        &contents(server.work_dir()),
        "certificate-authority-data"
    ));
    assert_readable(&server, &paths).await;

    // The file is watched: a rotation needs no restart.
    key_file(folder.path(), &[2, 1]);
    let mut connection = server.database.options().connect().await.unwrap();
    server
        .until("the second key is in use", async || {
            match keys_in_use(&mut connection).await.as_slice() {
                [(id, true)] if *id != first => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    key_file(folder.path(), &[2]);
    let server = server.restart_with(with_keys(&keys)).await;
    assert_readable(&server, &paths).await;
}

/// A text that looks sealed, with a key that no file has.
fn planted() -> String {
    let sealed = [b"\0atoll-1".as_slice(), &[7; 64]].concat();
    format!("atoll-sealed:{}", BASE64.encode(sealed))
}

#[tokio::test(flavor = "multi_thread")]
async fn values_that_do_not_open_keep_no_other_plain() {
    let folder = tempfile::tempdir().unwrap();
    let plain = Server::start().await;
    let stored = add_secrets(&plain).await;
    let token = json!({ "ignition_endpoint_token": planted() });
    let refused = plain.patch(&stored.host, &token).await;
    assert!(!refused.text.contains(&planted()), "{}", refused.text);
    let refused = refused.expect(400);
    let reason = refused["reason"].as_str().unwrap();
    assert!(reason.contains("ignition_endpoint_token"), "{reason}");
    let mut connection = plain.database.options().connect().await.unwrap();
    // Versions before the check of tokens stored them.
    for statement in [
        "update hosts set ignition_endpoint_token = $1",
        "update clusters set record = jsonb_set(record, '{http_proxy}', to_jsonb($1::text))",
    ] {
        let planted = sqlx::query(statement).bind(planted());
        planted.execute(&mut connection).await.unwrap();
    }

    let server = plain
        .restart_with(with_keys(&key_file(folder.path(), &[1])))
        .await;
    sealed(&server).await;
    let text = dump(&server.database).await;
    assert_eq!(text.matches(&planted()).count(), 2);
    let left = PLAIN.iter().filter(|secret| text.contains(**secret));
    assert_eq!(left.count(), 0, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_without_the_key_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with(with_keys(&key_file(folder.path(), &[1]))).await;
    add_secrets(&server).await;
    sealed(&server).await;
    let wrong = tempfile::tempdir().unwrap();
    let client = service::http_client(None, false).unwrap();
    for keys in [None, Some(key_file(wrong.path(), &[9]))] {
        let other = Server::on(server.database.clone(), |settings| {
            settings.secrets_key_file = keys;
        })
        .await;
        other
            .until("the reason is known", async || {
                let ready = client.get(format!("{}/ready", other.url)).send().await;
                let text = ready.unwrap().text().await.unwrap();
                if text.contains("SECRETS_KEY_FILE") {
                    Ok(())
                } else {
                    Err(text)
                }
            })
            .await;
        other.get("/v2/clusters").await.expect(503);
    }

    let keys = wrong.path().join("keys");
    std::fs::write(&keys, "password").unwrap();
    let mut settings = settings(&server.database, wrong.path());
    settings.secrets_key_file = Some(keys);
    let error = api_server::start(settings, service::CancellationToken::new()).await;
    let error = error.err().unwrap().to_string();
    assert!(
        error.contains("SECRETS_KEY_FILE") && !error.contains("password"),
        "{error}"
    );
}

/// Infra-envs in the test of a kill: several batches.
const MANY: i64 = 450;

async fn sealed_rows(connection: &mut PgConnection) -> i64 {
    sqlx::query_scalar("select count(*) from infra_envs where pull_secret like 'atoll-sealed:%'")
        .fetch_one(connection)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_that_was_killed_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start().await;
    let paths = add_secrets(&server).await;
    let mut connection = server.database.options().connect().await.unwrap();
    sqlx::query(
        "insert into infra_envs (id, name, record, pull_secret, created_at, updated_at)
        select gen_random_uuid(), name, record, pull_secret, created_at, updated_at
        from infra_envs, generate_series(1, $1)",
    )
    .bind(MANY)
    .execute(&mut connection)
    .await
    .unwrap();
    server.stop().await;

    // The pass waits for this row: some batches are sealed then, others are not.
    let mut blocking = connection.begin().await.unwrap();
    sqlx::query("select from infra_envs order by id desc limit 1 for update")
        .execute(&mut *blocking)
        .await
        .unwrap();
    let keys = key_file(folder.path(), &[1]);
    let settings = [("SECRETS_KEY_FILE", keys.to_str().unwrap())];
    let process = Process::start(&server.database, server.work_dir(), &settings);
    let mut other = server.database.options().connect().await.unwrap();
    let count = server
        .until("batches are sealed", async || {
            match sealed_rows(&mut other).await {
                count @ 400.. => Ok(count),
                count => Err(count),
            }
        })
        .await;
    drop(process);
    assert!(count < MANY, "{count}");
    blocking.rollback().await.unwrap();
    assert_eq!(keys_in_use(&mut other).await.len(), 1);
    assert!(!keys_in_use(&mut other).await[0].1);

    let server = server.restart_with(with_keys(&keys)).await;
    sealed(&server).await;
    assert_eq!(sealed_rows(&mut other).await, MANY + 1);
    assert_readable(&server, &paths).await;
}
