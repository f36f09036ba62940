//! `atoll doctor` on the folder of a pod: each broken part is found, with its remedy.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

use oci_client::{Client, ClientOptions, Credentials};
use registry::{HttpAddr, Settings};
use serde_json::{Value, json};
use service::CancellationToken;
use service::server::Running;
use service::settings::Setting as _;

fn atoll(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(arguments)
        .output()
        .unwrap()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A pod's folder whose registry is published at `port`, with further lines of settings.
fn pod(dir: &Path, port: u16, more: &str) {
    let made = atoll(&[
        "pod",
        "init",
        "--host",
        "127.0.0.1",
        "--dir",
        dir.to_str().unwrap(),
    ]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let path = dir.join(".env");
    let settings = fs::read_to_string(&path).unwrap();
    let settings = settings.replace("PUBLISH_REGISTRY=5000", &format!("PUBLISH_REGISTRY={port}"));
    fs::write(&path, format!("{settings}\n{more}")).unwrap();
    let logins = dir.join("secrets/registry-logins.json");
    let text = fs::read_to_string(&logins).unwrap();
    fs::write(&logins, text.replace(":5000\"", &format!(":{port}\""))).unwrap();
}

/// Results by id.
fn results(dir: &Path) -> BTreeMap<String, Value> {
    let output = atoll(&["doctor", "--json", "--dir", dir.to_str().unwrap()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let fails = checks.iter().any(|one| one["status"] == "failed");
    assert_eq!(output.status.code(), Some(i32::from(fails)));
    let by_id = |one: &Value| (one["id"].as_str().unwrap().to_owned(), one.clone());
    checks.iter().map(by_id).collect()
}

async fn serve(dir: &Path, port: u16) -> Running {
    let secrets = dir.join("secrets");
    let settings = Settings {
        registry_http_addr: HttpAddr::parse(&format!("127.0.0.1:{port}")).unwrap(),
        registry_storage_filesystem_rootdirectory: dir.join("data"),
        registry_http_tls_certificate: Some(secrets.join("registry.crt")),
        registry_http_tls_key: Some(secrets.join("registry.key")),
        registry_auth_htpasswd_path: Some(secrets.join("registry.htpasswd")),
        ..Settings::default()
    };
    registry::start(settings, CancellationToken::new())
        .await
        .unwrap()
}

/// Pushes an empty index as `image`.
async fn push(dir: &Path, image: &str) {
    let logins = fs::read_to_string(dir.join("secrets/registry-logins.json")).unwrap();
    let client = Client::new(ClientOptions {
        credentials: Credentials::from_auth_file(&logins).unwrap(),
        ca_pem: Some(fs::read(dir.join("secrets/proxy/ca.crt")).unwrap()),
        ..ClientOptions::default()
    })
    .unwrap();
    let kind = "application/vnd.oci.image.index.v1+json";
    let index = json!({ "schemaVersion": 2, "mediaType": kind, "manifests": [] });
    let manifest = oci::Manifest::parse(index.to_string().into_bytes().into(), Some(kind)).unwrap();
    client
        .push_manifest(&image.parse().unwrap(), &manifest)
        .await
        .unwrap();
}

/// Asserts one result: failures and warnings have a remedy.
fn expect(results: &BTreeMap<String, Value>, id: &str, status: &str, text: &str) {
    let found = results.get(id);
    let found = found.unwrap_or_else(|| panic!("{id} is not in {results:?}"));
    assert_eq!(found["status"], status, "{found}");
    assert!(found.to_string().contains(text), "{text}: {found}");
    assert_eq!(found["remedy"] == "", status == "passed", "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_parts_of_a_pod_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let port = free_port();
    let release = format!("127.0.0.1:{port}/openshift/release-images:4.18.30-x86_64");
    let releases = json!([{ "openshift_version": "4.18", "cpu_architecture": "x86_64",
        "cpu_architectures": ["x86_64"], "url": release, "version": "4.18.30", "default": true }]);
    let agent = format!("127.0.0.1:{port}/edge-infrastructure/assisted-installer-agent:latest");
    pod(
        dir,
        port,
        &format!("RELEASE_IMAGES={releases}\nAGENT_DOCKER_IMAGE={agent}\n"),
    );
    let login = format!("registry-login:127.0.0.1:{port}");
    // Without the registry.
    let found = results(dir);
    expect(&found, &login, "failed", "start the registry");
    expect(
        &found,
        &format!("port:registry/{port}"),
        "warning",
        "start registry",
    );
    expect(&found, "release-image:4.18.30", "failed", "RELEASE_IMAGES");
    expect(&found, "os-image", "failed", "OS_IMAGES");
    expect(
        &found,
        "base-url:SERVICE_BASE_URL",
        "failed",
        "leads each host to itself",
    );
    expect(
        &found,
        "front-names:api.atoll.internal",
        "warning",
        "add an address record",
    );
    expect(&found, "certificate:registry", "passed", "");
    expect(&found, "certificate:proxy", "passed", "");
    assert!(found.keys().any(|id| id.starts_with("sandbox:")));
    assert!(
        found.contains_key(&format!("disk-space:{}", dir.display()))
            && found.contains_key("memory")
    );

    let _running = serve(dir, port).await;
    let found = results(dir);
    expect(&found, &login, "passed", "");
    expect(
        &found,
        &format!("port:registry/{port}"),
        "passed",
        "held by registry",
    );
    expect(
        &found,
        "release-image:4.18.30",
        "failed",
        "is not in the registry",
    );
    expect(
        &found,
        "image:AGENT_DOCKER_IMAGE",
        "failed",
        "correct AGENT_DOCKER_IMAGE",
    );
    push(dir, &release).await;
    push(dir, &agent).await;
    let found = results(dir);
    expect(&found, "image:AGENT_DOCKER_IMAGE", "passed", "");
    expect(
        &found,
        "release-image:4.18.30",
        "failed",
        "no boot image for 4.18 (x86_64)",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_and_certificates_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let port = free_port();
    pod(dir, port, "");
    let running = serve(dir, port).await;
    let login = format!("registry-login:127.0.0.1:{port}");
    expect(&results(dir), &login, "passed", "");
    // Neither the password nor the right one is printed.
    let logins = dir.join("secrets/registry-logins.json");
    let wrong = json!({ "auths": { format!("127.0.0.1:{port}"): { "username": "atoll", "password": "hunter2" } } });
    let right = fs::read(&logins).unwrap();
    fs::write(&logins, wrong.to_string()).unwrap();
    let found = results(dir);
    expect(&found, &login, "failed", "atoll registry password");
    assert!(!format!("{found:?}").contains("hunter2"));
    fs::write(&logins, right).unwrap();

    // A certificate of another authority.
    let other = tempfile::tempdir().unwrap();
    pod(other.path(), port, "");
    for name in ["registry.crt", "registry.key"] {
        let name = format!("secrets/{name}");
        fs::copy(dir.join(&name), other.path().join(&name)).unwrap();
    }
    let found = results(other.path());
    expect(&found, "certificate:registry", "failed", "refuse");
    drop(running);
}

#[test]
fn malformed_settings_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for (line, expected) in [
        ("RELEASE_IMAGES=[{", "RELEASE_IMAGES"),
        ("PUBLISH_API=a:b", "PUBLISH_API"),
        ("no setting", "expected NAME=value"),
    ] {
        fs::create_dir_all(dir.path().join("secrets")).unwrap();
        fs::write(dir.path().join("secrets/registry-logins.json"), "{}").unwrap();
        fs::write(dir.path().join(".env"), line).unwrap();
        let output = atoll(&["doctor", "--dir", dir.path().to_str().unwrap()]);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1));
        assert!(printed.contains(expected), "{printed}");
    }
    fs::remove_file(dir.path().join(".env")).unwrap();
    let output = atoll(&["doctor", "--dir", dir.path().to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--dir"));
}
