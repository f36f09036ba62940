//! Rights by user and repository.

use std::path::Path;

use oci::Digest;
use reqwest::header::{LINK, WWW_AUTHENTICATE};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{guarded, request_as};
use crate::server::{Server, USER, header, is, refusal};

const RULES: &str = r#"
rules:
  - users: [admin]
    repositories: ["**"]
    actions: [pull, push, delete]
  - users: [reader]
    repositories: ["open/*"]
    actions: [pull]
  - users: [reader]
    repositories: [mine]
    actions: [push]
"#;

async fn server(rules: &str) -> (TempDir, Server) {
    guarded(&["reader"], |settings, dir| {
        let path = rules_of(dir);
        std::fs::write(&path, rules).unwrap();
        settings.registry_auth_policy_path = Some(path);
    })
    .await
}

fn rules_of(dir: &TempDir) -> std::path::PathBuf {
    dir.path().join("rules.yaml")
}

async fn status(server: &Server, user: &str, method: Method, path: &str) -> u16 {
    let request = request_as(server, user, method, path);
    request.send().await.unwrap().status().as_u16()
}

/// A tag on an index of nothing, as the administrator.
async fn push_tag(server: &Server, name: &str) {
    let kind = oci::media_type::OCI_INDEX;
    let body = json!({"schemaVersion": 2, "mediaType": kind, "manifests": []});
    let path = format!("/v2/{name}/manifests/t");
    let request = request_as(server, USER, Method::PUT, &path);
    let request = request.header("content-type", kind).body(body.to_string());
    assert_eq!(request.send().await.unwrap().status(), StatusCode::CREATED);
}

async fn push_blob(server: &Server, name: &str, content: &[u8]) -> Digest {
    let digest = Digest::sha256(content);
    let path = format!("/v2/{name}/blobs/uploads/?digest={digest}");
    let request = request_as(server, USER, Method::POST, &path);
    let response = request.body(content.to_vec()).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::CREATED);
    digest
}

#[tokio::test]
async fn each_user_does_what_the_rules_grant() {
    let (_dir, server) = server(RULES).await;
    for name in ["open/a", "closed/a"] {
        push_tag(&server, name).await;
    }
    for (method, path, expected) in [
        (Method::GET, "/v2/", 200),
        (Method::GET, "/v2/open/a/manifests/t", 200),
        (Method::GET, "/v2/open/a/tags/list", 200),
        (Method::GET, "/v2/closed/a/manifests/t", 403),
        (Method::HEAD, "/v2/closed/a/manifests/t", 403),
        (Method::GET, "/v2/closed/a/tags/list", 403),
        (Method::GET, "/v2/closed/none/tags/list", 403),
        (Method::GET, "/v2/_atoll/manifests?repository=open/a", 200),
        (Method::GET, "/v2/_atoll/manifests?repository=closed/a", 403),
        (
            Method::GET,
            "/v2/_atoll/manifests?repository=closed/none",
            403,
        ),
        (Method::PUT, "/v2/open/a/manifests/t", 403),
        (Method::DELETE, "/v2/open/a/manifests/t", 403),
        (Method::POST, "/v2/open/a/blobs/uploads/", 403),
        (Method::POST, "/v2/mine/blobs/uploads/", 202),
        (Method::GET, "/v2/mine/tags/list", 404),
        (Method::DELETE, "/v2/mine/manifests/t", 403),
    ] {
        let seen = status(&server, "reader", method.clone(), path).await;
        assert_eq!(seen, expected, "{method} {path}");
    }
    let path = "/v2/closed/a/manifests/t";
    let refused = request_as(&server, "reader", Method::GET, path)
        .send()
        .await
        .unwrap();
    assert!(!refused.headers().contains_key(WWW_AUTHENTICATE));
    assert_eq!(refusal(refused).await, is(403, "DENIED"));
    let stranger = server.get(path).await;
    assert_eq!(
        header(&stranger, &WWW_AUTHENTICATE),
        "Basic realm=\"Registry\""
    );
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(status(&server, USER, Method::DELETE, path).await, 202);
}

