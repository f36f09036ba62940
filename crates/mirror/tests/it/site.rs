//! A web server with the files that a test gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_LENGTH, RANGE};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{self, StreamExt as _};
use url::Url;

/// A running one; it ends with the test.
pub(crate) struct Site {
    address: String,
    content: Arc<Content>,
    serving: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Content {
    files: Mutex<BTreeMap<String, (StatusCode, Bytes)>>,
    /// Files whose responses break off after so many bytes, unless a range is requested.
    cuts: Mutex<BTreeMap<String, usize>>,
    /// Names and ranges of requests.
    requests: Mutex<Vec<(String, Option<String>)>>,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let content = Arc::<Content>::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&content));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            content,
            serving,
        }
    }

    /// Adds a file. Query parameters are sorted, without the client's `id`.
    pub(crate) fn put(&self, name: &str, content: impl Into<Bytes>) {
        self.refuse(name, StatusCode::OK, content);
    }

    /// Answers with that status.
    pub(crate) fn refuse(&self, name: &str, status: StatusCode, content: impl Into<Bytes>) {
        let mut files = self.content.files.lock().unwrap();
        files.insert(name.to_owned(), (status, content.into()));
    }

    /// Breaks responses off after `length` bytes, unless a range is requested.
    pub(crate) fn cut(&self, name: &str, length: usize) {
        let mut cuts = self.content.cuts.lock().unwrap();
        cuts.insert(name.to_owned(), length);
    }

    /// The ranges of requests for a file so far.
    pub(crate) fn ranges(&self, name: &str) -> Vec<Option<String>> {
        let requests = self.content.requests.lock().unwrap();
        let own = requests.iter().filter(|(it, _)| it == name);
        own.map(|(_, range)| range.clone()).collect()
    }

    pub(crate) fn url(&self, name: &str) -> Url {
        format!("http://{}{name}", self.address).parse().unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(content): State<Arc<Content>>, uri: Uri, headers: HeaderMap) -> Response {
    let asked = uri.query().unwrap_or_default().split('&');
    let asked: BTreeSet<&str> = asked.filter(|it| !it.starts_with("id=")).collect();
    let asked: Vec<&str> = asked.into_iter().filter(|it| !it.is_empty()).collect();
    let name = match asked.as_slice() {
        [] => uri.path().to_owned(),
        some => format!("{}?{}", uri.path(), some.join("&")),
    };
    let range = headers.get(RANGE).map(|it| it.to_str().unwrap().to_owned());
    let mut requests = content.requests.lock().unwrap();
    requests.push((name.clone(), range.clone()));
    let Some((status, bytes)) = content.files.lock().unwrap().get(&name).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let cut = content.cuts.lock().unwrap().get(&name).copied();
    match (cut, range) {
        (Some(_), Some(range)) => {
            let from = range.strip_prefix("bytes=").unwrap().strip_suffix('-');
            let from: usize = from.unwrap().parse().unwrap();
            (StatusCode::PARTIAL_CONTENT, bytes.slice(from..)).into_response()
        }
        (Some(length), None) => {
            let headers = [(CONTENT_LENGTH, bytes.len().to_string())];
            let broken = std::io::Error::other("broken off");
            let chunks = [Ok(bytes.slice(..length)), Err(broken)];
            // The server sends the bytes while it waits for more.
            let chunks = stream::iter(chunks).then(async |chunk| {
                tokio::task::yield_now().await;
                chunk
            });
            (headers, Body::from_stream(chunks)).into_response()
        }
        (None, _) => (status, bytes).into_response(),
    }
}
