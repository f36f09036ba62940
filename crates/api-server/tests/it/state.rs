//! Upgrades: databases of every released state are migrated and used.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sqlx::ConnectOptions as _;

use crate::harness::{Server, host_id};
use crate::installation::{install_single_node, upload};

const STATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/state");
const DUMP: &str = "database.sql.gz";
/// The work folder's files of the clusters in that database.
const FILES: &str = "files.tar.gz";
const LOGS: &str = "logs of the controller";

fn dumps() -> Vec<PathBuf> {
    let states = std::fs::read_dir(STATES).unwrap();
    let dumps = states.map(|state| state.unwrap().path().join(DUMP));
    dumps.filter(|dump| dump.exists()).collect()
}

/// Unpacks the files beside a dump into a work folder; the first state has none.
fn unpack_files(dump: &Path, work_dir: &Path) {
    let packed = dump.with_file_name(FILES);
    if packed.exists() {
        let bytes = flate2::read::GzDecoder::new(File::open(packed).unwrap());
        tar::Archive::new(bytes).unpack(work_dir).unwrap();
    }
}

fn inflate(dump: &Path, folder: &Path) -> PathBuf {
    let target = folder.join("database.sql");
    let mut text = flate2::read::GzDecoder::new(File::open(dump).unwrap());
    std::io::copy(&mut text, &mut File::create(&target).unwrap()).unwrap();
    target
}

/// `cargo test -p api-server --test it writes_the_next_database -- --ignored`, after the rest of the state was written.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes into the source tree: run by hand when a state is to be kept"]
async fn writes_the_next_database() {
    let server = Server::start().await;
    install_single_node(&server).await;
    let clusters = server.get("/v2/clusters").await.expect(200);
    let id = clusters[0]["id"].as_str().unwrap();
    let logs = format!("/v2/clusters/{id}/logs?logs_type=controller");
    upload(&server, &logs, "upfile", LOGS).await.expect(204);
    let sql = testkit::postgres::dump(&server.database).await.unwrap();
    let states = std::fs::read_dir(STATES).unwrap();
    let folders = states.map(|state| state.unwrap().path());
    let newest = folders.filter(|path| path.is_dir()).max().unwrap();
    let gzip = |name: &str| {
        let file = File::create_new(newest.join(name)).unwrap();
        flate2::write::GzEncoder::new(file, flate2::Compression::best())
    };
    let mut packed = gzip(DUMP);
    packed.write_all(&sql).unwrap();
    packed.finish().unwrap();
    let mut files = tar::Builder::new(gzip(FILES));
    let of_cluster = server.work_dir().join(id);
    files.append_dir_all(id, of_cluster).unwrap();
    files.into_inner().unwrap().finish().unwrap();
}

/// Asserts files and progress of an installed cluster of a dump.
async fn assert_installation(server: &Server, path: &str, cluster: &Value) {
    assert_eq!(cluster["progress"]["total_percentage"], 100);
    let host = &cluster["hosts"][0];
    assert_eq!(host["id"], host_id(1));
    assert_eq!(host["progress"]["current_stage"], "Done");
    assert_eq!(host["bootstrap"], true);
    let credentials = server.get(&format!("{path}/credentials")).await.expect(200);
    assert_eq!(credentials["username"], "kubeadmin");
    assert!(!credentials["password"].as_str().unwrap().is_empty());
    let download = format!("{path}/downloads/credentials?file_name=kubeconfig");
    let kubeconfig = server.get(&download).await;
    assert_eq!(kubeconfig.status, 200, "{}", kubeconfig.text);
    assert!(kubeconfig.text.contains("certificate-authority-data"));
    let infra_env = host["infra_env_id"].as_str().unwrap();
    let ignition = format!(
        "/v2/infra-env/{infra_env}/hosts/{}/downloads/ignition",
        host_id(1)
    );
    let ignition = server.get(&ignition).await.expect(200);
    assert!(ignition["ignition"]["version"].is_string());
    let file = format!("{path}/downloads/files?file_name=bootstrap.ign");
    server.get(&file).await.expect(200);
    let logs = server
        .get(&format!("{path}/logs?logs_type=controller"))
        .await;
    assert_eq!(logs.text, LOGS);
}

/// Asserts that large texts of hosts are in columns of their own and no longer in records.
async fn assert_texts_moved(server: &Server) {
    let mut connection = server.database.options().connect().await.unwrap();
    let statement = "select count(*) from hosts
        where inventory = '' or record ?| array['inventory', 'connectivity', 'validations_info', 'free_addresses']";
    let count: i64 = sqlx::query_scalar(statement)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(count, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_released_database_is_migrated() {
    let dumps = dumps();
    assert!(!dumps.is_empty(), "{STATES}");
    for dump in dumps {
        let folder = tempfile::tempdir().unwrap();
        let sql = inflate(&dump, folder.path());
        let database = testkit::postgres::restored(&sql).await.unwrap();
        let server = Server::on(database, |settings| {
            unpack_files(&dump, &settings.work_dir);
        })
        .await;
        server.wait_ready().await;
        let clusters = server.get("/v2/clusters").await.expect(200);
        let cluster = &clusters[0];
        let id = cluster["id"].as_str().unwrap();
        let path = format!("/v2/clusters/{id}");
        let found = server.get(&path).await.expect(200);
        // The first state was saved before hosts registered.
        let has_installation = dump.with_file_name(FILES).exists();
        assert_eq!(found["status"] == "installed", has_installation);
        for host in found["hosts"].as_array().into_iter().flatten() {
            assert_eq!(host["status"], found["status"]);
            assert!(host["inventory"].as_str().unwrap().contains("disks"));
            assert!(
                host["validations_info"]
                    .as_str()
                    .unwrap()
                    .contains("status")
            );
        }
        assert_texts_moved(&server).await;
        if has_installation {
            assert_installation(&server, &path, &found).await;
        }
        let events = server.get(&format!("/v2/events?cluster_id={id}")).await;
        assert!(!events.expect(200).as_array().unwrap().is_empty());
        // New rows are inserted, and old ones updated.
        let infra_env = server.infra_env(None).await;
        server.host(&infra_env, 1).await;
        server.cluster(json!({})).await;
        let change = json!({ "ssh_public_key": "" });
        let changed = server.patch(&path, &change).await;
        changed.expect(if has_installation { 409 } else { 201 });
        if has_installation {
            server.delete(&path).await.expect(204);
            server.get(&path).await.expect(404);
        }
    }
}
