//! Tasks of operators: settings, health, read-only mode.

use std::path::Path;
use std::process::{Command, Stdio};

use oci::{Digest, Platform};
use registry::{FileChecks, Headers, HttpAddr, Patterns, PlatformChecks, Prefix};
use reqwest::header::{LINK, LOCATION};
use reqwest::{Method, StatusCode};
use service::settings::Setting as _;
use testkit::ports::free_port;

use crate::server::{PASSWORD, Server, USER, eventually, header, is, manifest, named, refusal};

const INDEX: &str = oci::media_type::OCI_INDEX;

#[tokio::test]
async fn a_read_only_registry_answers_and_changes_nothing() {
    let server = Server::plain().await;
    let body = server.push_image("a", "t", "x").await;
    let digest = Digest::sha256(body.as_bytes());
    let upload = server.upload("a").await;
    let upload = upload.strip_prefix(&server.base).unwrap().to_owned();
    let second = std::time::Duration::from_secs(1);
    let server = server
        .restart_with(|settings| {
            settings.registry_storage_maintenance_readonly_enabled = true;
            settings.registry_storage_maintenance_uploadpurging_age = std::time::Duration::ZERO;
            settings.registry_storage_maintenance_uploadpurging_interval = second;
        })
        .await;
    for (method, path) in [
        (Method::PUT, "/v2/a/manifests/u"),
        (Method::DELETE, "/v2/a/manifests/t"),
        (Method::DELETE, &*format!("/v2/a/blobs/{digest}")),
        (Method::POST, "/v2/a/blobs/uploads/"),
        (Method::PATCH, &*upload),
        (Method::PUT, &*format!("{upload}?digest={digest}")),
        (Method::DELETE, &*upload),
        (Method::POST, "/v2/_atoll/gc"),
    ] {
        let answer = server.request(method.clone(), path).send().await.unwrap();
        assert_eq!(
            refusal(answer).await,
            is(405, "UNSUPPORTED"),
            "{method} {path}"
        );
    }
    let got = server.get("/v2/a/manifests/t").await;
    assert_eq!(got.text().await.unwrap(), body);
    assert_eq!(server.get("/ready").await.status(), StatusCode::OK);
    // Not even uploads that would be purged otherwise.
    assert_eq!(server.get(&upload).await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_file_says_that_the_registry_is_not_ready() {
    let dir = tempfile::tempdir().unwrap();
    let away = dir.path().join("away");
    let text = away.display().to_string();
    let parts = [("0_file", text.as_str()), ("0_interval", "10ms")];
    let server = Server::with(|settings| {
        settings.registry_health_file = FileChecks::parse_parts(&parts.into()).unwrap();
    })
    .await;
    let ready = async || server.get("/ready").await.status();
    eventually(async || ready().await == StatusCode::OK).await;
    std::fs::write(&away, "").unwrap();
    eventually(async || ready().await == StatusCode::SERVICE_UNAVAILABLE).await;
    let debug = server.get("/debug/health").await;
    assert_eq!(debug.status(), StatusCode::SERVICE_UNAVAILABLE);
    let reported: serde_json::Value = debug.json().await.unwrap();
    assert_eq!(reported["file 0"], format!("{text} is there"));
    assert_eq!(server.get("/health").await.status(), StatusCode::OK);
    std::fs::remove_file(&away).unwrap();
    eventually(async || ready().await == StatusCode::OK).await;
    assert_eq!(
        server.get("/debug/health").await.text().await.unwrap(),
        "{}"
    );
}

#[tokio::test]
async fn a_storage_that_fails_again_and_again_is_not_ready() {
    let server = Server::with(|settings| {
        settings.registry_health_storagedriver_interval = std::time::Duration::ZERO;
    })
    .await;
    let ready = async || server.get("/ready").await.status();
    assert_eq!(ready().await, StatusCode::OK);
    // Nothing can be written any more: also root cannot make a file in a file.
    let temporary = server.dir.path().join("data/.atoll/tmp");
    std::fs::remove_dir_all(&temporary).unwrap();
    std::fs::write(&temporary, "").unwrap();
    eventually(async || ready().await == StatusCode::SERVICE_UNAVAILABLE).await;
    std::fs::remove_file(&temporary).unwrap();
    std::fs::create_dir(&temporary).unwrap();
    eventually(async || ready().await == StatusCode::OK).await;
}

#[tokio::test]
async fn answers_have_the_headers_that_are_asked_for() {
    let parts = [
        ("x-content-type-options_0", "nosniff"),
        ("x-two_0", "a"),
        ("x-two_1", "b"),
    ];
    let server = Server::with(|settings| {
        settings.registry_http_headers = Headers::parse_parts(&parts.into()).unwrap();
    })
    .await;
    for path in ["/v2/", "/v2/a/manifests/none"] {
        let answer = server.get(path).await;
        assert_eq!(named(&answer, "x-content-type-options"), "nosniff");
        assert_eq!(answer.headers().get_all("x-two").iter().count(), 2);
    }
}

#[tokio::test]
async fn a_prefix_stands_before_all_paths() {
    let server = Server::with(|settings| {
        settings.registry_http_prefix = Prefix::parse("/my/registry/").unwrap();
    })
    .await;
    assert_eq!(server.get("/v2/").await.status(), StatusCode::NOT_FOUND);
    for path in ["/my/registry/", "/my/registry/v2/", "/ready"] {
        assert_eq!(server.get(path).await.status(), StatusCode::OK, "{path}");
    }
    let start = server.request(Method::POST, "/my/registry/v2/a/blobs/uploads/");
    let location = header(&start.send().await.unwrap(), &LOCATION);
    assert!(
        location.starts_with(&format!("{}/my/registry/v2/a/", server.base)),
        "{location}"
    );
    let digest = Digest::sha256(b"{}");
    let done = server.finish(&location, &digest.to_string(), b"{}").await;
    assert_eq!(done.status(), StatusCode::CREATED);
    let blob = header(&done, &LOCATION);
    assert_eq!(server.get(&blob).await.status(), StatusCode::OK);
    for tag in ["t1", "t2"] {
        let put = server.request(Method::PUT, &format!("/my/registry/v2/a/manifests/{tag}"));
        let put = put.body(manifest(&digest, &[])).send().await.unwrap();
        assert_eq!(put.status(), StatusCode::CREATED);
    }
    let page = server.get("/my/registry/v2/a/tags/list?n=1").await;
    let link = header(&page, &LINK);
    assert!(
        link.starts_with("</my/registry/v2/a/tags/list?last=t1"),
        "{link}"
    );
}

#[tokio::test]
async fn pages_are_as_long_as_they_may_be() {
    let server = Server::with(|settings| {
        settings.registry_catalog_maxentries = 2;
        settings.registry_tags_maxtags = 1;
    })
    .await;
    for (name, tag) in [("a", "t1"), ("a", "t2"), ("b", "t"), ("c", "t")] {
        server.push_image(name, tag, "x").await;
    }
    let count = async |path: &str, list: &str| {
        let body: serde_json::Value = server.get(path).await.json().await.unwrap();
        body[list].as_array().unwrap().len()
    };
    assert_eq!(count("/v2/_catalog", "repositories").await, 2);
    assert_eq!(count("/v2/_catalog?n=3", "repositories").await, 2);
    assert_eq!(count("/v2/a/tags/list?n=2", "tags").await, 1);
    assert_eq!(count("/v2/a/tags/list", "tags").await, 2);
}

#[tokio::test]
async fn manifests_have_to_be_as_the_rules_say() {
    let server = Server::with(|settings| {
        settings.registry_validation_manifests_urls_allow =
            Patterns::parse("^https://good/").unwrap();
        settings.registry_validation_manifests_indexes_platforms = PlatformChecks::List;
        let list = &mut settings.registry_validation_manifests_indexes_platformlist;
        *list = registry::Platforms::parse_parts(
            &[("0_os", "linux"), ("0_architecture", "amd64")].into(),
        )
        .unwrap();
    })
    .await;
    let config = server.push_blob("a", b"{}").await;
    let image = |url: &str| {
        let layer = serde_json::json!({"mediaType": "application/vnd.oci.image.layer.nondistributable.v1.tar", "digest": Digest::sha256(b"away"), "size": 4, "urls": [url]});
        serde_json::json!({"schemaVersion": 2, "mediaType": oci::media_type::OCI_MANIFEST, "layers": [layer], "config": {"mediaType": oci::media_type::OCI_CONFIG, "digest": config, "size": 2}}).to_string()
    };
    let put = async |tag, body| server.put_manifest("a", tag, body).await;
    assert_eq!(
        put("good", image("https://good/x")).await.status(),
        StatusCode::CREATED
    );
    assert_eq!(
        refusal(put("bad", image("https://bad/x")).await).await,
        is(400, "MANIFEST_INVALID")
    );

    let there = Digest::sha256(image("https://good/x").as_bytes());
    let index = |amd64: &Digest, arm64: &Digest| {
        let entry = |digest, name| serde_json::json!({"mediaType": oci::media_type::OCI_MANIFEST, "digest": digest, "size": 1, "platform": Platform::linux(name)});
        serde_json::json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry(amd64, "amd64"), entry(arm64, "arm64")]}).to_string()
    };
    let absent = Digest::sha256(b"absent");
    let put = async |body| server.put_typed("a", "index", INDEX, body).await;
    assert_eq!(
        put(index(&there, &absent)).await.status(),
        StatusCode::CREATED
    );
    let refused = put(index(&absent, &there)).await;
    assert_eq!(refusal(refused).await, is(400, "MANIFEST_BLOB_UNKNOWN"));
}

