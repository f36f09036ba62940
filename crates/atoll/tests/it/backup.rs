//! `atoll backup` of a running installation, and `atoll restore` somewhere else.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use base64::Engine as _;
use reqwest::{Certificate, Client, Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::installation::{Place, Up};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const PULL_SECRET: &str = r#"{"auths":{"quay.io":{"auth":"dXNlcjpwYXNzd29yZA=="},"r.example":{"auth":"dXNlcjpwYXNzd29yZA=="}}}"#;

/// A client of one installation.
pub(crate) struct Site {
    client: Client,
    api: String,
    registry: String,
    login: String,
}

impl Site {
    pub(crate) fn of(up: &Up) -> Self {
        let state = up.state();
        let text = |name: &str| state[name].as_str().unwrap().to_owned();
        let password = fs::read_to_string(text("registry_password_file")).unwrap();
        let ca = Certificate::from_pem(&fs::read(text("registry_ca")).unwrap()).unwrap();
        let login = format!("{}:{password}", text("registry_user"));
        service::tls::install_provider();
        Self {
            client: Client::builder().tls_certs_only([ca]).build().unwrap(),
            api: format!("{}/api/assisted-install/v2", text("api_url")),
            registry: format!("https://{}/v2", text("registry")),
            login: base64::engine::general_purpose::STANDARD.encode(login),
        }
    }

    async fn registry(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> (StatusCode, String, Vec<u8>) {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("{}/{path}", self.registry)
        };
        let request = self
            .client
            .request(method, url)
            .header("authorization", format!("Basic {}", self.login))
            .header("accept", MANIFEST)
            .header("content-type", MANIFEST)
            .body(body);
        let answer = request.send().await.unwrap();
        let location = answer.headers().get("location");
        let location = location.map(|value| value.to_str().unwrap().to_owned());
        let status = answer.status();
        let body = answer.bytes().await.unwrap().to_vec();
        (status, location.unwrap_or_default(), body)
    }

    async fn blob(&self, repository: &str, content: &[u8]) -> Value {
        let digest = digest(content);
        let path = format!("{repository}/blobs/uploads/");
        let (_, location, _) = self.registry(Method::POST, &path, Vec::new()).await;
        let base = self.registry.trim_end_matches("/v2");
        let mut url = reqwest::Url::parse(base).unwrap().join(&location).unwrap();
        url.query_pairs_mut().append_pair("digest", &digest);
        let put = self.registry(Method::PUT, url.as_str(), content.to_vec());
        assert_eq!(put.await.0, StatusCode::CREATED);
        json!({ "mediaType": "application/octet-stream", "digest": digest, "size": content.len() })
    }

    /// Pushes an image whose content depends on `number`.
    pub(crate) async fn push(&self, repository: &str, number: u32) {
        let config = self
            .blob(repository, format!("{{\"n\":{number}}}").as_bytes())
            .await;
        let layer = self
            .blob(repository, format!("layer {number}").as_bytes())
            .await;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer],
        });
        let path = format!("{repository}/manifests/v{number}");
        let put = self.registry(Method::PUT, &path, manifest.to_string().into_bytes());
        assert_eq!(put.await.0, StatusCode::CREATED);
    }

    /// Pulls every tag of a repository with its manifest and blobs; the number of tags.
    pub(crate) async fn pull_all(&self, repository: &str) -> usize {
        let list = format!("{repository}/tags/list?n=1000");
        let (status, _, body) = self.registry(Method::GET, &list, Vec::new()).await;
        assert_eq!(status, StatusCode::OK);
        let tags: Value = serde_json::from_slice(&body).unwrap();
        let tags = tags["tags"].as_array().unwrap();
        for tag in tags {
            let path = format!("{repository}/manifests/{}", tag.as_str().unwrap());
            let (status, _, body) = self.registry(Method::GET, &path, Vec::new()).await;
            assert_eq!(status, StatusCode::OK, "{path}");
            let manifest: Value = serde_json::from_slice(&body).unwrap();
            for blob in [&manifest["config"], &manifest["layers"][0]] {
                let wanted = blob["digest"].as_str().unwrap();
                let path = format!("{repository}/blobs/{wanted}");
                let (status, _, body) = self.registry(Method::GET, &path, Vec::new()).await;
                assert_eq!(
                    (status, digest(&body).as_str()),
                    (StatusCode::OK, wanted),
                    "{path}"
                );
            }
        }
        tags.len()
    }

    pub(crate) async fn register(&self, name: &str) {
        let body = json!({
            "name": name, "openshift_version": "4.18", "pull_secret": PULL_SECRET, "base_dns_domain": "example.org",
        });
        let answer = self
            .client
            .post(format!("{}/clusters", self.api))
            .json(&body);
        let answer = answer.send().await.unwrap();
        let status = answer.status();
        assert_eq!(
            status,
            StatusCode::CREATED,
            "{}",
            answer.text().await.unwrap()
        );
    }

    pub(crate) async fn clusters(&self) -> Vec<String> {
        let answer = self
            .client
            .get(format!("{}/clusters", self.api))
            .send()
            .await;
        let clusters: Vec<Value> = answer.unwrap().json().await.unwrap();
        let names = clusters
            .iter()
            .map(|cluster| cluster["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    }
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(content)))
}

