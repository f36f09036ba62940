//! `atoll doctor` on the folder of a pod: each broken part is found, with its remedy.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use model::release_payload::COMPONENTS;
use oci_client::{Client, ClientOptions, Credentials};
use registry::{HttpAddr, Settings};
use serde_json::{Value, json};
use service::CancellationToken;
use service::server::Running;
use service::settings::Setting as _;
use testkit::ports::free_port;
use testkit::release;

use crate::installation::{Place, until};

/// A catalog with one package.
const PACKAGE: &str = r#"
{"schema":"olm.package","name":"a","defaultChannel":"stable"}
{"schema":"olm.channel","package":"a","name":"stable","entries":[{"name":"a.v1"}]}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"quay.io/x/a:1",
 "properties":[{"type":"olm.package","value":{"packageName":"a","version":"1.0.0"}}]}
"#;

fn atoll(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(arguments)
        .output()
        .unwrap()
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
    // Others of this machine may have the default ports.
    let lines = settings.lines().map(|line| match line.split_once('=') {
        Some(("PUBLISH_REGISTRY", _)) => format!("PUBLISH_REGISTRY={port}"),
        Some((name, _)) if name.starts_with("PUBLISH_") => {
            format!("{name}=127.0.0.1:{}", free_port().unwrap())
        }
        _ => line.to_owned(),
    });
    let settings = lines.collect::<Vec<_>>().join("\n");
    fs::write(&path, format!("{settings}\n{more}")).unwrap();
    let logins = dir.join("secrets/registry-logins.json");
    let text = fs::read_to_string(&logins).unwrap();
    fs::write(&logins, text.replace(":5000\"", &format!(":{port}\""))).unwrap();
}

/// The setting of a pod's folder.
fn setting(dir: &Path, name: &str) -> String {
    let settings = fs::read_to_string(dir.join(".env")).unwrap();
    let mut lines = settings.lines().rev();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    value.unwrap().to_owned()
}

/// Adds lines to the settings, which take the place of earlier ones.
fn set(dir: &Path, lines: &str) {
    let path = dir.join(".env");
    let settings = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{settings}\n{lines}\n")).unwrap();
}

/// Results by id.
fn results(dir: &Path) -> BTreeMap<String, Value> {
    results_with(dir, &[])
}

/// Results by id, with further arguments.
fn results_with(dir: &Path, more: &[&str]) -> BTreeMap<String, Value> {
    results_of(&[&["--dir", dir.to_str().unwrap()], more].concat())
}

