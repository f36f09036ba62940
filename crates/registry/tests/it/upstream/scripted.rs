//! A scripted upstream: counts, breaks off, waits, refuses.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use oci::Digest;
use service::CancellationToken;
use service::server::{self, Listen, Running};
use tokio::sync::watch;

/// Bytes of one write.
const PIECE: usize = 64 * 1024;

pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    script: Arc<Script>,
    running: Option<(Running, CancellationToken)>,
}

#[derive(Default)]
struct Script {
    content: Mutex<HashMap<String, (String, Bytes)>>,
    /// Method, path, range and authorization of each request.
    seen: Mutex<Vec<String>>,
    refusal: Mutex<Option<(StatusCode, &'static str, String)>>,
    /// Units: bytes. Where the next blobs break off.
    cuts: Mutex<Vec<usize>>,
    /// Blobs stop after the first piece while it is true.
    holds: watch::Sender<bool>,
    /// Where blobs lie instead.
    elsewhere: Mutex<Option<String>>,
    demands_password: Mutex<bool>,
    lie: Mutex<Option<Lie>>,
}

/// A false statement of the upstream.
#[derive(Debug, Clone)]
pub(crate) enum Lie {
    /// The digest of every manifest.
    Digest(Digest),
    /// The media type of every manifest.
    MediaType(&'static str),
    /// Bytes of every blob, for requests about it.
    Size(usize),
    /// Manifests and blobs have no end.
    Endless,
    /// Manifests end before their length.
    Truncated,
}

impl Scripted {
    pub(crate) async fn start() -> Self {
        let mut upstream = Self {
            address: "127.0.0.1:0".parse().unwrap(),
            script: Arc::default(),
            running: None,
        };
        upstream.resume().await;
        upstream
    }

    /// Listens again where it did before.
    pub(crate) async fn resume(&mut self) {
        let shutdown = CancellationToken::new();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&self.script));
        let listen = vec![Listen::new(self.address, None)];
        let running = server::start(listen, router, shutdown.clone())
            .await
            .unwrap();
        self.address = running.address();
        self.running = Some((running, shutdown));
    }

    pub(crate) async fn stop(&mut self) {
        if let Some((running, shutdown)) = self.running.take() {
            shutdown.cancel();
            running.wait().await.unwrap();
        }
    }

    fn put(&self, path: String, kind: &str, content: Bytes) {
        let mut all = self.script.content.lock().unwrap();
        all.insert(path, (kind.to_owned(), content));
    }

    pub(crate) fn put_blob(&self, name: &str, content: impl Into<Bytes>) -> Digest {
        let content = content.into();
        let digest = Digest::sha256(&content);
        self.put_under(name, &digest, content);
        digest
    }

    /// A blob under a digest that may be another one's.
    pub(crate) fn put_under(&self, name: &str, digest: &Digest, content: impl Into<Bytes>) {
        let path = format!("/v2/{name}/blobs/{digest}");
        self.put(path, "application/octet-stream", content.into());
    }

    pub(crate) fn put_manifest(&self, name: &str, tag: &str, body: &str) -> Digest {
        let digest = Digest::sha256(body.as_bytes());
        let body = Bytes::copy_from_slice(body.as_bytes());
        let kind = oci::media_type::OCI_MANIFEST;
        self.put(format!("/v2/{name}/manifests/{tag}"), kind, body.clone());
        self.put(format!("/v2/{name}/manifests/{digest}"), kind, body);
        digest
    }

