//! Readings of a fake registry, which counts requests.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod large;
mod live_images;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use oci::{Digest, Reference};
use oci_client::{Client, ClientOptions};
use registry_content::ContentReader;
use serde_json::json;

/// Manifests by their tags; none for one that has vanished.
type Tags = BTreeMap<String, Option<String>>;

/// A registry whose content can change.
#[derive(Clone, Default)]
struct FakeRegistry {
    repositories: Arc<Mutex<BTreeMap<String, Tags>>>,
    /// Paths of requests since they were last taken.
    requests: Arc<Mutex<Vec<String>>>,
}

impl FakeRegistry {
    fn put(&self, repository: &str, tag: &str, manifest: Option<String>) {
        let mut repositories = self.repositories.lock().unwrap();
        let tags = repositories.entry(repository.to_owned()).or_default();
        tags.insert(tag.to_owned(), manifest);
    }

    fn remove(&self, repository: &str, tag: &str) {
        let mut repositories = self.repositories.lock().unwrap();
        repositories.get_mut(repository).unwrap().remove(tag);
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    fn answer(&self, path: &str) -> Response {
        self.requests.lock().unwrap().push(path.to_owned());
        let repositories = self.repositories.lock().unwrap();
        if path == "/v2/_catalog" {
            let names: Vec<_> = repositories.keys().collect();
            return Json(json!({ "repositories": names })).into_response();
        }
        let path = path.strip_prefix("/v2/").unwrap_or_default();
        if let Some(name) = path.strip_suffix("/tags/list") {
            let tags: Vec<_> = repositories[name].keys().collect();
            return Json(json!({ "tags": tags })).into_response();
        }
        let (name, version) = path.split_once("/manifests/").unwrap_or_default();
        let Some(tags) = repositories.get(name) else {
            return StatusCode::OK.into_response();
        };
        let mut all = tags.values().flatten();
        let found = match tags.get(version) {
            Some(manifest) => manifest.as_ref(),
            None => all.find(|it| Digest::sha256(it.as_bytes()).to_string() == version),
        };
        let Some(manifest) = found else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let digest = Digest::sha256(manifest.as_bytes()).to_string();
        let kind = oci::media_type::OCI_MANIFEST.to_owned();
        let digest = ("docker-content-digest".parse().unwrap(), digest);
        ([(CONTENT_TYPE, kind), digest], manifest.clone()).into_response()
    }

    /// A reader of this registry, and its host and port.
    async fn serve(&self) -> (ContentReader, String) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer = async |State(registry): State<Self>, request: Request| {
            registry.answer(request.uri().path())
        };
        let router = axum::Router::new()
            .fallback(any(answer))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let place: Reference = format!("{address}/a").parse().unwrap();
        let client = Client::new(ClientOptions {
            insecure: true,
            ..ClientOptions::default()
        });
        let reader = ContentReader {
            client: client.unwrap(),
            registry: place.registry,
            namespace: String::new(),
            scratch: "/nonexistent".into(),
        };
        (reader, address)
    }
}