/// Results by id of `atoll doctor` with these arguments.
fn results_of(arguments: &[&str]) -> BTreeMap<String, Value> {
    let output = atoll(&[&["doctor", "--json"], arguments].concat());
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
fn client(dir: &Path) -> Client {
    let logins = fs::read_to_string(dir.join("secrets/registry-logins.json")).unwrap();
    Client::new(ClientOptions {
        credentials: Credentials::from_auth_file(&logins).unwrap(),
        ca_pem: Some(fs::read(dir.join("secrets/proxy/ca.crt")).unwrap()),
        ..ClientOptions::default()
    })
    .unwrap()
}

async fn push(dir: &Path, image: &str) {
    let kind = "application/vnd.oci.image.index.v1+json";
    let index = json!({ "schemaVersion": 2, "mediaType": kind, "manifests": [] });
    let manifest = oci::Manifest::parse(index.to_string().into_bytes().into(), Some(kind)).unwrap();
    client(dir)
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

/// Asserts the results for services of a pod that do not run.
fn expect_no_services(dir: &Path, found: &BTreeMap<String, Value>) {
    let database = format!("database:{}/installer", setting(dir, "PUBLISH_DB"));
    expect(
        found,
        &database,
        "failed",
        "does not accept connections (DB_HOST, DB_PORT)",
    );
    expect(found, "catalog:catalog", "passed", "COMPOSE_PROFILES");
    expect(found, "api", "failed", "start the api-server");
    expect(found, "clusters", "warning", "--cluster");
    for (name, service) in [
        ("PUBLISH_HTTP", "proxy"),
        ("PUBLISH_HTTPS", "proxy"),
        ("PUBLISH_WEBUI_STATIC", "webui"),
        ("PUBLISH_DB", "db"),
    ] {
        let port = setting(dir, name).replace("127.0.0.1:", "");
        let id = format!("port:{service}/{port}");
        expect(found, &id, "warning", &format!("start {service}"));
    }
    let https = setting(dir, "PUBLISH_HTTPS").replace("127.0.0.1:", "");
    for name in ["api", "web", "service", "registry", "mirror"] {
        let id = format!("served-certificate:{name}.atoll.internal:{https}");
        expect(found, &id, "warning", "does not run");
    }
}

/// Asserts the results for a cluster that has no names.
fn expect_no_cluster_names(dir: &Path) {
    let found = results_with(dir, &["--cluster", "lab.example.invalid"]);
    for name in ["api", "api-int", "test.apps"] {
        let id = format!("cluster-names:{name}.lab.example.invalid");
        expect(&found, &id, "failed", "add an address record");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_parts_of_a_pod_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let port = free_port().unwrap();
    let release = format!("127.0.0.1:{port}/openshift/release-images:4.18.30-x86_64");
    let releases = json!([{ "openshift_version": "4.18", "cpu_architecture": "x86_64",
        "cpu_architectures": ["x86_64"], "url": release, "version": "4.18.30", "default": true }]);
    let agent = format!("127.0.0.1:{port}/edge-infrastructure/assisted-installer-agent:latest");
    pod(
        dir,
        port,
        &format!("RELEASE_IMAGES={releases}\n{}", components(&agent)),
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
    // Those of the registry are on offer.
    assert!(!found.contains_key("os-image"));
    expect(
        &found,
        "base-url:SERVICE_BASE_URL",
        "failed",
        "leads each host to itself",
    );
    expect(
        &found,
        "front-names",
        "warning",
        "add address records for api.atoll.internal, web",
    );
    expect(&found, "certificate:registry", "passed", "");
    expect(&found, "certificate:proxy", "passed", "");
    expect_no_services(dir, &found);
    assert!(found.keys().any(|id| id.starts_with("sandbox:")));
    assert!(
        found.contains_key(&format!("disk-space:{}", dir.display()))
            && found.contains_key("memory")
    );

    expect_no_cluster_names(dir);

    let _running = serve(dir, port).await;
    let found = results(dir);
    expect(&found, &login, "passed", "");
    for name in ["127.0.0.1", "registry"] {
        let id = format!("served-certificate:{name}:{port}");
        expect(&found, &id, "passed", "more days");
    }
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
    expect(&found, "release-image:4.18.30", "passed", "");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_and_certificates_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let port = free_port().unwrap();
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

/// Lines of settings with one image for all components.
fn components(image: &str) -> String {
    let names = ["AGENT_DOCKER_IMAGE", "INSTALLER_IMAGE", "CONTROLLER_IMAGE"];
    names.map(|name| format!("{name}={image}\n")).concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn images_of_releases_are_checked_unless_settings_replace_them() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let port = free_port().unwrap();
    let release = format!("127.0.0.1:{port}/openshift/release-images:4.18.30-x86_64");
    let releases = json!([{ "openshift_version": "4.18", "cpu_architecture": "x86_64",
        "cpu_architectures": ["x86_64"], "url": release, "version": "4.18.30", "default": true }]);
    pod(dir, port, &format!("RELEASE_IMAGES={releases}\n"));
    let _running = serve(dir, port).await;
    let image = format!("127.0.0.1:{port}/openshift/release:4.18.30-agent");
    let publish = async |names: &[&str]| {
        let images: Vec<_> = names.iter().map(|name| (*name, image.as_str())).collect();
        let client = client(dir);
        let published = release::publish_payload(&client, &release, "4.18.30", &images);
        published.await.unwrap();
    };
    let id = "release-image:4.18.30";
    push(dir, &release).await;
    expect(&results(dir), id, "failed", "mirror the release again");
    publish(&["agent-installer-node-agent", "cli"]).await;
    expect(&results(dir), id, "failed", "cannot be pulled");
    push(dir, &image).await;
    let found = results(dir);
    expect(
        &found,
        id,
        "failed",
        "has no image agent-installer-orchestrator",
    );
    expect(&found, id, "failed", "set INSTALLER_IMAGE");
    let all = COMPONENTS.map(|one| one.name);
    publish(&all).await;
    let found = results(dir);
    expect(&found, id, "passed", "");
    assert!(
        !found.keys().any(|id| id.starts_with("image:")),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn images_are_found_at_mirrors() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let port = free_port().unwrap();
    let release = "quay.invalid/openshift/release:4.18.30";
    let releases = json!([{ "openshift_version": "4.18", "cpu_architecture": "x86_64",
        "cpu_architectures": ["x86_64"], "url": release, "version": "4.18.30", "default": true }]);
    let more = format!("RELEASE_IMAGES={releases}\n{}", components(release));
    pod(dir, port, &more);
    let _running = serve(dir, port).await;
    let found = results(dir);
    expect(&found, "release-image:4.18.30", "failed", "cannot be read");
    push(dir, &format!("127.0.0.1:{port}/mirrored/release:4.18.30")).await;
    let sets = dir.join("itms.yaml");
    let mirrored = json!({ "kind": "ImageTagMirrorSet", "spec": { "imageTagMirrors": [{
        "source": "quay.invalid/openshift", "mirrors": [format!("127.0.0.1:{port}/mirrored")] }] } });
    fs::write(&sets, mirrored.to_string()).unwrap();
    let found = results_with(dir, &["--mirrors", sets.to_str().unwrap()]);
    expect(&found, "release-image:4.18.30", "passed", "");
    // As the API server has them.
    let conf = format!(
        "[[registry]]\nlocation = \"quay.invalid/openshift\"\n[[registry.mirror]]\nlocation = \"127.0.0.1:{port}/mirrored\"\n"
    );
    fs::create_dir_all(dir.join("images")).unwrap();
    fs::write(dir.join("images/registries.conf"), conf).unwrap();
    set(dir, "REGISTRIES_CONF_PATH=/images/registries.conf");
    let found = results(dir);
    expect(&found, "release-image:4.18.30", "passed", "");
}

#[test]
fn mirrors_are_checked_without_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let closed = free_port().unwrap();
    let mirrored = |kind: &str, list: &str, source: &str| {
        json!({ "kind": kind, "spec": { list: [{
            "source": source, "mirrors": [format!("127.0.0.1:{closed}/a/b")] }] } })
    };
    let items = [
        mirrored(
            "ImageDigestMirrorSet",
            "imageDigestMirrors",
            "quay.invalid/digests",
        ),
        mirrored("ImageTagMirrorSet", "imageTagMirrors", "quay.invalid/tags"),
    ];
    let sets = dir.join("sets.yaml");
    fs::write(&sets, json!({ "kind": "List", "items": items }).to_string()).unwrap();
    let found = results_of(&["--mirrors", sets.to_str().unwrap()]);
    let id = format!("mirror:127.0.0.1:{closed}");
    expect(
        &found,
        &id,
        "failed",
        "quay.invalid/digests, quay.invalid/tags",
    );
    let empty = dir.join("empty.conf");
    fs::write(&empty, "").unwrap();
    let output = atoll(&["doctor", "--mirrors", empty.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("empty.conf: it names no mirror"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_login_of_the_database_is_tried() {
    let database = testkit::postgres::database().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (port, name) = (database.port, &database.name);
    let lines = format!(
        "DB_HOST={}\nDB_PORT={port}\nDB_USER={}\nDB_NAME={name}\nPUBLISH_DB=127.0.0.1:{port}\n",
        database.host, database.user
    );
    pod(dir, free_port().unwrap(), &lines);
    let found = results(dir);
    let id = |name: &str| format!("database:{}:{port}/{name}", database.host);
    expect(&found, &id(name), "passed", "accepts the login");
    expect(&found, &format!("port:db/{port}"), "passed", "held by db");
    set(dir, "DB_NAME=absent");
    let found = results(dir);
    expect(&found, &id("absent"), "failed", "no database of that name");
    let password = fs::read_to_string(dir.join("secrets/database-password")).unwrap();
    assert!(!format!("{found:?}").contains(password.trim()));
    fs::remove_file(dir.join("secrets/database-password")).unwrap();
    let output = atoll(&["doctor", "--dir", dir.to_str().unwrap()]);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("database-password"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn served_catalogs_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    pod(
        dir,
        free_port().unwrap(),
        "CATALOGS=own=/catalogs/own,other=/catalogs/other\nCOMPOSE_PROFILES=catalog\n",
    );
    let found = results(dir);
    expect(&found, "catalog:own", "failed", "atoll pod up");
    let catalogs = dir.join("catalogs");
    for (name, text) in [("own", PACKAGE), ("other", "")] {
        fs::create_dir_all(catalogs.join(name)).unwrap();
        fs::write(catalogs.join(name).join("catalog.json"), text).unwrap();
    }
    let list = format!("own={0}/own,other={0}/other", catalogs.display());
    let settings = catalog_server::Settings {
        catalogs: catalog_server::CatalogList::parse(&list).unwrap(),
        listen_address: [127, 0, 0, 1].into(),
        catalog_port: 0,
        ..catalog_server::Settings::default()
    };
    let shutdown = CancellationToken::new();
    let running = catalog_server::start(settings, shutdown.clone())
        .await
        .unwrap();
    set(dir, &format!("PUBLISH_CATALOG={}", running.address()));
    // They load in the background.
    let found = loop {
        let found = results(dir);
        if !found["catalog:own"].to_string().contains("is not loaded") {
            break found;
        }
        expect(&found, "catalog:own", "failed", "atoll pod logs catalog");
    };
    expect(&found, "catalog:own", "passed", "serves 1 package of it");
    let other = &found["catalog:other"];
    assert_ne!(other["status"], "passed", "{other}");
    // As the API server asks it, from within its container.
    let address = running.address();
    let by_name = async || {
        let service = doctor::RemoteService::parse(&format!("grpc://{address}"), "DOCTOR_SERVICES");
        let site = doctor::SiteFacts {
            remote: vec![service.unwrap()],
            ..doctor::SiteFacts::default()
        };
        doctor::run(site).await.checks.remove(0)
    };
    let one = by_name().await;
    assert_eq!(one.id, format!("catalog:{address}"));
    assert_eq!(one.status, doctor::CheckStatus::Passed, "{one:?}");
    shutdown.cancel();
    running.wait().await.unwrap();
    let one = by_name().await;
    assert_eq!(one.status, doctor::CheckStatus::Failed, "{one:?}");
    set(dir, "CATALOGS=/a,/b");
    let output = atoll(&["doctor", "--dir", dir.to_str().unwrap()]);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("reading CATALOGS"), "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_front_door_presents_certificates_of_the_site() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let registry_port = free_port().unwrap();
    pod(dir, registry_port, "");
    let _registry = serve(dir, registry_port).await;
    let port = |name: &str| {
        let setting = setting(dir, name).replace("127.0.0.1:", "");
        setting.parse::<u16>().unwrap()
    };
    let (http, https) = (port("PUBLISH_HTTP"), port("PUBLISH_HTTPS"));
    let secrets = dir.join("secrets/proxy");
    // In a folder of its own, whose changes the proxy would follow.
    let served_list = dir.join("served/crt-list.txt");
    fs::create_dir(dir.join("served")).unwrap();
    for name in ["crt-list.txt", "atoll.internal.pem"] {
        fs::copy(secrets.join(name), dir.join("served").join(name)).unwrap();
    }
    let settings = proxy::Settings {
        listen_address: [127, 0, 0, 1].into(),
        forwards: proxy::Forwards(Vec::new()),
        proxy_status_port: 0,
        files_root: dir.join("downloads"),
        site: proxy::SiteSettings {
            network_domain: "atoll.internal".to_owned(),
            proxy_http_port: http,
            proxy_https_port: https,
            redirect_https_port: https,
            certificate_list: served_list,
            registry_address: proxy::HostPort::parse(&format!("127.0.0.1:{registry_port}"))
                .unwrap(),
            ..proxy::SiteSettings::default()
        },
        ..proxy::Settings::default()
    };
    let shutdown = CancellationToken::new();
    let running = proxy::start(settings, shutdown.clone()).await.unwrap();
    let found = results(dir);
    expect(&found, &format!("port:proxy/{http}"), "passed", "held by");
    expect(&found, &format!("port:proxy/{https}"), "passed", "held by");
    let served = |name: &str| format!("served-certificate:{name}.atoll.internal:{https}");
    for name in ["api", "web", "service", "registry", "mirror"] {
        expect(&found, &served(name), "passed", "more days");
    }
    // A further certificate of the list, which has no file.
    let list = secrets.join("crt-list.txt");
    let text = fs::read_to_string(&list).unwrap();
    fs::write(
        &list,
        format!("# more\n{text}/certs/other.pem [ocsp-update on] other.example\n"),
    )
    .unwrap();
    let found = results(dir);
    let id = "certificate:proxy (other.pem)";
    expect(&found, id, "failed", "remove its line of crt-list.txt");
    expect(&found, "certificate:proxy", "passed", "more days");
    // Renewed, and the front door has the previous one.
    let other = tempfile::tempdir().unwrap();
    pod(other.path(), registry_port, "");
    for name in ["ca.crt", "atoll.internal.pem"] {
        let from = other.path().join("secrets/proxy").join(name);
        fs::copy(from, secrets.join(name)).unwrap();
    }
    let found = results(dir);
    expect(&found, &served("api"), "failed", "atoll certs");
    expect(
        &found,
        &format!("port:proxy/{https}"),
        "failed",
        "held by another program",
    );
    // The key of another certificate.
    let secrets = dir.join("secrets");
    fs::copy(
        other.path().join("secrets/registry.key"),
        secrets.join("registry.key"),
    )
    .unwrap();
    let found = results(dir);
    expect(&found, "certificate:registry", "failed", "does not fit");
    shutdown.cancel();
    running.wait().await.unwrap();
}

#[test]
fn a_try_out_works_and_its_stopped_services_are_found() {
    let place = Place::new();
    let catalog = place.file("catalog");
    fs::create_dir(&catalog).unwrap();
    fs::write(catalog.join("catalog.json"), PACKAGE).unwrap();
    let own = format!("own={}", catalog.display());
    let up = place.up_with(place.command().args(["--catalog", &own]));
    let data = place.data();
    let found = results(&data);
    let failed = found.values().filter(|one| one["status"] == "failed");
    assert_eq!(failed.count(), 0, "{found:?}");
    let state = up.state();
    let database = format!("database:127.0.0.1:{}/installer", state["postgres_port"]);
    expect(&found, &database, "passed", "accepts the login");
    expect(&found, "catalog:own", "passed", "serves 1 package of it");
    let registry = state["registry"].as_str().unwrap();
    let served = format!("served-certificate:{registry}");
    expect(&found, &served, "passed", "more days");
    // Nothing is offered by default, so that nothing is missing.
    assert!(!found.contains_key("release-image") && !found.contains_key("image:INSTALLER_IMAGE"));
    let password = fs::read_to_string(data.join("secrets/database-password")).unwrap();
    assert!(!format!("{found:?}").contains(password.trim()));

    let stop = |name: &str| fs::write(data.join(format!("control/{name}.stop")), "").unwrap();
    for name in ["registry", "catalog-server"] {
        stop(name);
        until("it is stopped", || up.pid(name).is_none());
    }
    let found = results(&data);
    expect(&found, "catalog:own", "failed", "no connection");
    expect(&found, &served, "warning", "registry does not run");
    let login = format!("registry-login:{registry}");
    expect(&found, &login, "failed", "start the registry");
    up.stop();
}

#[test]
fn malformed_settings_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for (line, expected) in [
        ("RELEASE_IMAGES=[{", "RELEASE_IMAGES"),
        ("PUBLISH_API=a:b", "PUBLISH_API"),
        (
            "NETWORK_DOMAIN=lab.example\nPUBLISH_HTTPS=a",
            "PUBLISH_HTTPS",
        ),
        ("DB_HOST=db.example\nDB_PORT=a", "DB_PORT"),
        ("DB_SSLMODE=often", "DB_SSLMODE"),
        ("CATALOGS=/a,/b", "CATALOGS"),
        ("no setting", "expected NAME=value"),
    ] {
        fs::create_dir_all(dir.path().join("secrets")).unwrap();
        fs::write(dir.path().join("secrets/registry-logins.json"), "{}").unwrap();
        fs::write(dir.path().join("secrets/database-password"), "x").unwrap();
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
