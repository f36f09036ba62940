//! Damage: found, quarantined, reported, and healed by another push.

use std::fs;
use std::path::PathBuf;

use oci::Digest;
use registry::Size;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::server::{Server, eventually, is, manifest, refusal};

impl Server {
    /// Where the bytes of content are.
    fn bytes(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        self.content(&format!("blobs/sha256/{}/{hex}/data", &hex[..2]))
    }

    /// As a worn-out disk does it: the size stays.
    fn damage(&self, digest: &Digest) {
        let path = self.bytes(digest);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    }

    async fn scrub(&self, method: Method) -> Value {
        let response = self.request(method, "/v2/_atoll/scrub").send().await;
        response.unwrap().json().await.unwrap()
    }

    async fn scrubbed(&self) -> Value {
        assert_eq!(self.scrub(Method::POST).await["is_running"], true);
        eventually(async || self.scrub(Method::GET).await["is_running"] == false).await;
        self.scrub(Method::GET).await
    }
}

async fn unpaced() -> Server {
    Server::with(|settings| settings.registry_storage_maintenance_scrub_rate = Size(0)).await
}

#[tokio::test]
async fn a_scrub_takes_damage_away_and_a_push_heals_it_everywhere() {
    let server = unpaced().await;
    for name in ["a", "b"] {
        server.push_image(name, "t", "layer").await;
    }
    let image = server.push_image("a", "u", "other").await;
    let report = server.scrubbed().await;
    assert_eq!(
        (&report["contents"], &report["damaged"]),
        (&json!(5), &json!(0))
    );
    let (layer, config) = (Digest::sha256(b"layer"), Digest::sha256(b"{}"));
    let image_digest = Digest::sha256(image.as_bytes());
    for content in [&layer, &config, &image_digest] {
        server.damage(content);
    }
    let report = server.scrubbed().await;
    assert_eq!(
        (&report["damaged"], &report["percent"]),
        (&json!(3), &json!(100))
    );
    let finding = |digest: &Digest| {
        let findings = report["findings"].as_array().unwrap().iter();
        let mut found = findings.filter(|found| found["digest"] == digest.to_string());
        found.next().unwrap()["repositories"].clone()
    };
    assert_eq!(finding(&layer), json!(["a", "b"]));
    assert_eq!(finding(&image_digest), json!(["a"]));
    let gone = server.get("/v2/a/manifests/u").await;
    assert_eq!(refusal(gone).await, is(404, "MANIFEST_UNKNOWN"));
    for name in ["a", "b"] {
        let path = format!("/v2/{name}/blobs/{layer}");
        assert_eq!(server.head(&path).await.status(), StatusCode::NOT_FOUND);
        assert_eq!(
            refusal(server.get(&path).await).await,
            is(404, "BLOB_UNKNOWN")
        );
    }
    // Still reported, and not twice: the bytes are gone, the links to them are not.
    let report = server.scrubbed().await;
    assert_eq!(
        (&report["damaged"], &report["missing"]),
        (&json!(0), &json!(3))
    );
    let note = server.dir.path().join(format!(
        "data/.atoll/quarantine/sha256/{}.json",
        layer.hex()
    ));
    let note: Value = serde_json::from_slice(&fs::read(note).unwrap()).unwrap();
    assert_eq!(note["repositories"], json!(["a", "b"]));
    assert!(note["why"].as_str().unwrap().contains("digest"), "{note}");
    server.push_image("a", "t", "layer").await;
    let response = server.put_manifest("a", "u", image.clone()).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    let healed = server.get(&format!("/v2/b/blobs/{layer}")).await;
    assert_eq!(healed.text().await.unwrap(), "layer");
    let healed = server.get("/v2/a/manifests/u").await;
    assert_eq!(healed.text().await.unwrap(), image);
    let report = server.scrubbed().await;
    assert_eq!(
        (&report["contents"], &report["findings"]),
        (&json!(5), &json!([]))
    );
}

