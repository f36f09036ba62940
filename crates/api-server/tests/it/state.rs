//! Databases of every landed state are brought up to date and used.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::harness::Server;
use crate::installation::install_single_node;

const STATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/state");

fn dumps() -> Vec<PathBuf> {
    let states = std::fs::read_dir(STATES).unwrap();
    let dumps = states.map(|state| state.unwrap().path().join("database.sql.gz"));
    dumps.filter(|dump| dump.exists()).collect()
}

fn inflate(dump: &Path, folder: &Path) -> PathBuf {
    let target = folder.join("database.sql");
    let mut text = flate2::read::GzDecoder::new(std::fs::File::open(dump).unwrap());
    std::io::copy(&mut text, &mut std::fs::File::create(&target).unwrap()).unwrap();
    target
}

/// `cargo test -p api-server --test it writes_the_next_database -- --ignored`, after the rest of the state was written.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes into the source tree: run by hand when a state is to be kept"]
async fn writes_the_next_database() {
    let server = Server::start().await;
    install_single_node(&server).await;
    let sql = testkit::postgres::dump(&server.database).await.unwrap();
    let states = std::fs::read_dir(STATES).unwrap();
    let folders = states.map(|state| state.unwrap().path());
    let newest = folders.filter(|path| path.is_dir()).max().unwrap();
    let file = std::fs::File::create_new(newest.join("database.sql.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    packed.write_all(&sql).unwrap();
    packed.finish().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_landed_database_is_used() {
    let dumps = dumps();
    assert!(!dumps.is_empty(), "{STATES}");
    for dump in dumps {
        let folder = tempfile::tempdir().unwrap();
        let sql = inflate(&dump, folder.path());
        let database = testkit::postgres::restored(&sql).await.unwrap();
        let server = Server::on(database, |_| {}).await;
        server.wait_ready().await;
        let clusters = server.get("/v2/clusters").await.expect(200);
        let cluster = &clusters[0];
        let id = cluster["id"].as_str().unwrap();
        let path = format!("/v2/clusters/{id}");
        let found = server.get(&path).await.expect(200);
        // The first state was saved before hosts registered.
        for host in found["hosts"].as_array().into_iter().flatten() {
            assert_eq!(host["status"], cluster["status"]);
            assert!(host["inventory"].as_str().unwrap().contains("disks"));
        }
        let events = server.get(&format!("/v2/events?cluster_id={id}")).await;
        assert!(!events.expect(200).as_array().unwrap().is_empty());
        // New rows beside the old ones, and old ones changed.
        let infra_env = server.infra_env(None).await;
        server.host(&infra_env, 1).await;
        server.cluster(json!({})).await;
        let change = json!({ "ssh_public_key": "" });
        server.patch(&path, &change).await.expect(201);
    }
}
