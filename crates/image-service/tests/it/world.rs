//! A running image service, its API and its base image.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use image_service::{OsImage, Settings};
use service::CancellationToken;
use service::settings::JsonVar;
use testkit::iso::{LiveImageOptions, Written};

pub(crate) const ID: &str = "0d7c0a52-9b9d-4f7c-9d0a-0d9b6f7f0a01";
pub(crate) const CHANGED: &str = "Wed, 19 Nov 2025 15:18:00 GMT";
pub(crate) const OS_VERSION: &str = "418.94.202511191518-0";

/// Responses of the fake API, and the requests that it got.
#[derive(Debug, Clone, Default)]
pub(crate) struct Api(Arc<Mutex<Answers>>);

#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// [`ID`] in it becomes the id of each infra-env.
    pub(crate) ignition: Vec<u8>,
    pub(crate) kernel_arguments: Option<String>,
    pub(crate) ramdisk: Option<Vec<u8>>,
    pub(crate) embedded_agent: bool,
    /// Requests get no response.
    pub(crate) hangs: bool,
    /// Number of changes: the version of the infra-env.
    version: u64,
    /// Answered instead of anything else: status and body.
    pub(crate) refusal: Option<(u16, String)>,
    /// Of `/os-images`; none: the API has no such path.
    pub(crate) os_images: Option<serde_json::Value>,
    /// Requests for them.
    pub(crate) os_image_reads: usize,
    /// Path and query of each request, with the credentials in headers behind it.
    pub(crate) asked: Vec<String>,
}

impl Api {
    pub(crate) fn set(&self, change: impl FnOnce(&mut Answers)) {
        let mut answers = self.0.lock().unwrap();
        change(&mut answers);
        answers.version += 1;
    }

    pub(crate) fn os_image_reads(&self) -> usize {
        self.0.lock().unwrap().os_image_reads
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }

    pub(crate) async fn start(&self) -> SocketAddr {
        let base = "/api/assisted-install/v2/infra-envs/{id}";
        let router = Router::new()
            .route("/os-images", get(os_images))
            .route(base, get(infra_env))
            .route(&format!("{base}/downloads/files"), get(files))
            .route(
                &format!("{base}/downloads/minimal-initrd"),
                get(minimal_initrd),
            )
            .layer(axum::middleware::from_fn_with_state(self.clone(), hang))
            .with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        address
    }

    fn note(&self, uri: &axum::http::Uri, headers: &HeaderMap) -> Option<Response> {
        let mut answers = self.0.lock().unwrap();
        let mut line = uri.to_string();
        for name in ["image-token", "authorization"] {
            if let Some(value) = headers.get(name) {
                line = format!("{line} {name}={}", value.to_str().unwrap());
            }
        }
        answers.asked.push(line);
        let (status, body) = answers.refusal.clone()?;
        Some((StatusCode::from_u16(status).unwrap(), body).into_response())
    }
}

async fn hang(
    State(api): State<Api>,
    request: axum::extract::Request,
    next: axum::middleware::Next,
) -> Response {
    if api.0.lock().unwrap().hangs {
        std::future::pending::<()>().await;
    }
    next.run(request).await
}

async fn infra_env(
    State(api): State<Api>,
    UrlPath(id): UrlPath<String>,
    uri: axum::http::Uri,
    headers: HeaderMap,
) -> Response {
    api.note(&uri, &headers).unwrap_or_else(|| {
        let answers = api.0.lock().unwrap();
        axum::Json(serde_json::json!({
            "id": id, "kernel_arguments": answers.kernel_arguments, "updated_at": answers.version.to_string(),
            "embedded_agent": answers.embedded_agent,
        }))
        .into_response()
    })
}

async fn os_images(State(api): State<Api>) -> Response {
    let images = {
        let mut answers = api.0.lock().unwrap();
        answers.os_image_reads += 1;
        answers.os_images.clone()
    };
    images.map_or_else(
        || StatusCode::NOT_FOUND.into_response(),
        |images| axum::Json(images).into_response(),
    )
}

async fn files(
    State(api): State<Api>,
    UrlPath(id): UrlPath<String>,
    Query(query): Query<HashMap<String, String>>,
    uri: axum::http::Uri,
    headers: HeaderMap,
) -> Response {
    assert_eq!(query["file_name"], "discovery.ign");
    api.note(&uri, &headers).unwrap_or_else(|| {
        let mut ignition = api.0.lock().unwrap().ignition.clone();
        if let Some(at) = ignition
            .windows(ID.len())
            .position(|part| part == ID.as_bytes())
        {
            ignition[at..at + ID.len()].copy_from_slice(id.as_bytes());
        }
        ([(header::LAST_MODIFIED, CHANGED)], ignition).into_response()
    })
}

