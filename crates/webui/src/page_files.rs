//! Files of the static root.
//!
//! Assets stay in memory once they were read: their names contain a hash of their content, so they never change, and
//! a server that reads a file for each of many downloads holds buffers and threads for each.

use std::path::Path;

use axum::body::{Body, to_bytes};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use moka::sync::Cache;
use tower::ServiceExt as _;
use tower_http::services::ServeDir;

/// Path of files whose names contain a hash of their content.
pub(crate) const ASSETS: &str = "/assets/";
/// Largest asset in memory. Units: bytes.
const MAX_ASSET: usize = 1 << 20;
/// Most memory of all assets: those of our pages take 2 MiB. Units: bytes.
const MAX_KEPT: u64 = 6 << 20;
/// Buffer of a file that is read. Units: bytes.
const CHUNK: usize = 16 << 10;

/// The static root. Clones share the assets in memory.
#[derive(Clone)]
pub(crate) struct PageFiles {
    disk: ServeDir,
    assets: Cache<(String, Encoding), Asset>,
}

/// The encoding that a client gets, where there is one of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Encoding {
    Brotli,
    Gzip,
    Identity,
}

/// An asset in one encoding.
#[derive(Debug, Clone)]
struct Asset {
    headers: HeaderMap,
    content: Bytes,
}

impl Asset {
    fn response(self) -> Response {
        let mut response = Response::new(Body::from(self.content));
        *response.headers_mut() = self.headers;
        response
    }
}

impl PageFiles {
    pub(crate) fn new(root: &Path) -> Self {
        let disk = ServeDir::new(root)
            .precompressed_br()
            .precompressed_gzip()
            .with_buf_chunk_size(CHUNK);
        let weight = |(path, _): &(String, Encoding), asset: &Asset| {
            u32::try_from(path.len() + asset.content.len()).unwrap_or(u32::MAX)
        };
        let assets = Cache::builder().weigher(weight).max_capacity(MAX_KEPT);
        Self {
            disk,
            assets: assets.build(),
        }
    }

    /// The response to a request for the file of this path; none where there is no such file.
    pub(crate) async fn find(
        &self,
        path: &str,
        method: &Method,
        headers: &HeaderMap,
    ) -> Option<Response> {
        let mut headers = headers.clone();
        let encoding = Encoding::of(&headers);
        encoding.ask(&mut headers);
        if !path.starts_with(ASSETS) {
            // Files of a reproducible image all have one time: 304 would keep the index of the version before.
            headers.remove(header::IF_MODIFIED_SINCE);
        }
        if !path.starts_with(ASSETS) || !is_plain(method, &headers) {
            return self.read(path, method, headers).await;
        }
        let key = (path.to_owned(), encoding);
        if let Some(asset) = self.assets.get(&key) {
            return Some(asset.response());
        }
        let response = self.read(path, method, headers).await?;
        Some(self.kept(key, response).await)
    }

    async fn read(&self, path: &str, method: &Method, mut headers: HeaderMap) -> Option<Response> {
        let uri: Uri = path.parse().ok()?;
        let request = |headers: &HeaderMap| {
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            request
        };
        let found = |status| status != StatusCode::NOT_FOUND;
        let Ok(response) = self.disk.clone().oneshot(request(&headers)).await;
        if found(response.status()) {
            return Some(response.map(Body::new));
        }
        // The image has scripts and styles in compressed form alone. Without the header every encoding is acceptable
        // (RFC 9110, 12.5.3), and clients that really take none do not run scripts.
        Encoding::Gzip.ask(&mut headers);
        let Ok(response) = self.disk.clone().oneshot(request(&headers)).await;
        found(response.status()).then(|| response.map(Body::new))
    }

    /// The response, whose content stays in memory if it is small.
    async fn kept(&self, key: (String, Encoding), response: Response) -> Response {
        let (parts, body) = response.into_parts();
        let length = parts.headers.get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        if parts.status != StatusCode::OK || length.is_none_or(|length: usize| length > MAX_ASSET) {
            return Response::from_parts(parts, body);
        }
        let Ok(content) = to_bytes(body, MAX_ASSET).await else {
            tracing::error!(path = key.0, "asset not read");
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            return response;
        };
        let asset = Asset {
            headers: parts.headers,
            content,
        };
        self.assets.insert(key, asset.clone());
        asset.response()
    }
}

