//! Garbage collection: removed content, retained content, and clients at the same time.

use std::cell::Cell;
use std::time::Duration;

use oci::Digest;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, eventually};

async fn collect(server: &Server, query: &str) -> Value {
    let path = format!("/v2/_atoll/gc{query}");
    let response = server.request(Method::POST, &path).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.json().await.unwrap()
}

async fn without_grace() -> Server {
    Server::with(|settings| {
        settings.registry_storage_maintenance_gc_grace = Duration::ZERO;
    })
    .await
}

#[tokio::test]
async fn deleted_images_leave_no_bytes() {
    let server = without_grace().await;
    let image = server.push_image("a", "t", "kept").await;
    let gone = server.push_image("a", "u", "gone").await;
    let gone = Digest::sha256(gone.as_bytes());
    server.delete(&format!("/v2/a/manifests/{gone}")).await;
    let counted = collect(&server, "?dryrun=true").await;
    assert_eq!(counted["links"], 1);
    let collected = collect(&server, "").await;
    assert_eq!(collected["links"], 1, "{collected}");
    assert_eq!(collected["blobs"], 2, "{collected}");
    assert_eq!(collect(&server, "").await["blobs"], json!(0));
    let layer = Digest::sha256(b"gone");
    let data = format!("blobs/sha256/{}/{}", &layer.hex()[..2], layer.hex());
    assert!(!server.content(&data).exists());
    let response = server.get("/v2/a/manifests/t").await;
    assert_eq!(response.text().await.unwrap(), image);
    let kept = format!("/v2/a/blobs/{}", Digest::sha256(b"kept"));
    assert_eq!(server.get(&kept).await.text().await.unwrap(), "kept");
}

#[tokio::test]
async fn the_use_of_the_disk_is_known_and_counted_again_after_a_collection() {
    let server = without_grace().await;
    let storage = async || {
        let usage: Value = server.get("/v2/_atoll/usage").await.json().await.unwrap();
        assert_eq!(usage["quotas"], json!([]));
        usage["storage"].clone()
    };
    let image = server.push_image("a", "t", "layer").await;
    server.push_blob("a", b"garbage").await;
    let kept = image.len() + "{}".len() + "layer".len();
    let is_counted = async || {
        let storage = storage().await;
        (&storage["blobs"], &storage["bytes"]) == (&json!(3), &json!(kept))
    };
    collect(&server, "").await;
    eventually(is_counted).await;
    let storage = storage().await;
    assert_eq!(storage["repositories"], 1);
    assert!(storage["counted_at"].is_string());
    let (free, capacity) = (storage["free"].as_u64(), storage["capacity"].as_u64());
    assert!(free < capacity && capacity.unwrap() > 1 << 20, "{storage}");
}

#[tokio::test]
async fn what_is_young_or_was_asked_for_stays() {
    let server = Server::plain().await;
    let young = server.push_blob("a", b"young").await;
    assert_eq!(collect(&server, "").await["links"], 0);
    let path = format!("/v2/a/blobs/{young}");
    assert_eq!(server.head(&path).await.status(), StatusCode::OK);
    let server = without_grace().await;
    let asked = server.push_blob("a", b"asked for").await;
    let path = format!("/v2/a/blobs/{asked}");
    assert_eq!(server.head(&path).await.status(), StatusCode::OK);
    assert_eq!(collect(&server, "").await["links"], 0);
    assert_eq!(server.head(&path).await.status(), StatusCode::OK);
}

async fn is_there(server: &Server, name: &str, blobs: &[&Digest]) -> bool {
    for digest in blobs {
        let path = format!("/v2/{name}/blobs/{digest}");
        if server.head(&path).await.status() != StatusCode::OK {
            return false;
        }
    }
    true
}

/// Collection without any grace, over and over, while images are pushed and deleted: acknowledged content exists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_acknowledged_push_is_lost() {
    let server = without_grace().await;
    let has_ended = Cell::new(false);
    let pushes = async {
        let mut kept = Vec::new();
        for n in 0..60 {
            let (name, tag, note) = (format!("r{}", n % 3), format!("t{n}"), format!("layer {n}"));
            let (mut config, mut layer);
            loop {
                config = server.push_blob(&name, b"{}").await;
                layer = server.push_blob(&name, note.as_bytes()).await;
                // Half of the clients check for existing content first; content that they were answered stays for them.
                if n % 2 == 0 || is_there(&server, &name, &[&config, &layer]).await {
                    break;
                }
            }
            let body = crate::server::manifest(&config, &[(&layer, note.len())]);
            let response = server.put_manifest(&name, &tag, &*body).await;
            match response.status() {
                StatusCode::CREATED if n % 4 == 0 => {
                    let path = format!("/v2/{name}/manifests/{}", Digest::sha256(body.as_bytes()));
                    assert_eq!(server.delete(&path).await.status(), StatusCode::ACCEPTED);
                }
                StatusCode::CREATED => kept.push((name, tag, body, layer, note)),
                // A blob was collected before its manifest came, as it may without grace; nothing was promised.
                StatusCode::BAD_REQUEST => {}
                status => panic!("{status}"),
            }
        }
        has_ended.set(true);
        kept
    };
    let collections = async {
        while !has_ended.get() {
            collect(&server, "").await;
        }
    };
    let (kept, ()) = tokio::join!(pushes, collections);
    assert!(!kept.is_empty(), "nothing was pushed");
    collect(&server, "").await;
    let server = server.restart().await;
    for (name, tag, body, layer, note) in kept {
        let manifest = server.get(&format!("/v2/{name}/manifests/{tag}")).await;
        assert_eq!(manifest.text().await.unwrap(), body);
        let blob = server.get(&format!("/v2/{name}/blobs/{layer}")).await;
        assert_eq!(blob.text().await.unwrap(), note);
    }
}
