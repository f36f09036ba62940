//! A web server with the files that a test gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use url::Url;

/// A running one; it ends with the test.
pub(crate) struct Site {
    address: String,
    files: Files,
    serving: tokio::task::JoinHandle<()>,
}

type Files = Arc<Mutex<BTreeMap<String, (StatusCode, Bytes)>>>;

impl Site {
    pub(crate) async fn start() -> Self {
        let files = Files::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&files));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            files,
            serving,
        }
    }

    /// Adds a file. Query parameters are sorted, without the client's `id`.
    pub(crate) fn put(&self, name: &str, content: impl Into<Bytes>) {
        self.refuse(name, StatusCode::OK, content);
    }

    /// Answers with that status.
    pub(crate) fn refuse(&self, name: &str, status: StatusCode, content: impl Into<Bytes>) {
        let mut files = self.files.lock().unwrap();
        files.insert(name.to_owned(), (status, content.into()));
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

async fn answer(State(files): State<Files>, uri: Uri) -> Response {
    let asked = uri.query().unwrap_or_default().split('&');
    let asked: BTreeSet<&str> = asked.filter(|it| !it.starts_with("id=")).collect();
    let asked: Vec<&str> = asked.into_iter().filter(|it| !it.is_empty()).collect();
    let name = match asked.as_slice() {
        [] => uri.path().to_owned(),
        some => format!("{}?{}", uri.path(), some.join("&")),
    };
    let known = files.lock().unwrap().get(&name).cloned();
    match known {
        Some(answer) => answer.into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