async fn minimal_initrd(
    State(api): State<Api>,
    uri: axum::http::Uri,
    headers: HeaderMap,
) -> Response {
    api.note(&uri, &headers)
        .unwrap_or_else(|| match api.0.lock().unwrap().ramdisk.clone() {
            Some(bytes) => bytes.into_response(),
            None => StatusCode::NO_CONTENT.into_response(),
        })
}

/// Everything together; ends when dropped.
pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) data: Arc<tempfile::TempDir>,
    pub(crate) base: Vec<u8>,
    pub(crate) written: Written,
    pub(crate) client: reqwest::Client,
    pub(crate) url: String,
    shutdown: CancellationToken,
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) fn os_image(url: &str) -> OsImage {
    OsImage {
        openshift_version: "4.18".to_owned(),
        cpu_architecture: "x86_64".to_owned(),
        url: url.to_owned(),
        version: OS_VERSION.to_owned(),
        sha256: String::new(),
        kind: "full-iso".to_owned(),
        os_stream: String::new(),
    }
}

pub(crate) fn own_file(data: &Path) -> PathBuf {
    data.join(format!("rhcos-full-iso-{OS_VERSION}-x86_64.iso"))
}

impl World {
    /// With a small image in the data folder.
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::of_image(&LiveImageOptions::small(), change).await
    }

    pub(crate) async fn of_image(
        options: &LiveImageOptions,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let data = tempfile::tempdir().unwrap();
        let written = testkit::iso::write(&own_file(data.path()), options).unwrap();
        let base = std::fs::read(own_file(data.path())).unwrap();
        let mut world = Self::without_image(data, change).await;
        world.base = base;
        world.written = written;
        world.ready().await;
        world
    }

    /// With the images in `data`; ready or not.
    pub(crate) async fn without_image(
        data: tempfile::TempDir,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        Self::replica(Arc::new(data), change).await
    }

    /// With the images in `data`, which replicas may share.
    pub(crate) async fn replica(
        data: Arc<tempfile::TempDir>,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let api = Api::default();
        api.set(|answers| answers.ignition = br#"{"ignition":{"version":"3.1.0"}}"#.to_vec());
        let mut settings = Settings {
            listen_address: [127, 0, 0, 1].into(),
            listen_port: 0,
            data_dir: data.path().to_owned(),
            live_iso: data.path().join("livecd.iso"),
            os_images: JsonVar(vec![os_image("")]),
            assisted_service_host: api.start().await.to_string(),
            ..Settings::default()
        };
        settings.http.metrics_on_public_port = true;
        change(&mut settings);
        let shutdown = CancellationToken::new();
        let running = image_service::start(settings, shutdown.clone())
            .await
            .unwrap();
        let url = format!("http://{}", running.address());
        tokio::spawn(running.wait());
        let client = service::http_client(None, false).unwrap();
        let written = Written {
            length: 0,
            files: std::collections::BTreeMap::new(),
        };
        Self {
            api,
            data,
            base: Vec::new(),
            written,
            client,
            url,
            shutdown,
        }
    }

    pub(crate) fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.get(format!("{}{path}", self.url))
    }

    pub(crate) async fn bytes(&self, path: &str) -> Vec<u8> {
        let response = self.get(path).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.bytes().await.unwrap().to_vec()
    }

    /// Waits until the images are populated.
    pub(crate) async fn ready(&self) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while self.get("/health").send().await.unwrap().status() != 200 {
            assert!(Instant::now() < deadline, "the images did not come");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) fn full_iso() -> String {
        format!("/byid/{ID}/4.18/x86_64/full.iso")
    }

    /// The base image with the configuration and the kernel arguments put in by plain copying.
    pub(crate) fn expected_iso(&self, kargs: &str) -> Vec<u8> {
        let mut iso = self.base.clone();
        let ignition = self.api.0.lock().unwrap().ignition.clone();
        let packed = ignition::archive::write(&ignition).unwrap();
        let start = self.start_of("images/ignition.img");
        iso[start..start + packed.len()].copy_from_slice(&packed);
        for path in ["EFI/redhat/grub.cfg", "isolinux/isolinux.cfg"] {
            let (start, length) = (self.start_of(path), self.length_of(path));
            let text = std::str::from_utf8(&self.base[start..start + length]).unwrap();
            let end = start + text.find("\n####").unwrap();
            iso[end..end + kargs.len()].copy_from_slice(kargs.as_bytes());
            if !kargs.is_empty() {
                iso[end + kargs.len()] = b'\n';
            }
        }
        iso
    }

    pub(crate) fn start_of(&self, path: &str) -> usize {
        usize::try_from(self.written.files[path].0).unwrap()
    }

    pub(crate) fn length_of(&self, path: &str) -> usize {
        usize::try_from(self.written.files[path].1).unwrap()
    }
}
