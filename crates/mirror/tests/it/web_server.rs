//! A web server with the files of a folder, and with faults.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use mirror::archive::{ArchiveSource, archive_url};
use net::web::FileServer;
use reqwest::header::HeaderValue;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Chunk of a slow response. Units: bytes.
const SLOW_BYTES: usize = 16 * 1024;
/// Time between the chunks of a slow response.
const SLOW_PAUSE: Duration = Duration::from_millis(3);
/// Time between the last byte and the end of a connection.
const FLUSH_PAUSE: Duration = Duration::from_millis(30);
/// Response that breaks in the middle, or later. Units: bytes.
const LONG_BYTES: usize = 2000;

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WebFault {
    Nothing,
    /// The connection breaks in the middle of each long answer.
    Broken,
    /// The answer ends in the middle of each long range, as if that were all that was requested.
    Short,
    /// So many ranges are of one version, later ones of another, by `If-Range`.
    Changed(usize),
    /// As [`Self::Changed`], by a server that ignores `If-Range`.
    ChangedUnnoticed(usize),
    /// Ranges are answered with the whole file.
    NoRanges,
    /// No ETag and no Last-Modified.
    NoVersion,
    /// Last-Modified instead of an ETag.
    OnlyModified,
    /// Ranges are those after the requested one.
    OtherRange,
    /// To this URL, with the path appended.
    Redirected(String),
    /// Bytes arrive slowly.
    Slow,
    /// So many requests are answered with a status.
    Status(u16, usize),
}

pub(crate) struct WebServer {
    pub(crate) address: String,
    shared: Arc<WebState>,
    serving: JoinHandle<()>,
}

struct WebState {
    folder: PathBuf,
    /// The page of folders; a listing unless it is set.
    page: Option<String>,
    fault: WebFault,
    /// Requests that may have met the fault.
    count: AtomicUsize,
    requests: Mutex<Vec<(String, HeaderMap)>>,
}

impl WebServer {
    pub(crate) async fn start(folder: impl Into<PathBuf>, fault: WebFault) -> Self {
        Self::with_page(folder, fault, None).await
    }

    pub(crate) async fn with_page(
        folder: impl Into<PathBuf>,
        fault: WebFault,
        page: Option<String>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(WebState {
            folder: folder.into(),
            page,
            fault,
            count: AtomicUsize::default(),
            requests: Mutex::default(),
        });
        let router = Router::new().fallback(serve).with_state(shared.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            shared,
            serving,
        }
    }

    /// A folder or file of it.
    pub(crate) fn source(&self, path: &str) -> ArchiveSource {
        self.source_with(path, None)
    }

    pub(crate) fn source_with(&self, path: &str, login: Option<&'static str>) -> ArchiveSource {
        let login = login.map(HeaderValue::from_static);
        let server = FileServer::new(None, false, login).unwrap();
        let url = archive_url(&format!("http://{}/{path}", self.address)).unwrap();
        ArchiveSource::web(server, url, Handle::current())
    }

    /// Paths of all requests, with their headers.
    pub(crate) fn requests(&self) -> Vec<(String, HeaderMap)> {
        self.shared.requests.lock().unwrap().clone()
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(State(server): State<Arc<WebState>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let headers = request.headers().clone();
    let seen = (path.clone(), headers.clone());
    server.requests.lock().unwrap().push(seen);
    match &server.fault {
        WebFault::Redirected(to) => {
            let location = [(header::LOCATION, format!("{to}{path}"))];
            return (StatusCode::FOUND, location).into_response();
        }
        WebFault::Status(status, times)
            if server.count.fetch_add(1, Ordering::Relaxed) < *times =>
        {
            return StatusCode::from_u16(*status).unwrap().into_response();
        }
        _ => {}
    }
    let file = server.folder.join(path.trim_start_matches('/'));
    if file.is_dir() {
        let page = server.page.clone().unwrap_or_else(|| listing(&file));
        return ([(header::CONTENT_TYPE, "text/html")], page).into_response();
    }
    match std::fs::read(file) {
        Ok(bytes) => server.file(bytes.into(), &headers),
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

fn listing(folder: &std::path::Path) -> String {
    let mut page = "<pre><a href=\"../\">../</a>\n".to_owned();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        writeln!(page, "<a href=\"{name}\">{name}</a>").unwrap();
    }
    page
}

impl WebState {
    fn file(&self, whole: Bytes, headers: &HeaderMap) -> Response {
        let range = headers.get(header::RANGE).and_then(|it| it.to_str().ok());
        let range = range.and_then(|it| {
            let (first, last) = it.strip_prefix("bytes=")?.split_once('-')?;
            Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?))
        });
        let mut response = Response::builder();
        let changed = match self.fault {
            WebFault::Changed(after) | WebFault::ChangedUnnoticed(after) => {
                self.count.fetch_add(1, Ordering::Relaxed) >= after
            }
            _ => false,
        };
        let tag = if changed { "\"two\"" } else { "\"one\"" };
        response = match self.fault {
            WebFault::NoVersion => response.header(header::ETAG, "W/\"one\""),
            WebFault::OnlyModified => {
                response.header(header::LAST_MODIFIED, "Fri, 27 Nov 2026 10:00:00 GMT")
            }
            _ => response.header(header::ETAG, tag),
        };
        let condition = headers.get(header::IF_RANGE);
        let ignores = matches!(
            self.fault,
            WebFault::ChangedUnnoticed(_) | WebFault::OnlyModified
        );
        let is_same = ignores || condition.is_none_or(|it| it == tag);
        let range = range.filter(|_| is_same && self.fault != WebFault::NoRanges);
        let Some((mut first, last)) = range else {
            return response.body(Body::from(whole)).unwrap();
        };
        let mut last = last.min(whole.len() - 1);
        let is_long = last - first > LONG_BYTES;
        if self.fault == WebFault::Short && is_long {
            last = first + (last - first) / 2;
        }
        if self.fault == WebFault::OtherRange && last > first {
            first += 1;
        }
        let part = whole.slice(first..=last);
        let named = format!("bytes {first}-{last}/{}", whole.len());
        let response = response
            .status(StatusCode::PARTIAL_CONTENT)
            .header(header::CONTENT_RANGE, named)
            .header(header::CONTENT_LENGTH, part.len());
        let body = match self.fault {
            WebFault::Broken if is_long => broken(&part),
            WebFault::Slow => slow(part),
            _ => Body::from(part),
        };
        response.body(body).unwrap()
    }
}

/// Half of the bytes, and the connection breaks.
fn broken(part: &Bytes) -> Body {
    let half = part.slice(..part.len() / 2);
    Body::from_stream(stream::unfold(Some(half), |half| async move {
        if let Some(half) = half {
            return Some((Ok(half), None));
        }
        // The bytes before reach the client.
        tokio::time::sleep(FLUSH_PAUSE).await;
        Some((Err(std::io::Error::other("the connection breaks")), None))
    }))
}

fn slow(part: Bytes) -> Body {
    Body::from_stream(stream::unfold(part, |mut rest| async move {
        if rest.is_empty() {
            return None;
        }
        tokio::time::sleep(SLOW_PAUSE).await;
        let chunk = rest.split_to(rest.len().min(SLOW_BYTES));
        Some((Ok::<_, std::io::Error>(chunk), rest))
    }))
}
