//! Reloads and damaged caches under load.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Instant;

use catalog::api::{Bundle, ListBundlesRequest, ListPackageRequest, PackageName};
use tokio::task::JoinSet;
use tonic::Code;

use crate::content::large;
use crate::operation::{DEADLINE, LOOK, World, folder_with};
use crate::server::{CATALOG, Server};

/// Overwrites a byte in place, which the server never does.
fn damage(cache: &Path, offset: u64) {
    let file = File::options().write(true).open(cache).unwrap();
    file.write_all_at(&[0xff; 64], offset).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_reply_is_of_one_catalog() {
    const ROUNDS: usize = 20;
    let server = Server::start().await;
    let renamed = CATALOG.replace(r#""name":"a""#, r#""name":"z""#);
    let renamed = renamed.replace(r#""package":"a""#, r#""package":"z""#);
    let renamed = renamed.replace(r#""packageName":"a""#, r#""packageName":"z""#);
    let client = server.client().await;
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let client = client.clone();
        calls.spawn(async move {
            loop {
                let bundles: Vec<Bundle> = client
                    .all("ListBundles", ListBundlesRequest {})
                    .await
                    .unwrap();
                let has = |name: &str| bundles.iter().any(|one| one.package_name == name);
                assert_eq!(bundles.len(), 7);
                assert_ne!(has("a"), has("z"));
            }
        });
    }
    for round in 0..ROUNDS {
        server.serve(if round % 2 == 0 { &renamed } else { CATALOG });
        let names: Vec<PackageName> = client
            .all("ListPackages", ListPackageRequest {})
            .await
            .unwrap();
        let is_renamed = names.iter().any(|one| one.name == "z");
        assert_eq!(is_renamed, round % 2 == 0);
    }
    assert!(calls.try_join_next().is_none(), "a call has failed");
}

#[tokio::test]
async fn damaged_blocks_are_never_sent() {
    let server = Server::start().await;
    let cache = server.catalog.current().unwrap();
    // The first byte after the header.
    damage(&server.cache(), 4096);
    let client = server.client().await;
    let answer = client
        .all::<_, Bundle>("ListBundles", ListBundlesRequest {})
        .await;
    assert_eq!(answer.unwrap_err().code(), Code::DataLoss);
    assert!(cache.is_damaged());
}

#[tokio::test]
async fn damaged_caches_are_rebuilt_without_polling() {
    const DOCUMENTS: usize = 1000;
    let folder = folder_with(&large("a", "1.0.0", DOCUMENTS));
    let never = [("catalog_poll_interval", "0")];
    let world = World::start_with(folder, "FOLDER/configs", &never).await;
    world.until_head("catalog", "a.v1.0.0").await;
    damage(&world.path("cache/catalog.cache"), 500_000);
    let count = async || {
        let all = world.get("/catalogs/catalog/api/v1/all").await;
        Some(all.text().await.ok()?.lines().count())
    };
    assert_eq!(count().await, None);
    let deadline = Instant::now() + DEADLINE;
    while count().await != Some(3 + DOCUMENTS) {
        assert!(Instant::now() < deadline, "it stays damaged");
        tokio::time::sleep(LOOK).await;
    }
}
