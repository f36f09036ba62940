//! A registry to test, and requests to it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use oci::Digest;
use oci_client::{Client, ClientOptions, Credentials, Login};
use registry::{HttpAddr, Settings};
use reqwest::header::{CONTENT_TYPE, HeaderName, LOCATION};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use service::CancellationToken;
use service::server::HttpSettings;
use service::server::Running;
use tempfile::TempDir;

pub(crate) const OCI_MANIFEST: &str = oci::media_type::OCI_MANIFEST;
pub(crate) const USER: &str = "admin";
pub(crate) const PASSWORD: &str = "right";

pub(crate) struct Server {
    pub(crate) dir: TempDir,
    settings: Settings,
    running: Running,
    shutdown: CancellationToken,
    pub(crate) base: String,
    pub(crate) http: reqwest::Client,
    pub(crate) ca: Option<String>,
}

impl Server {
    /// Plain HTTP without authentication.
    pub(crate) async fn plain() -> Self {
        Self::with(|_| {}).await
    }

    /// TLS, and one user.
    pub(crate) async fn closed() -> Self {
        let dir = TempDir::new().unwrap();
        let pem = testkit::certificates::self_signed("127.0.0.1").unwrap();
        let (cert, key, users) = (
            dir.path().join("cert"),
            dir.path().join("key"),
            dir.path().join("users"),
        );
        std::fs::write(&cert, &pem.cert).unwrap();
        std::fs::write(&key, &pem.key).unwrap();
        std::fs::write(&users, registry::htpasswd::line(USER, PASSWORD).unwrap()).unwrap();
        let settings = Settings {
            registry_http_tls_certificate: Some(cert),
            registry_http_tls_key: Some(key),
            registry_auth_htpasswd_path: Some(users),
            ..settings(&dir)
        };
        Self::start(dir, settings, Some(pem.cert)).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let dir = TempDir::new().unwrap();
        let mut settings = settings(&dir);
        change(&mut settings);
        Self::start(dir, settings, None).await
    }

    async fn start(dir: TempDir, settings: Settings, ca: Option<String>) -> Self {
        let shutdown = CancellationToken::new();
        let starting = registry::start(settings.clone(), shutdown.clone());
        let running = Box::pin(starting).await.unwrap();
        let scheme = if ca.is_some() { "https" } else { "http" };
        let base = format!("{scheme}://{}", running.address());
        let http = service::http_client(ca.as_ref().map(String::as_bytes), false).unwrap();
        Self {
            dir,
            settings,
            running,
            shutdown,
            base,
            http,
            ca,
        }
    }

    /// Ends as on SIGTERM and starts on the same folder.
    pub(crate) async fn restart(self) -> Self {
        self.restart_with(|_| {}).await
    }

