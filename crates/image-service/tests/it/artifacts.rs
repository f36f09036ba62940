//! OS images from a registry, and checksums of downloads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use serde_json::json;
use service::settings::JsonVar;
use sha2::{Digest as _, Sha256};
use testkit::iso::LiveImageOptions;

use crate::world::{OS_VERSION, World, os_image, own_file};

/// A registry with one artifact.
struct Registry {
    blob: Bytes,
    /// Sent instead of the blob, as many times.
    damaged: AtomicUsize,
    /// First byte of each request of the blob.
    begun: std::sync::Mutex<Vec<usize>>,
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

async fn manifest(State(registry): State<Arc<Registry>>) -> Response {
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let body = json!({
        "schemaVersion": 2, "mediaType": kind, "artifactType": "application/x-cd-image",
        "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(b"{}"), "size": 2 },
        "layers": [{
            "mediaType": "application/x-cd-image", "digest": digest(&registry.blob), "size": registry.blob.len(),
            "annotations": { "org.opencontainers.image.title": "live.iso" },
        }],
    });
    ([(header::CONTENT_TYPE, kind)], body.to_string()).into_response()
}

async fn blob(State(registry): State<Arc<Registry>>, headers: HeaderMap) -> Response {
    let first = headers.get(header::RANGE).map_or(0, |range| {
        let text = range.to_str().unwrap().strip_prefix("bytes=").unwrap();
        text.strip_suffix('-').unwrap().parse().unwrap()
    });
    registry.begun.lock().unwrap().push(first);
    let is_damaged = registry
        .damaged
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
            left.checked_sub(1)
        });
    let bytes = match is_damaged {
        Ok(_) => Bytes::from(vec![0; registry.blob.len() - first]),
        Err(_) => registry.blob.slice(first..),
    };
    let status = if first == 0 {
        StatusCode::OK
    } else {
        StatusCode::PARTIAL_CONTENT
    };
    (status, bytes).into_response()
}

impl Registry {
    fn with_image(damaged: usize) -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.iso");
        testkit::iso::write(&path, &LiveImageOptions::default()).unwrap();
        Arc::new(Self {
            blob: std::fs::read(path).unwrap().into(),
            damaged: damaged.into(),
            begun: std::sync::Mutex::default(),
        })
    }

    /// The URL of the artifact.
    async fn serve(self: &Arc<Self>) -> String {
        let router = Router::new()
            .route("/v2/", get(async || "{}"))
            .route("/v2/os/live/manifests/418", get(manifest))
            .route("/v2/os/live/blobs/{digest}", get(blob))
            .with_state(Arc::clone(self));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("oci://{address}/os/live:418")
    }
}

async fn world_with(data: tempfile::TempDir, url: &str, sha256: &str) -> World {
    World::without_image(data, |settings| {
        let mut image = os_image(url);
        sha256.clone_into(&mut image.sha256);
        settings.os_images = JsonVar(vec![image]);
        settings.insecure_skip_verify = true;
    })
    .await
}

#[tokio::test]
async fn an_image_comes_from_a_registry() {
    let registry = Registry::with_image(0);
    let url = registry.serve().await;
    let world = world_with(tempfile::tempdir().unwrap(), &url, "").await;
    world.ready().await;
    assert!(std::fs::read(own_file(world.data.path())).unwrap() == registry.blob);
}

#[tokio::test]
async fn a_partial_file_is_continued_after_a_restart() {
    let registry = Registry::with_image(0);
    let url = registry.serve().await;
    let data = tempfile::tempdir().unwrap();
    let partial = own_file(data.path()).with_extension("iso.part");
    std::fs::write(partial, &registry.blob[..5000]).unwrap();
    let world = world_with(data, &url, "").await;
    world.ready().await;
    assert_eq!(*registry.begun.lock().unwrap(), [5000]);
    assert!(std::fs::read(own_file(world.data.path())).unwrap() == registry.blob);
}

#[tokio::test]
async fn damaged_content_is_downloaded_again() {
    let registry = Registry::with_image(1);
    let url = registry.serve().await;
    let world = world_with(tempfile::tempdir().unwrap(), &url, "").await;
    world.ready().await;
    assert_eq!(*registry.begun.lock().unwrap(), [0, 0]);
    assert!(std::fs::read(own_file(world.data.path())).unwrap() == registry.blob);
}

#[tokio::test]
async fn a_download_with_another_checksum_is_not_served() {
    let registry = Registry::with_image(0);
    let url = registry.serve().await;
    let world = world_with(tempfile::tempdir().unwrap(), &url, &"0".repeat(64)).await;
    let response = loop {
        let response = world.client.get(format!("{}/health", world.url)).send();
        if !registry.begun.lock().unwrap().is_empty() {
            break response.await.unwrap();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    let text = response.text().await.unwrap();
    assert!(text.contains(OS_VERSION), "{text}");
    let path = own_file(world.data.path());
    // The second attempt follows the verdict about the first one.
    while registry.begun.lock().unwrap().len() < 2 {
        assert!(!path.exists());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(!path.exists());
    let expected = digest(&registry.blob);
    let found = expected.trim_start_matches("sha256:").to_ascii_uppercase();
    let world = world_with(tempfile::tempdir().unwrap(), &url, &found).await;
    world.ready().await;
}