pub(crate) fn atoll(verb: &str, file: &Path, data: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_atoll"))
        .arg(verb)
        .arg(file)
        .arg("--data")
        .arg(data)
        .args(more)
        .output()
        .unwrap()
}

pub(crate) fn done(output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One release, so that clusters can be registered.
pub(crate) const VARIABLES: &str = r#"NTP_DEFAULT_SERVER=ntp.example
OS_IMAGES=[{"openshift_version":"4.18","cpu_architecture":"x86_64","url":"http://127.0.0.1:9/a.iso","version":"418"}]
RELEASE_IMAGES=[{"openshift_version":"4.18","version":"4.18.7","cpu_architecture":"x86_64","url":"r.example/a:4.18.7"}]
AGENT_DOCKER_IMAGE=r.example/agent:1
INSTALLER_IMAGE=r.example/installer:1
CONTROLLER_IMAGE=r.example/controller:1
"#;

/// Starts without the image service, which would wait for a missing boot image.
pub(crate) fn start(place: &Place, variables: &Path) -> Up {
    let control = place.data().join("control");
    fs::create_dir_all(&control).unwrap();
    fs::write(control.join("image-service.stop"), "").unwrap();
    place.up_with(place.command().arg("--env-file").arg(variables))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_installation_is_restored_elsewhere() {
    let (here, there) = (Place::new(), Place::new());
    let settings = here.file("my.env");
    fs::write(&settings, VARIABLES).unwrap();
    let up = start(&here, &settings);
    let site = Site::of(&up);
    let file = here.file("atoll.backup");

    // Acknowledged before the backup begins.
    site.register("before").await;
    site.push("acme/before", 0).await;
    // The backup may read the registry before the first push beside it.
    site.push("acme/during", 0).await;
    let is_over = AtomicBool::new(false);
    let pushed = AtomicU32::new(1);
    let pushing = async {
        while !is_over.load(Ordering::Relaxed) {
            let number = pushed.fetch_add(1, Ordering::Relaxed);
            site.push("acme/during", number).await;
            site.register(&format!("during-{number}")).await;
        }
    };
    let saving = async {
        let (file, data) = (file.clone(), here.data());
        let saved =
            tokio::task::spawn_blocking(move || atoll("backup", &file, &data, &["--verify"]));
        let saved = saved.await.unwrap();
        is_over.store(true, Ordering::Relaxed);
        saved
    };
    let (saved, ()) = tokio::join!(saving, pushing);
    let printed = done(&saved);
    assert!(printed.contains("verified"), "{printed}");
    assert!(pushed.load(Ordering::Relaxed) > 1);
    refuses_damaged_files_and_existing_targets(&file, &here, &there);
    up.stop();

    done(&atoll("restore", &file, &there.data(), &[]));
    let read = |place: &Place, name: &str| fs::read_to_string(place.data().join(name)).unwrap();
    assert_eq!(read(&there, "env/user.env"), VARIABLES);
    for name in ["secrets/database-password", "registry-ca.pem"] {
        assert_eq!(read(&there, name), read(&here, name));
    }
    let restored = there.data().join("env/user.env");
    let again = start(&there, &restored);
    let site = Site::of(&again);
    assert!(site.clusters().await.contains(&"before".to_owned()));
    assert_eq!(site.pull_all("acme/before").await, 1);
    site.pull_all("acme/during").await;
    // The restored installation is writable.
    site.push("acme/before", 1).await;
    site.register("after").await;
    let printed = refused(&atoll("restore", &file, &there.data(), &["--replace"]));
    assert!(printed.contains("stop it"), "{printed}");
    again.stop();

    // Saved while stopped, and restored over an existing installation.
    let second = here.file("second.backup");
    done(&atoll("backup", &second, &there.data(), &[]));
    done(&atoll("restore", &second, &here.data(), &["--replace"]));
    assert!(here.file("data.old").exists());
    let last = start(&here, &settings);
    let site = Site::of(&last);
    assert!(site.clusters().await.contains(&"after".to_owned()));
    assert_eq!(site.pull_all("acme/before").await, 2);
    last.stop();
}

/// Errors are found before any change.
fn refuses_damaged_files_and_existing_targets(file: &Path, here: &Place, there: &Place) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let printed = refused(&atoll("backup", file, &here.data(), &[]));
    assert!(printed.contains("exists already"), "{printed}");
    let printed = refused(&atoll("restore", file, &here.data(), &[]));
    assert!(printed.contains("--replace"), "{printed}");

    let whole = fs::read(file).unwrap();
    let damaged = here.file("damaged.backup");
    let headings = 4096;
    for (name, bytes) in [
        ("flipped", {
            let mut bytes = whole.clone();
            bytes[headings] ^= 1;
            bytes
        }),
        ("cut off", whole[..whole.len() / 2].to_vec()),
        ("empty", Vec::new()),
    ] {
        fs::write(&damaged, bytes).unwrap();
        let printed = refused(&atoll("restore", &damaged, &there.data(), &[]));
        assert!(printed.contains("verifying"), "{name}: {printed}");
        assert!(!there.data().exists(), "{name}");
    }
}