#[tokio::test]
async fn the_catalog_lists_what_its_reader_may_pull() {
    let (_dir, server) = server(RULES).await;
    for name in [
        "closed/a",
        "mine",
        "open/a",
        "open/a/hidden",
        "open/b",
        "zz",
    ] {
        push_tag(&server, name).await;
    }
    let page = async |user: &str, path: &str| {
        let answer = request_as(&server, user, Method::GET, path)
            .send()
            .await
            .unwrap();
        let link = header(&answer, &LINK);
        let body: Value = answer.json().await.unwrap();
        (body["repositories"].clone(), link)
    };
    let (all, _) = page(USER, "/v2/_catalog").await;
    assert_eq!(all.as_array().unwrap().len(), 6);
    let (mine, link) = page("reader", "/v2/_catalog").await;
    assert_eq!(
        (mine, link.as_str()),
        (json!(["mine", "open/a", "open/b"]), "")
    );
    let (first, link) = page("reader", "/v2/_catalog?n=2").await;
    assert_eq!(first, json!(["mine", "open/a"]));
    let next = link.split(['<', '>']).nth(1).unwrap();
    let (last, link) = page("reader", next).await;
    assert_eq!((last, link.as_str()), (json!(["open/b"]), ""));
}

#[tokio::test]
async fn blobs_are_mounted_only_from_where_they_may_be_pulled() {
    let (_dir, server) = server(RULES).await;
    let open = push_blob(&server, "open/a", b"open").await;
    let closed = push_blob(&server, "closed/a", b"closed").await;
    let mount = async |user: &str, digest: &Digest, from: &str| {
        let path = format!("/v2/mine/blobs/uploads/?mount={digest}{from}");
        status(&server, user, Method::POST, &path).await
    };
    assert_eq!(mount("reader", &closed, "&from=closed/a").await, 202);
    assert_eq!(mount("reader", &closed, "").await, 202);
    assert_eq!(mount("reader", &open, "&from=open/a").await, 201);
    let closed_path = format!("/v2/mine/blobs/{closed}");
    assert_eq!(
        status(&server, "reader", Method::HEAD, &closed_path).await,
        404
    );
    assert_eq!(mount(USER, &closed, "").await, 201);
}

#[tokio::test]
async fn changed_rules_count_at_once_and_broken_ones_do_not() {
    let (dir, server) = server(RULES).await;
    let write = |text: &str| std::fs::write(rules_of(&dir), text).unwrap();
    let path = "/v2/closed/a/tags/list";
    assert_eq!(status(&server, "reader", Method::GET, path).await, 403);
    write(&RULES.replace("open/*", "**"));
    assert_eq!(status(&server, "reader", Method::GET, path).await, 404);
    write("rules: [garbage");
    assert_eq!(status(&server, "reader", Method::GET, path).await, 404);
    write(&RULES.replace("[reader]", "[anonymous]"));
    assert_eq!(status(&server, "reader", Method::GET, path).await, 403);
    assert_eq!(
        server.get("/v2/open/a/tags/list").await.status(),
        StatusCode::NOT_FOUND
    );
    assert_eq!(server.get(path).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn nothing_starts_with_broken_rules() {
    let dir = TempDir::new().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let start = async |rules: &Path| {
        let settings = registry::Settings {
            registry_http_addr: registry::HttpAddr("127.0.0.1:0".parse().unwrap()),
            registry_storage_filesystem_rootdirectory: dir.path().join("data"),
            registry_auth_htpasswd_path: Some(write("users", "")),
            registry_auth_policy_path: Some(rules.to_owned()),
            ..registry::Settings::default()
        };
        registry::start(settings, service::CancellationToken::new()).await
    };
    let refused = start(&write("rules", "rules: 5")).await.unwrap_err();
    assert!(
        refused.to_string().contains("REGISTRY_AUTH_POLICY_PATH"),
        "{refused}"
    );
}
