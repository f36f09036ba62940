//! State of every landed version is read and used by this one; `writes_the_next_state` writes that of this one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::backup::{Site, VARIABLES, atoll, done, start};
use crate::content::{push, push_catalog};
use crate::installation::Place;
use crate::server::Server;

const STATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/state");
/// Units: bytes. Limit of one state: fixtures are part of every clone.
const LIMIT: u64 = 1 << 20;

/// All states with the file `name`.
fn states(name: &str) -> Vec<PathBuf> {
    let states = fs::read_dir(STATES).unwrap();
    let files = states.map(|state| state.unwrap().path().join(name));
    let found: Vec<_> = files.filter(|file| file.exists()).collect();
    assert!(!found.is_empty(), "{STATES}: {name}");
    found
}

fn unpack(archive: &Path, folder: &Path) {
    let bytes = File::open(archive).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
    archive.unpack(folder).unwrap();
}

fn pack(folder: &Path, name: &str, target: &Path) {
    let packed =
        flate2::write::GzEncoder::new(File::create(target).unwrap(), flate2::Compression::best());
    let mut archive = tar::Builder::new(packed);
    archive.append_dir_all(name, folder).unwrap();
    archive.into_inner().unwrap().finish().unwrap();
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.args(arguments).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_landed_installation_is_restored_and_used() {
    for backup in states("up.backup") {
        let place = Place::new();
        done(&atoll("restore", &backup, &place.data(), &[]));
        let variables = place.data().join("env/user.env");
        // Some are of a time when these had defaults, and the registry of their release is not there.
        let names = ["AGENT_DOCKER_IMAGE", "INSTALLER_IMAGE", "CONTROLLER_IMAGE"];
        let images = names.map(|name| format!("{name}=r.example/a:1\n")).concat();
        let restored = fs::read_to_string(&variables).unwrap();
        fs::write(&variables, format!("{restored}\n{images}")).unwrap();
        let up = start(&place, &variables);
        let site = Site::of(&up);
        assert_eq!(site.clusters().await, ["before"], "{}", backup.display());
        assert_eq!(site.pull_all("acme/before").await, 1);
        site.push("acme/before", 1).await;
        site.register("after").await;
        up.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_landed_archive_is_published() {
    for archive in states("archive.tar.gz") {
        let folder = tempfile::tempdir().unwrap();
        unpack(&archive, folder.path());
        let set = folder.path().join("archive");
        let set = set.to_str().unwrap();
        let printed = done(&run(&["mirror", "verify", set]));
        assert!(printed.contains("verified"), "{printed}");
        assert!(done(&run(&["mirror", "describe", set])).contains("pastMirror"));
        let server = Server::start().await;
        let target = format!("docker://{}/ns", server.address);
        let mirror = ["mirror", "--from", set, &target, "--dest-use-http"];
        let published = Command::new(env!("CARGO_BIN_EXE_atoll"))
            .args(mirror)
            .current_dir(folder.path())
            .output()
            .unwrap();
        done(&published);
    }
}

#[test]
fn every_landed_catalog_cache_is_used_or_rebuilt() {
    for archive in states("catalog.tar.gz") {
        let folder = tempfile::tempdir().unwrap();
        unpack(&archive, folder.path());
        let (configs, cache) = (
            folder.path().join("catalog/configs"),
            folder.path().join("catalog/cache"),
        );
        let before = fs::read_dir(&cache).unwrap().count();
        assert!(before > 0);
        let (configs, cache) = (configs.to_str().unwrap(), cache.to_str().unwrap());
        done(&run(&["catalog", "cache", configs, "--dir", cache]));
        let found = fs::read_dir(cache).unwrap().count();
        assert_eq!(found, before, "the cache of the older version is removed");
    }
}

const CATALOG: &str = r#"{"schema":"olm.package","name":"op","defaultChannel":"stable"}
{"schema":"olm.channel","package":"op","name":"stable","entries":[{"name":"op.v1.0.0"}]}
{"schema":"olm.bundle","package":"op","name":"op.v1.0.0","image":"quay.io/acme/op:v1","properties":[{"type":"olm.package","value":{"packageName":"op","version":"1.0.0"}}]}
"#;

/// `cargo test -p atoll --test it writes_the_next_state -- --ignored`; the database comes from the demo, as the README
/// beside the states says.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes into the source tree: run by hand when a state is to be kept"]
async fn writes_the_next_state() {
    let states = Path::new(STATES);
    fs::create_dir_all(states).unwrap();
    let numbers = fs::read_dir(states).unwrap().filter_map(|state| {
        let name = state.unwrap().file_name().into_string().unwrap();
        name.get(..4)?.parse::<u32>().ok()
    });
    let next = numbers.max().unwrap_or(0) + 1;
    let state = states.join(format!("{next:04}-{}", env!("CARGO_PKG_VERSION")));
    fs::create_dir(&state).unwrap();

    let place = Place::new();
    let settings = place.file("my.env");
    fs::write(&settings, VARIABLES).unwrap();
    let up = start(&place, &settings);
    let site = Site::of(&up);
    site.register("before").await;
    site.push("acme/before", 0).await;
    done(&atoll(
        "backup",
        &state.join("up.backup"),
        &place.data(),
        &["--verify"],
    ));
    up.stop();
    pack(
        &place.data().join("registry"),
        "registry",
        &state.join("registry.tar.gz"),
    );

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(path("catalog/configs/op")).unwrap();
    fs::write(path("catalog/configs/op/catalog.json"), CATALOG).unwrap();
    done(&run(&[
        "catalog",
        "cache",
        &path("catalog/configs"),
        "--dir",
        &path("catalog/cache"),
    ]));
    pack(
        Path::new(&path("catalog")),
        "catalog",
        &state.join("catalog.tar.gz"),
    );

    let server = Server::start().await;
    push_catalog(&server, 1).await;
    push(
        &server,
        "acme/tool:v1",
        b"a layer".to_vec(),
        serde_json::json!({}),
    )
    .await;
    let set = format!(
        "kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v1alpha2\n\
         storageConfig: {{local: {{path: {}}}}}\n\
         mirror: {{operators: [{{catalog: {1}/acme/index:v1}}], additionalImages: [{{name: '{1}/acme/tool:v1'}}]}}\n",
        path("archive-metadata"),
        server.address
    );
    fs::write(path("set.yaml"), set).unwrap();
    let out = format!("file://{}", path("archive"));
    done(&run(&[
        "mirror",
        "--config",
        &path("set.yaml"),
        &out,
        "--source-use-http",
    ]));
    pack(
        Path::new(&path("archive")),
        "archive",
        &state.join("archive.tar.gz"),
    );

    let files = fs::read_dir(&state).unwrap();
    let size: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert!(size < LIMIT, "{size} bytes in {}", state.display());
}