    /// Every further request is answered that, with a header.
    pub(crate) fn refuse(&self, refusal: Option<(u16, &'static str, &str)>) {
        let refusal = refusal.map(|(status, name, value)| {
            let status = StatusCode::from_u16(status).unwrap();
            (status, name, value.to_owned())
        });
        *self.script.refusal.lock().unwrap() = refusal;
    }

    pub(crate) fn cut(&self, at: &[usize]) {
        *self.script.cuts.lock().unwrap() = at.to_vec();
    }

    pub(crate) fn hold(&self, holds: bool) {
        self.script.holds.send_replace(holds);
    }

    pub(crate) fn keep_blobs_at(&self, elsewhere: &Self) {
        let url = format!("http://localhost:{}", elsewhere.address.port());
        *self.script.elsewhere.lock().unwrap() = Some(url);
    }

    pub(crate) fn demand_password(&self) {
        *self.script.demands_password.lock().unwrap() = true;
    }

    pub(crate) fn lie(&self, lie: Option<Lie>) {
        *self.script.lie.lock().unwrap() = lie;
    }

    /// The requests with `part` in them.
    pub(crate) fn seen(&self, part: &str) -> Vec<String> {
        let seen = self.script.seen.lock().unwrap();
        let fitting = seen.iter().filter(|line| line.contains(part));
        fitting.cloned().collect()
    }
}

async fn answer(State(script): State<Arc<Script>>, request: Request) -> Response {
    let header = |name| {
        let value = request.headers().get(name).map(HeaderValue::to_str);
        value.and_then(Result::ok).unwrap_or_default().to_owned()
    };
    let (range, login) = (header(header::RANGE), header(header::AUTHORIZATION));
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let line = format!("{method} {path} {range} {login}");
    script.seen.lock().unwrap().push(line.trim().to_owned());
    if let Some((status, name, value)) = script.refusal.lock().unwrap().clone() {
        return (status, [(name, value)]).into_response();
    }
    if *script.demands_password.lock().unwrap() && login.is_empty() {
        let demand = [(header::WWW_AUTHENTICATE, "Basic realm=\"x\"")];
        return (StatusCode::UNAUTHORIZED, demand).into_response();
    }
    let found = script.content.lock().unwrap().get(&path).cloned();
    let Some((kind, content)) = found else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let elsewhere = script.elsewhere.lock().unwrap().clone();
    let is_blob = path.contains("/blobs/");
    if let (Some(url), true) = (elsewhere, is_blob) {
        let there = [(header::LOCATION, format!("{url}{path}"))];
        return (StatusCode::TEMPORARY_REDIRECT, there).into_response();
    }
    let first = range.trim_start_matches("bytes=").trim_end_matches('-');
    let first = first.parse().unwrap_or(0);
    let status = if first > 0 {
        StatusCode::PARTIAL_CONTENT
    } else {
        StatusCode::OK
    };
    let rest = content.slice(first..);
    let lie = script.lie.lock().unwrap().clone();
    let (mut kind, mut length) = (kind, rest.len());
    let mut named = Digest::sha256(&content);
    match &lie {
        Some(Lie::Digest(digest)) => named = digest.clone(),
        Some(Lie::MediaType(other)) if !is_blob => (*other).clone_into(&mut kind),
        Some(Lie::Size(size)) if method == Method::HEAD => length = *size,
        Some(Lie::Truncated) if !is_blob => length += 1,
        Some(Lie::Endless) if method != Method::HEAD => {
            let endless = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; PIECE]));
            return (status, Body::from_stream(endless)).into_response();
        }
        _ => {}
    }
    let digest = (!is_blob).then(|| [("docker-content-digest", named.to_string())]);
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_LENGTH, length.to_string()),
    ];
    let body = match (method, is_blob) {
        (Method::HEAD, _) => Body::empty(),
        (_, false) if length > rest.len() => {
            let cut = Err(std::io::Error::other("cut"));
            Body::from_stream(stream::iter([Ok(rest), cut]))
        }
        (_, true) => sent(script, &rest),
        (_, false) => Body::from(rest),
    };
    (status, digest, headers, body).into_response()
}

fn sent(script: Arc<Script>, content: &Bytes) -> Body {
    let cut = script.cuts.lock().unwrap().pop();
    let whole = content.slice(..cut.unwrap_or(content.len()).min(content.len()));
    let pieces: Vec<_> = whole.chunks(PIECE).map(Bytes::copy_from_slice).collect();
    let pieces = stream::iter(pieces.into_iter().enumerate()).then(move |(at, piece)| {
        let mut holds = script.holds.subscribe();
        async move {
            if at > 0 {
                holds.wait_for(|holds| !holds).await.ok();
            }
            Ok::<_, std::io::Error>(piece)
        }
    });
    let end = stream::iter(cut.map(|_| Err(std::io::Error::other("cut"))));
    Body::from_stream(pieces.chain(end))
}