/// Whether the response is the whole file, unconditionally.
fn is_plain(method: &Method, headers: &HeaderMap) -> bool {
    let conditions = [
        header::RANGE,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
    ];
    method == Method::GET && !conditions.iter().any(|name| headers.contains_key(name))
}

impl Encoding {
    /// The smallest one that the client takes.
    fn of(headers: &HeaderMap) -> Self {
        let accepted = |wanted: &str| {
            let values = headers.get_all(header::ACCEPT_ENCODING).iter();
            let mut tokens = values
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(','));
            tokens.any(|token| {
                let (name, quality) = token.split_once(';').unwrap_or((token, ""));
                let is_refused = matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
                name.trim().eq_ignore_ascii_case(wanted) && !is_refused
            })
        };
        if accepted("br") {
            Self::Brotli
        } else if accepted("gzip") {
            Self::Gzip
        } else {
            Self::Identity
        }
    }

    /// Makes it the only one that is asked for.
    fn ask(self, headers: &mut HeaderMap) {
        let name = match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
            Self::Identity => "identity",
        };
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
        headers
    }

    async fn content(files: &PageFiles, path: &str, headers: &HeaderMap) -> (u16, Bytes) {
        let response = files.find(path, &Method::GET, headers).await.unwrap();
        let status = response.status().as_u16();
        (
            status,
            to_bytes(response.into_body(), MAX_ASSET * 2).await.unwrap(),
        )
    }

    #[test]
    fn the_smallest_accepted_encoding_is_chosen() {
        for (value, expected) in [
            ("gzip, deflate, br", Encoding::Brotli),
            ("br;q=0, GZIP;q=0.5", Encoding::Gzip),
            ("gzip;q=0.000", Encoding::Identity),
            ("brotli", Encoding::Identity),
            ("", Encoding::Identity),
        ] {
            assert_eq!(Encoding::of(&accepting(value)), expected, "{value}");
        }
        assert_eq!(Encoding::of(&HeaderMap::new()), Encoding::Identity);
    }

    #[tokio::test]
    async fn assets_are_read_once_and_other_files_each_time() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("assets")).unwrap();
        for (name, text) in [
            ("assets/a.js", "plain"),
            ("assets/a.js.br", "brotli"),
            ("assets/a.js.gz", "gzip"),
            ("index.html", "index"),
        ] {
            std::fs::write(root.path().join(name), text).unwrap();
        }
        let files = PageFiles::new(root.path());
        let encodings = [("br", "brotli"), ("gzip", "gzip"), ("identity", "plain")];
        for (encoding, text) in encodings {
            let found = content(&files, "/assets/a.js", &accepting(encoding)).await;
            assert_eq!(found, (200, text.into()), "{encoding}");
        }
        for name in [
            "assets/a.js",
            "assets/a.js.br",
            "assets/a.js.gz",
            "index.html",
        ] {
            std::fs::write(root.path().join(name), "changed").unwrap();
        }
        for (encoding, text) in encodings {
            let found = content(&files, "/assets/a.js", &accepting(encoding)).await;
            assert_eq!(found, (200, text.into()), "{encoding}");
        }
        assert_eq!(
            content(&files, "/index.html", &HeaderMap::new()).await.1,
            "changed"
        );
        // A part is read from the file.
        let mut part = accepting("identity");
        part.insert(header::RANGE, HeaderValue::from_static("bytes=0-1"));
        assert_eq!(
            content(&files, "/assets/a.js", &part).await,
            (206, "ch".into())
        );
        assert!(
            files
                .find("/assets/b.js", &Method::GET, &HeaderMap::new())
                .await
                .is_none()
        );
    }

    // limit: an asset in memory
    #[tokio::test]
    async fn larger_assets_are_read_each_time() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("assets")).unwrap();
        let path = root.path().join("assets/large.wasm");
        let files = PageFiles::new(root.path());
        for (size, is_kept) in [(MAX_ASSET + 1, false), (MAX_ASSET, true)] {
            std::fs::write(&path, vec![1; size]).unwrap();
            let before = content(&files, "/assets/large.wasm", &HeaderMap::new())
                .await
                .1;
            std::fs::write(&path, vec![2; size]).unwrap();
            let after = content(&files, "/assets/large.wasm", &HeaderMap::new())
                .await
                .1;
            assert_eq!(before == after, is_kept, "{size}");
        }
    }
}
