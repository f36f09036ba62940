//! Content that the operator's policy retains, bounds and ignores.

use std::path::PathBuf;
use std::time::Duration;

use oci::{Digest, media_type};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Server, is, manifest, refusal};

/// A server with a policy, whose file is in the folder.
async fn with(policy: &str) -> (TempDir, Server) {
    let dir = TempDir::new().unwrap();
    let path = file(&dir);
    std::fs::write(&path, policy).unwrap();
    let server = Server::with(|settings| {
        settings.registry_storage_policy_path = Some(path);
        settings.registry_storage_maintenance_gc_grace = Duration::ZERO;
    })
    .await;
    (dir, server)
}

fn file(dir: &TempDir) -> PathBuf {
    dir.path().join("policy.yaml")
}

async fn collect(server: &Server, query: &str) -> Value {
    let path = format!("/v2/_atoll/gc{query}");
    let response = server.request(Method::POST, &path).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

async fn tags(server: &Server, name: &str) -> Value {
    let response = server.get(&format!("/v2/{name}/tags/list")).await;
    response.json::<Value>().await.unwrap()["tags"].clone()
}

async fn status(server: &Server, path: &str) -> u16 {
    server.head(path).await.status().as_u16()
}

/// Pushes an index of one manifest that has no tag; the index.
async fn push_index(server: &Server, name: &str, tag: &str, note: &str) -> (Digest, Digest) {
    server.push_image(name, "made", note).await;
    let path = format!("/v2/{name}/manifests/made");
    let child = server.get(&path).await.bytes().await.unwrap();
    assert_eq!(server.delete(&path).await.status(), StatusCode::ACCEPTED);
    let digest = Digest::sha256(&child);
    let entry =
        json!({"mediaType": media_type::OCI_MANIFEST, "digest": digest, "size": child.len()});
    let kind = media_type::OCI_INDEX;
    let index = json!({"schemaVersion": 2, "mediaType": kind, "manifests": [entry]}).to_string();
    let index_digest = Digest::sha256(index.as_bytes());
    let response = server.put_typed(name, tag, kind, index).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    (index_digest, digest)
}

const RETENTION: &str = "
retention:
  policies:
    - repositories: [kept]
    - repositories: ['**']
      keep_tags:
        - patterns: ['^v']
          most_recently_pushed_count: 2
        - patterns: ['^latest$']
";

#[tokio::test]
async fn tags_that_no_rule_keeps_go_with_all_that_only_they_need() {
    let (_dir, server) = with(RETENTION).await;
    for (name, tag) in [
        ("a", "v1"),
        ("a", "v2"),
        ("a", "v3"),
        ("a", "dev"),
        ("kept", "dev"),
    ] {
        server.push_image(name, tag, &format!("{name} {tag}")).await;
    }
    let (_, child) = push_index(&server, "a", "latest", "in the index").await;
    let (old, old_child) = push_index(&server, "a", "old", "in the old index").await;
    let counted = collect(&server, "?dryrun=true").await;
    let retention = &counted["retention"];
    assert_eq!(retention["is_dry"], true);
    assert_eq!(
        (&retention["tags"], &retention["manifests"]),
        (&json!(3), &json!(4))
    );
    let there = &retention["repositories"][0];
    assert_eq!(
        (&there["repository"], &there["tags"]),
        (&json!("a"), &json!(["dev", "old", "v1"]))
    );
    assert_eq!(
        tags(&server, "a").await,
        json!(["dev", "latest", "old", "v1", "v2", "v3"])
    );
    let collected = collect(&server, "").await;
    assert_eq!(collected["retention"]["manifests"], 4, "{collected}");
    assert_eq!(
        collected["blobs"], 7,
        "three layers, two manifests, an index and its manifest: {collected}"
    );
    assert_eq!(tags(&server, "a").await, json!(["latest", "v2", "v3"]));
    assert_eq!(tags(&server, "kept").await, json!(["dev"]));
    assert_eq!(
        status(&server, &format!("/v2/a/manifests/{child}")).await,
        200
    );
    for gone in [old, old_child] {
        assert_eq!(
            status(&server, &format!("/v2/a/manifests/{gone}")).await,
            404
        );
    }
    let again = collect(&server, "").await;
    assert_eq!(
        (&again["retention"]["tags"], &again["blobs"]),
        (&json!(0), &json!(0))
    );
}

#[tokio::test]
async fn a_changed_policy_counts_and_a_broken_one_does_not() {
    let (dir, server) = with("{}").await;
    server.push_image("a", "dev", "x").await;
    assert_eq!(collect(&server, "").await["retention"], Value::Null);
    std::fs::write(
        file(&dir),
        "retention: {delay: 1d, policies: [{repositories: [a], keep_tags: [{patterns: [x]}]}]}",
    )
    .unwrap();
    assert_eq!(collect(&server, "").await["retention"]["tags"], 0);
    std::fs::write(
        file(&dir),
        "retention: {dryRun: true, policies: [{repositories: [a], keepTags: [{patterns: [x]}]}]}",
    )
    .unwrap();
    let reported = collect(&server, "").await["retention"].clone();
    assert_eq!(
        (&reported["is_dry"], &reported["tags"]),
        (&json!(true), &json!(1))
    );
    std::fs::write(file(&dir), "retention: garbage").unwrap();
    let reported = collect(&server, "").await["retention"].clone();
    assert_eq!(
        (&reported["is_dry"], &reported["tags"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(tags(&server, "a").await, json!(["dev"]));
}

#[tokio::test]
async fn tags_that_were_pulled_stay_and_that_is_not_forgotten() {
    let policy = "retention: {policies: [{repositories: [a], keep_tags: [{most_recently_pulled_count: 1}]}]}";
    let (_dir, server) = with(policy).await;
    for tag in ["one", "two"] {
        server.push_image("a", tag, tag).await;
    }
    // Neither was pulled as far as anybody knows, and from now on that is known.
    let reported = collect(&server, "?dryrun=true").await["retention"].clone();
    assert_eq!(reported["repositories"][0]["tags"], json!(["two"]));
    let record = server.dir.path().join("data/.atoll/records/pulls");
    std::fs::create_dir_all(record.parent().unwrap()).unwrap();
    std::fs::write(&record, r#"{"a": {"one": 1000, "two": 2000}}"#).unwrap();
    let server = server.restart().await;
    crate::server::eventually(async || {
        let reported = collect(&server, "?dryrun=true").await["retention"].clone();
        reported["repositories"][0]["tags"] == json!(["one"])
    })
    .await;
    assert_eq!(
        server.get("/v2/a/manifests/one").await.status(),
        StatusCode::OK
    );
    let reported = collect(&server, "").await["retention"].clone();
    assert_eq!(reported["repositories"][0]["tags"], json!(["two"]));
}

const QUOTAS: &str = "
quotas:
  - repositories: ['team/**']
    limit: 1000
";

async fn used(server: &Server) -> u64 {
    let usage: Value = server.get("/v2/_atoll/usage").await.json().await.unwrap();
    assert_eq!(usage["quotas"][0]["limit"], 1000);
    assert_eq!(usage["quotas"][0]["repositories"], "team/**");
    usage["quotas"][0]["used"].as_u64().unwrap()
}

/// Pushes a blob in chunks without an announced length; the reply to the last request.
async fn push(server: &Server, name: &str, content: &[u8]) -> reqwest::Response {
    let location = server.upload(name).await;
    let pieces = futures_util::stream::iter([Ok::<_, std::io::Error>(content.to_vec())]);
    let body = reqwest::Body::wrap_stream(pieces);
    let request = server.request(Method::PATCH, &location).body(body);
    assert_eq!(request.send().await.unwrap().status(), StatusCode::ACCEPTED);
    let digest = Digest::sha256(content).to_string();
    server.finish(&location, &digest, b"").await
}

#[tokio::test]
async fn what_repositories_hold_together_is_bounded() {
    let (_dir, server) = with(QUOTAS).await;
    let first = server.push_blob("team/a", &[1; 600]).await;
    assert_eq!(used(&server).await, 600);
    // Content that one of them has is charged once, by any kind of push.
    server.push_blob("team/b", &[1; 600]).await;
    let mount = format!("/v2/team/c/blobs/uploads/?mount={first}&from=team/a");
    let mounted = server.request(Method::POST, &mount).send().await.unwrap();
    assert_eq!(mounted.status(), StatusCode::CREATED);
    let other = server.push_blob("elsewhere", &[2; 600]).await;
    let mount = format!("/v2/team/c/blobs/uploads/?mount={other}&from=elsewhere");
    let refused = server.request(Method::POST, &mount).send().await.unwrap();
    let refused: Value = refused.json().await.unwrap();
    let error = &refused["errors"][0];
    assert_eq!(error["code"], "DENIED");
    assert_eq!(
        error["detail"],
        json!({"repositories": "team/**", "limit": 1000, "used": 600, "wanted": 600})
    );
    // Refused before the body is sent, where its length is known.
    let location = server.upload("team/a").await;
    let refused = server.patch(&location, None, &[3; 600]).await;
    assert_eq!(refusal(refused).await, is(403, "DENIED"));
    assert_eq!(
        crate::server::named(&server.get(&location).await, "range"),
        "0-0"
    );
    // The upload continues with less.
    assert_eq!(
        server.patch(&location, None, &[3; 300]).await.status(),
        StatusCode::ACCEPTED
    );
    let digest = Digest::sha256(&[3; 300]).to_string();
    assert_eq!(
        server.finish(&location, &digest, b"").await.status(),
        StatusCode::CREATED
    );
    let body = manifest(&first, &[]);
    let refused = server.put_manifest("team/a", "t", &*body).await;
    assert_eq!(refusal(refused).await, is(403, "DENIED"));
    assert_eq!(
        push(&server, "team/a", &[4; 100]).await.status(),
        StatusCode::CREATED
    );
    let refused = push(&server, "team/a", b"x").await;
    assert_eq!(refusal(refused).await, is(403, "DENIED"));
    let path = format!("/v2/team/a/blobs/{}", Digest::sha256(b"x"));
    assert_eq!(status(&server, &path).await, 404);
    let metrics = server.get("/metrics").await.text().await.unwrap();
    let line = r#"atoll_registry_quota_limit_bytes{repositories="team/**"} 1000"#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn many_at_once_do_not_get_more_than_there_is() {
    let (_dir, server) = with(QUOTAS).await;
    let pushes = (0..20_u8).map(|n| {
        let server = &server;
        async move {
            let name = format!("team/r{}", n % 3);
            push(server, &name, &[n; 90]).await.status()
        }
    });
    let answers = futures_util::future::join_all(pushes).await;
    let taken = answers
        .iter()
        .filter(|status| **status == StatusCode::CREATED);
    assert_eq!(taken.count(), 11);
    let server = server.restart().await;
    assert_eq!(used(&server).await, 990);
}

const IMMUTABLE: &str = "
immutable:
  - repositories: ['release/*']
    patterns: ['^v[0-9]']
";

#[tokio::test]
async fn immutable_tags_stay_where_they_are() {
    let (_dir, server) = with(IMMUTABLE).await;
    let first = server.push_image("release/a", "v1", "first").await;
    let digest = Digest::sha256(first.as_bytes());
    let again = server.put_manifest("release/a", "v1", &*first).await;
    assert_eq!(
        again.status(),
        StatusCode::CREATED,
        "the same is nothing new"
    );
    let other = server.push_image("release/a", "latest", "other").await;
    let response = server.put_manifest("release/a", "v1", &*other).await;
    assert_eq!(refusal(response).await, is(409, "DENIED"));
    let other_digest = Digest::sha256(other.as_bytes());
    let several = format!("{other_digest}?tag=dev&tag=v1");
    let response = server.put_manifest("release/a", &several, &*other).await;
    assert_eq!(refusal(response).await, is(409, "DENIED"));
    let long = Digest::of(oci::Algorithm::Sha512, first.as_bytes());
    let same = server
        .put_manifest("release/a", &format!("{long}?tag=v1"), &*first)
        .await;
    assert_eq!(same.status(), StatusCode::CREATED, "by another digest");
    for target in ["v1", &digest.to_string(), &long.to_string()] {
        let response = server
            .delete(&format!("/v2/release/a/manifests/{target}"))
            .await;
        assert_eq!(refusal(response).await, is(409, "DENIED"), "{target}");
    }
    assert_eq!(tags(&server, "release/a").await, json!(["latest", "v1"]));
    let kept = server.get("/v2/release/a/manifests/v1").await;
    assert_eq!(kept.text().await.unwrap(), first);
    for (name, target) in [("release/a", &*other_digest.to_string()), ("a", "v1")] {
        server.push_image(name, "v1x", "free").await;
        server.push_image("a", "v1", "moves").await;
        let response = server
            .delete(&format!("/v2/{name}/manifests/{target}"))
            .await;
        assert_eq!(response.status(), StatusCode::ACCEPTED, "{name} {target}");
    }
}

#[tokio::test]
async fn of_many_who_push_an_immutable_tag_one_wins() {
    let (_dir, server) = with(IMMUTABLE).await;
    let mut bodies = Vec::new();
    for n in 0..8 {
        bodies.push(server.push_image("release/a", "dev", &format!("{n}")).await);
    }
    let pushes = bodies
        .iter()
        .map(|body| server.put_manifest("release/a", "v1", &**body));
    let answers = futures_util::future::join_all(pushes).await;
    let won = answers
        .iter()
        .position(|answer| answer.status() == StatusCode::CREATED)
        .unwrap();
    let lost = answers
        .iter()
        .filter(|answer| answer.status() == StatusCode::CONFLICT);
    assert_eq!(lost.count(), 7);
    let kept = server.get("/v2/release/a/manifests/v1").await;
    assert_eq!(kept.text().await.unwrap(), bodies[won]);
}