#[tokio::test]
async fn a_scrub_goes_on_after_a_restart() {
    // Sixteen contents a second, the smallest bounded part.
    let server = Server::with(|settings| {
        settings.registry_storage_maintenance_scrub_rate = Size(1 << 18);
    })
    .await;
    for n in 0..50 {
        server.push_blob("a", format!("{n}").as_bytes()).await;
    }
    let begun = server.scrub(Method::POST).await["started_at"].clone();
    let record = server.dir.path().join("data/.atoll/records/scrub");
    let position = || -> Option<Value> {
        let record: Value = serde_json::from_slice(&fs::read(&record).ok()?).ok()?;
        Some(record["position"].clone()).filter(|position| !position.is_null())
    };
    eventually(async || position().is_some()).await;
    let server = server.restart().await;
    let report = server.scrub(Method::GET).await;
    assert_eq!(
        (&report["is_running"], &report["started_at"]),
        (&json!(true), &begun)
    );
    assert!(report["contents"].as_u64() > Some(0), "{report}");
    eventually(async || server.scrub(Method::GET).await["is_running"] == false).await;
    let report = server.scrub(Method::GET).await;
    assert_eq!(
        (&report["contents"], &report["started_at"]),
        (&json!(50), &begun)
    );
}

#[tokio::test]
async fn nobody_gets_all_of_a_damaged_blob() {
    let server = Server::plain().await;
    let content: Vec<u8> = (0..2_000_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    let large = server.push_blob("a", &content).await;
    let small = server.push_blob("a", b"small").await;
    let body = manifest(&large, &[(&small, 5)]);
    server.put_manifest("a", "t", &*body).await;
    let server = server.restart().await;
    for digest in [&large, &small, &Digest::sha256(body.as_bytes())] {
        server.damage(digest);
    }
    let path = format!("/v2/a/blobs/{large}");
    let response = server.get(&path).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(
        response.bytes().await.is_err(),
        "the damaged blob came whole"
    );
    assert_eq!(server.head(&path).await.status(), StatusCode::NOT_FOUND);
    let gone = server.get(&format!("/v2/a/blobs/{small}")).await;
    assert_eq!(refusal(gone).await, is(404, "BLOB_UNKNOWN"));
    let gone = server.get("/v2/a/manifests/t").await;
    assert_eq!(refusal(gone).await, is(404, "MANIFEST_UNKNOWN"));
    server.push_blob("a", &content).await;
    server.push_blob("a", b"small").await;
    let response = server.put_manifest("a", "t", &*body).await;
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(server.get(&path).await.bytes().await.unwrap(), content);
}

#[tokio::test]
async fn truncated_and_zeroed_blobs_are_found() {
    let server = Server::plain().await;
    let cut = server.push_blob("a", &vec![1; 300_000]).await;
    let zeroed = server.push_blob("a", &vec![2; 300_000]).await;
    let server = server.restart().await;
    fs::write(server.bytes(&cut), vec![1; 299_999]).unwrap();
    let mut bytes = vec![2; 300_000];
    bytes[290_000..].fill(0);
    fs::write(server.bytes(&zeroed), bytes).unwrap();
    let path = format!("/v2/a/blobs/{cut}");
    assert_eq!(
        refusal(server.get(&path).await).await,
        is(404, "BLOB_UNKNOWN")
    );
    let path = format!("/v2/a/blobs/{zeroed}");
    assert!(server.get(&path).await.bytes().await.is_err());
    assert_eq!(server.head(&path).await.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn who_pulls_keeps_what_they_began_with() {
    let server = Server::plain().await;
    let content = vec![5; 8_000_000];
    let digest = server.push_blob("a", &content).await;
    let mut response = server.get(&format!("/v2/a/blobs/{digest}")).await;
    let first = response.chunk().await.unwrap().unwrap();
    let other = server.dir.path().join("other");
    fs::write(&other, vec![6; 8_000_000]).unwrap();
    fs::rename(other, server.bytes(&digest)).unwrap();
    let rest = response.bytes().await.unwrap();
    assert!(content == [first, rest].concat());
}

#[tokio::test]
async fn only_who_may_delete_everywhere_may_ask() {
    let server = Server::closed().await;
    for method in [Method::GET, Method::POST] {
        let response = server.request(method, "/v2/_atoll/scrub").send().await;
        assert_eq!(response.unwrap().status(), StatusCode::UNAUTHORIZED);
    }
}
