//! The least that a registry has to do, in memory, with one user; and a switch that takes it away.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oci::Digest;

pub(crate) const USER: &str = "installer";
pub(crate) const PASSWORD: &str = "not-to-be-seen";

#[derive(Default)]
struct Content {
    /// Manifests by `repository/manifests/target`, blobs by digest.
    objects: BTreeMap<String, (Bytes, String)>,
    requests: usize,
    is_away: bool,
}

#[derive(Clone, Default)]
pub(crate) struct Registry {
    content: Arc<Mutex<Content>>,
    pub(crate) address: String,
}

impl Registry {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let registry = Self {
            address: listener.local_addr().unwrap().to_string(),
            ..Self::default()
        };
        let router = Router::new()
            .route("/v2/{*rest}", any(serve))
            .layer(DefaultBodyLimit::disable())
            .layer(from_fn_with_state(registry.clone(), guard))
            .with_state(registry.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        registry
    }

    pub(crate) fn set_away(&self, is_away: bool) {
        self.content.lock().unwrap().is_away = is_away;
    }

    pub(crate) fn requests(&self) -> usize {
        self.content.lock().unwrap().requests
    }

    pub(crate) fn pull_secret(&self) -> String {
        let auth = STANDARD.encode(format!("{USER}:{PASSWORD}"));
        serde_json::json!({ "auths": { &self.address: { "auth": auth } } }).to_string()
    }
}

async fn guard(State(registry): State<Registry>, request: Request, next: Next) -> Response {
    let is_away = {
        let mut content = registry.content.lock().unwrap();
        content.requests += 1;
        content.is_away
    };
    if is_away {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let expected = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    let given = request.headers().get(header::AUTHORIZATION);
    if given.is_some_and(|value| value == expected.as_str()) {
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"Registry\"")];
    (StatusCode::UNAUTHORIZED, challenge).into_response()
}

async fn serve(
    State(registry): State<Registry>,
    method: Method,
    Path(rest): Path<String>,
    Query(query): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let objects = &mut registry.content.lock().unwrap().objects;
    if method == Method::POST {
        let location = [(header::LOCATION, format!("/v2/{rest}upload"))];
        return (StatusCode::ACCEPTED, location).into_response();
    }
    if method == Method::PUT {
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind.map_or("", |kind| kind.to_str().unwrap()).to_owned();
        if let Some(digest) = query.get("digest") {
            objects.insert(digest.clone(), (body, kind));
        } else {
            let (repository, _) = rest.split_once("/manifests/").unwrap();
            let pinned = format!("{repository}/manifests/{}", Digest::sha256(&body));
            objects.insert(pinned, (body.clone(), kind.clone()));
            objects.insert(rest, (body, kind));
        }
        return StatusCode::CREATED.into_response();
    }
    let key = match rest.split_once("/blobs/") {
        Some((_, digest)) => digest,
        None => &rest,
    };
    match objects.get(key) {
        Some((bytes, kind)) => {
            let headers = [
                (header::CONTENT_TYPE, kind.clone()),
                (header::CONTENT_LENGTH, bytes.len().to_string()),
            ];
            (headers, bytes.clone()).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
