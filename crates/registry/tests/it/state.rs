//! Folders of every landed state are adopted and used.

use std::path::Path;

use reqwest::Method;

use crate::server::{OCI_MANIFEST, Server};

const STATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/state");
/// Content of each: a repository, a tag of one small image.
const IMAGE: (&str, &str) = ("acme/before", "v0");

fn unpack(archive: &Path, folder: &Path) {
    let bytes = std::fs::File::open(archive).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
    archive.unpack(folder).unwrap();
}

#[tokio::test]
async fn every_landed_folder_is_used() {
    let (repository, tag) = IMAGE;
    let mut count = 0;
    for state in std::fs::read_dir(STATES).unwrap() {
        let archive = state.unwrap().path().join("registry.tar.gz");
        if !archive.exists() {
            continue;
        }
        count += 1;
        let folder = tempfile::tempdir().unwrap();
        unpack(&archive, folder.path());
        let root = folder.path().join("registry");
        let server =
            Server::with(|settings| settings.registry_storage_filesystem_rootdirectory = root)
                .await;
        let get = async |path: &str| {
            let url = format!("{}/v2/{repository}/{path}", server.base);
            let request = server.http.request(Method::GET, url);
            let answer = request.header("accept", OCI_MANIFEST).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 200, "{path}");
            answer.bytes().await.unwrap()
        };
        let manifest = get(&format!("manifests/{tag}")).await;
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        for blob in [&manifest["config"], &manifest["layers"][0]] {
            let digest = blob["digest"].as_str().unwrap();
            let bytes = get(&format!("blobs/{digest}")).await;
            assert_eq!(oci::Digest::sha256(&bytes).to_string(), digest);
        }
        let tags = get("tags/list").await;
        assert!(String::from_utf8_lossy(&tags).contains(tag));
    }
    assert!(count > 0, "{STATES}");
}