    /// [`Self::restart`], with other settings.
    pub(crate) async fn restart_with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        self.shutdown.cancel();
        drop(self.http);
        self.running.wait().await.unwrap();
        // A disk check whose caller has gone may still be running.
        if let Ok(lock) = std::fs::File::open(self.dir.path().join("data/.atoll/lock")) {
            eventually(async || lock.try_lock().is_ok()).await;
        }
        change(&mut self.settings);
        Self::start(self.dir, self.settings, self.ca).await
    }

    /// Ends as on SIGTERM.
    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        drop(self.http);
        self.running.wait().await.unwrap();
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.running.address()
    }

    /// Below the folder that holds blobs and repositories.
    pub(crate) fn content(&self, below: &str) -> PathBuf {
        self.dir.path().join("data/docker/registry/v2").join(below)
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("{}{path}", self.base)
        };
        self.http.request(method, url)
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub(crate) async fn head(&self, path: &str) -> Response {
        self.request(Method::HEAD, path).send().await.unwrap()
    }

    pub(crate) async fn delete(&self, path: &str) -> Response {
        self.request(Method::DELETE, path).send().await.unwrap()
    }

    /// Opens an upload; its address.
    pub(crate) async fn upload(&self, name: &str) -> String {
        let response = self
            .request(Method::POST, &format!("/v2/{name}/blobs/uploads/"))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        header(&response, &LOCATION)
    }

    pub(crate) async fn patch(&self, location: &str, range: Option<&str>, body: &[u8]) -> Response {
        let request = self.request(Method::PATCH, location).body(body.to_vec());
        let request = range.into_iter().fold(request, |request, range| {
            request.header("content-range", range)
        });
        request.send().await.unwrap()
    }

    pub(crate) async fn finish(&self, location: &str, digest: &str, body: &[u8]) -> Response {
        let request = self
            .request(Method::PUT, location)
            .query(&[("digest", digest)]);
        request.body(body.to_vec()).send().await.unwrap()
    }

    pub(crate) async fn push_blob(&self, name: &str, content: &[u8]) -> Digest {
        let digest = Digest::sha256(content);
        let location = self.upload(name).await;
        let response = self.finish(&location, &digest.to_string(), content).await;
        assert_eq!(response.status(), StatusCode::CREATED);
        digest
    }

    pub(crate) async fn put_manifest(
        &self,
        name: &str,
        target: &str,
        body: impl Into<String>,
    ) -> Response {
        self.put_typed(name, target, OCI_MANIFEST, body).await
    }

    pub(crate) async fn put_typed(
        &self,
        name: &str,
        target: &str,
        media_type: &str,
        body: impl Into<String>,
    ) -> Response {
        let request = self.request(Method::PUT, &format!("/v2/{name}/manifests/{target}"));
        request
            .header(CONTENT_TYPE, media_type)
            .body(body.into())
            .send()
            .await
            .unwrap()
    }

    /// Pushes a small image; its manifest.
    pub(crate) async fn push_image(&self, name: &str, tag: &str, note: &str) -> String {
        let config = self.push_blob(name, b"{}").await;
        let layer = self.push_blob(name, note.as_bytes()).await;
        let body = manifest(&config, &[(&layer, note.len())]);
        let response = self.put_manifest(name, tag, &*body).await;
        assert_eq!(response.status(), StatusCode::CREATED);
        body
    }

    /// Our own client, as the registry's user.
    pub(crate) fn client(&self) -> Client {
        let login = Login {
            user: USER.to_owned(),
            password: PASSWORD.into(),
        };
        Client::new(ClientOptions {
            credentials: Credentials::anonymous().with(self.address().to_string(), login),
            ca_pem: self.ca.clone().map(String::into_bytes),
            insecure: self.ca.is_none(),
            ..ClientOptions::default()
        })
        .unwrap()
    }
}

fn settings(dir: &TempDir) -> Settings {
    let http = HttpSettings {
        metrics_on_public_port: true,
        ..HttpSettings::default()
    };
    Settings {
        http,
        registry_http_addr: HttpAddr("127.0.0.1:0".parse().unwrap()),
        registry_storage_filesystem_rootdirectory: dir.path().join("data"),
        // Else between the lines about the tests.
        registry_log_accesslog_disabled: true,
        ..Settings::default()
    }
}

pub(crate) fn manifest(config: &Digest, layers: &[(&Digest, usize)]) -> String {
    let layers: Vec<_> = layers
        .iter()
        .map(|(digest, size)| serde_json::json!({"mediaType": oci::media_type::OCI_LAYER, "digest": digest, "size": size}))
        .collect();
    // Not in the order in which serde would print it: the bytes have to come back as they were.
    format!(
        "{{ \"mediaType\":\"{OCI_MANIFEST}\",\n \"schemaVersion\":2, \"layers\":{}, \"config\":{{\"mediaType\":\"{}\",\"digest\":\"{config}\",\"size\":2}} }}",
        serde_json::json!(layers),
        oci::media_type::OCI_CONFIG
    )
}

pub(crate) fn header(response: &Response, name: &HeaderName) -> String {
    response
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap().to_owned())
        .unwrap_or_default()
}

pub(crate) fn named(response: &Response, name: &'static str) -> String {
    header(response, &HeaderName::from_static(name))
}

/// Status and first error code.
pub(crate) async fn refusal(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: serde_json::Value = response.json().await.unwrap();
    (
        status,
        body["errors"][0]["code"].as_str().unwrap().to_owned(),
    )
}

pub(crate) fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// Until `condition` holds. Only a hang ends it, also on a machine that is busy with other tests.
pub(crate) async fn eventually<F: Future<Output = bool>>(mut condition: impl FnMut() -> F) {
    let deadline = Instant::now() + Duration::from_mins(5);
    while !condition().await {
        assert!(Instant::now() < deadline, "it did not come true");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
