//! A registry whose folder others changed between two runs, or during one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blob_store::disk::AdoptionProgress;
use oci::Digest;
use oci::media_type::OCI_INDEX;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::ports::free_port;

use crate::process::{Process, http};
use crate::server::{OCI_MANIFEST, Server, eventually, manifest};

/// Repositories of a folder that is adopted and killed meanwhile.
const MANY: usize = 150;
/// Of these, how many are compared before each kill; the first comes before anything answers.
const KILLS: [u64; 5] = [0, 1, 40, 100, 149];

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
    let listed = server.get("/v2/_atoll/manifests?repository=copy/app").await;
    let listed: Value = listed.json().await.unwrap();
    let entries = listed["manifests"].as_array().unwrap().iter();
    let tags = entries.flat_map(|entry| entry["tags"].as_array().unwrap());
    assert_eq!(tags.count(), 3);
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

/// A folder as docker-registry writes it: [`MANY`] repositories, each with a tag of an image of its own.
fn write_many(root: &Path) {
    let content = root.join("docker/registry/v2");
    let put = |path: &str, bytes: &[u8]| {
        let path = content.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let blob = |bytes: &[u8]| {
        let digest = Digest::sha256(bytes);
        let hex = digest.hex();
        put(&format!("blobs/sha256/{}/{hex}/data", &hex[..2]), bytes);
        digest
    };
    let config = blob(b"{}");
    for number in 0..MANY {
        let layer = layer_of(number);
        let digest = blob(layer.as_bytes());
        let image = blob(manifest(&config, &[(&digest, layer.len())]).as_bytes());
        let link = |below: &str, digest: &Digest| {
            let path = format!("repositories/many/r{number}/{below}/link");
            put(&path, digest.to_string().as_bytes());
        };
        for digest in [&config, &digest] {
            link(&format!("_layers/sha256/{}", digest.hex()), digest);
        }
        let revisions = format!("_manifests/revisions/sha256/{}", image.hex());
        link(&revisions, &image);
        link("_manifests/tags/t/current", &image);
        let history = format!("_manifests/tags/t/index/sha256/{}", image.hex());
        link(&history, &image);
    }
}

fn layer_of(number: usize) -> String {
    format!("layer {number}")
}

/// Every file of the layout, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn an_adoption_that_is_killed_loses_nothing() {
    let root = tempfile::tempdir().unwrap();
    write_many(root.path());
    let content = root.path().join("docker/registry/v2");
    let written = files(&content);
    let http = http();
    let settings = [("REGISTRY_STORAGE_MAINTENANCE_GC_GRACE", "0s")];
    let adopted = async |base: &str| -> Option<AdoptionProgress> {
        let answer = http.get(format!("{base}/v2/_atoll/reindex")).send().await;
        answer.ok()?.json().await.ok()
    };
    for compared in KILLS {
        let process = Process::spawn(root.path(), free_port().unwrap(), &settings);
        if compared > 0 {
            let base = &process.base;
            eventually(async || adopted(base).await.is_some()).await;
            // Garbage that is asked for in the middle waits for the end of the adoption, and dies with it.
            let collect = http.post(format!("{base}/v2/_atoll/gc")).send();
            let collect = tokio::spawn(collect);
            eventually(async || {
                let progress = adopted(base).await.unwrap();
                progress.is_finished || progress.compared >= compared
            })
            .await;
            collect.abort();
        } else {
            let index = root.path().join(".atoll/index.redb");
            eventually(async || index.exists()).await;
        }
        drop(process);
        assert!(files(&content) == written, "killed after {compared}");
    }
    let process = Process::start(root.path(), &settings).await;
    let base = &process.base;
    eventually(async || adopted(base).await.is_some_and(|now| now.is_finished)).await;
    let progress = adopted(base).await.unwrap();
    assert_eq!((progress.repositories, progress.failed), (MANY as u64, 0));
    for is_collected in [false, true] {
        if is_collected {
            let answer = http.post(format!("{base}/v2/_atoll/gc")).send().await;
            let collected: Value = answer.unwrap().json().await.unwrap();
            let nothing = (&json!(0), &json!(0));
            assert_eq!((&collected["blobs"], &collected["links"]), nothing);
            assert!(files(&content) == written, "something was collected");
        }
        let config = Digest::sha256(b"{}");
        for number in 0..MANY {
            let url = |below: &str| format!("{base}/v2/many/r{number}/{below}");
            let layer = layer_of(number);
            let digest = Digest::sha256(layer.as_bytes());
            let get = http
                .get(url("manifests/t"))
                .header("accept", OCI_MANIFEST)
                .send();
            let found = get.await.unwrap().text().await.unwrap();
            assert_eq!(found, manifest(&config, &[(&digest, layer.len())]));
            let blob = http.get(url(&format!("blobs/{digest}"))).send().await;
            assert_eq!(blob.unwrap().text().await.unwrap(), layer);
        }
    }
}