fn program(arguments: &[&str], file: &Path) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_registry"))
        .args(arguments)
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[tokio::test]
async fn health_and_metrics_have_a_port_of_their_own() {
    let port = free_port().unwrap();
    let server = Server::with(|settings| {
        settings.registry_http_debug_addr = Some(HttpAddr(([127, 0, 0, 1], port).into()));
        settings.registry_http_debug_prometheus_enabled = true;
        settings.registry_http_debug_prometheus_path = "/numbers".to_owned();
    })
    .await;
    let get = async |path: &str| server.get(&format!("http://127.0.0.1:{port}{path}")).await;
    assert_eq!(get("/debug/health").await.status(), StatusCode::OK);
    assert_eq!(get("/numbers").await.status(), StatusCode::OK);
    assert_eq!(get("/v2/").await.status(), StatusCode::NOT_FOUND);
}

#[test]
fn distributions_file_is_checked_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yml");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write(
        "version: 0.1\nstorage:\n  filesystem: {rootdirectory: /srv}\nredis: {addr: x}\nhttp:\n  adr: :1\n",
    );
    let checked = program(&["--check-config", "serve"], &file);
    let reported = String::from_utf8(checked.stdout).unwrap();
    assert!(checked.status.success(), "{reported}");
    for part in [
        "REGISTRY_REDIS: ",
        "line 4",
        "REGISTRY_HTTP_ADDR may be meant",
        "can be used",
    ] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    write("version: 0.1\nstorage: {gcs: {bucket: x}}\nhttp:\n  net: unix\n");
    let checked = program(&["--check-config", "--config"], &file);
    let reported = String::from_utf8(checked.stderr).unwrap();
    assert_eq!(checked.status.code(), Some(2), "{reported}");
    for part in [
        "REGISTRY_STORAGE_GCS_BUCKET",
        "line 2",
        "REGISTRY_HTTP_NET",
        "line 4",
    ] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
}

/// The configuration of Debian's package names a folder where distribution expects a password file.
#[tokio::test]
async fn nobody_comes_in_before_there_are_passwords() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::with(|settings| {
        settings.registry_auth_htpasswd_path = Some(folder.path().to_owned());
    })
    .await;
    let status = async || {
        let request = server.request(Method::GET, "/v2/");
        let request = request.basic_auth(USER, Some(PASSWORD));
        request.send().await.unwrap().status()
    };
    assert_eq!(server.get("/v2/").await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(status().await, StatusCode::UNAUTHORIZED);
    let line = registry::htpasswd::line(USER, PASSWORD).unwrap();
    std::fs::write(folder.path().join("htpasswd"), line).unwrap();
    assert_eq!(status().await, StatusCode::OK);
}
