//! A registry whose folder others changed between two runs, or during one.

use std::fs;
use std::path::Path;
use std::time::Duration;

use oci::Digest;
use oci::media_type::OCI_INDEX;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, eventually};

async fn without_grace() -> Server {
    Server::with(|settings| {
        settings.registry_storage_maintenance_gc_grace = Duration::ZERO;
    })
    .await
}

async fn ask(server: &Server, method: Method, what: &str) -> Value {
    let path = format!("/v2/_atoll/{what}");
    let response = server.request(method, &path).send().await.unwrap();
    assert!(response.status().is_success(), "{}", response.status());
    response.json().await.unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn what_others_did_between_two_runs_is_served_and_never_collected() {
    let server = without_grace().await;
    server.push_image("team/app", "old", "1").await;
    let new = server.push_image("team/app", "new", "2").await;
    server.push_image("team/app", "t", "1").await;
    let server = server.restart().await;
    // As docker-registry moves a tag, and as a backup is put back.
    let tags = server.content("repositories/team/app/_manifests/tags");
    let digest = Digest::sha256(new.as_bytes()).to_string();
    let (from, to) = (
        server.content("repositories/team/app"),
        server.content("repositories/copy/app"),
    );
    let server = server
        .restart_with(|_| {
            fs::write(tags.join("t/current/link"), &digest).unwrap();
            copy(&from, &to);
            fs::remove_dir_all(&from).unwrap();
        })
        .await;
    let gone = server.get("/v2/team/app/manifests/t").await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    let moved = server.get("/v2/copy/app/manifests/t").await;
    assert_eq!(moved.text().await.unwrap(), new);
    let catalog: Value = server.get("/v2/_catalog").await.json().await.unwrap();
    assert_eq!(catalog, json!({ "repositories": ["copy/app"] }));
    for _ in 0..2 {
        let collected = ask(&server, Method::POST, "gc").await;
        assert_eq!(
            (&collected["blobs"], &collected["links"]),
            (&json!(0), &json!(0))
        );
    }
    let layer = format!("/v2/copy/app/blobs/{}", Digest::sha256(b"2"));
    assert_eq!(server.get(&layer).await.text().await.unwrap(), "2");
    let ready: Value = server.get("/ready").await.json().await.unwrap();
    assert_eq!(ready["ready"], true);
}

#[tokio::test]
async fn a_running_registry_is_asked_to_compare_its_folder() {
    let server = without_grace().await;
    let image = server.push_image("a", "t", "layer").await;
    copy(
        &server.content("repositories/a"),
        &server.content("repositories/b"),
    );
    assert_eq!(
        server.get("/v2/b/manifests/t").await.status(),
        StatusCode::NOT_FOUND
    );
    ask(&server, Method::POST, "reindex").await;
    eventually(async || ask(&server, Method::GET, "reindex").await["is_finished"] == true).await;
    let progress = ask(&server, Method::GET, "reindex").await;
    let expected =
        json!({"is_finished": true, "repositories": 2, "compared": 2, "adopted": 1, "failed": 0});
    assert_eq!(progress, expected);
    let found = server.get("/v2/b/manifests/t").await;
    assert_eq!(found.text().await.unwrap(), image);
}

#[tokio::test]
async fn a_deleted_index_takes_its_images_along() {
    let server = without_grace().await;
    let image = server.push_image("a", "platform", "layer").await;
    let child = Digest::sha256(image.as_bytes());
    let body = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [
        {"mediaType": oci::media_type::OCI_MANIFEST, "digest": child, "size": image.len()}
    ]})
    .to_string();
    let pushed = server.put_typed("a", "t", OCI_INDEX, &*body).await;
    assert_eq!(pushed.status(), StatusCode::CREATED);
    let untagged = server.delete("/v2/a/manifests/platform").await;
    assert_eq!(untagged.status(), StatusCode::ACCEPTED);
    assert_eq!(ask(&server, Method::POST, "gc").await["manifests"], 0);
    let index = Digest::sha256(body.as_bytes());
    let deleted = server.delete(&format!("/v2/a/manifests/{index}")).await;
    assert_eq!(deleted.status(), StatusCode::ACCEPTED);
    let collected = ask(&server, Method::POST, "gc").await;
    assert_eq!(
        (&collected["manifests"], &collected["blobs"]),
        (&json!(1), &json!(4))
    );
}
