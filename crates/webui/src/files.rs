//! The UI's files: from the static root, or the built-in page.
//!
//! A path that is no file gets index.html, so that client-side routes can be opened and reloaded. A missing asset gets
//! 404, so that an old tab fails with the right reason after an upgrade; nginx under the specification's rules sends
//! index.html for it, too.

use std::convert::Infallible;
use std::path::Path;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt as _, service_fn};
use tower_http::services::ServeDir;

use crate::builtin;
use crate::settings::Settings;

const INDEX: &str = "index.html";
/// Path of files whose names contain a hash of their content.
const ASSETS: &str = "/assets/";

const X_FRAME_OPTIONS: HeaderName = HeaderName::from_static("x-frame-options");

type FileService = BoxCloneSyncService<Request<Body>, Response, Infallible>;

/// Serves every path outside of the API.
pub(crate) fn service(settings: &Settings) -> FileService {
    let policy = HeaderValue::from_str(&settings.content_security_policy).ok();
    let disk = is_root(&settings.static_root).then(|| disk(&settings.static_root));
    if disk.is_some() {
        tracing::info!(root = %settings.static_root.display(), "serving the UI from STATIC_ROOT");
    } else {
        tracing::info!("serving the built-in page");
    }
    let service = service_fn(move |request: Request<Body>| {
        let (disk, policy) = (disk.clone(), policy.clone());
        async move {
            let path = request.uri().path().to_owned();
            let mut response = answer(disk, request).await;
            decorate(&path, policy, &mut response);
            Ok(response)
        }
    });
    BoxCloneSyncService::new(service)
}

fn is_root(folder: &Path) -> bool {
    folder.join(INDEX).is_file()
}

fn disk(root: &Path) -> ServeDir {
    ServeDir::new(root).precompressed_br().precompressed_gzip()
}

async fn answer(disk: Option<ServeDir>, request: Request<Body>) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    if method != Method::GET && method != Method::HEAD {
        let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(header::ALLOW, allowed);
        return response;
    }
    let headers = request.headers().clone();
    let found = find(disk.as_ref(), &path, &method, &headers).await;
    match found {
        Some(response) => response,
        None if is_page(&path, &headers) => find(disk.as_ref(), "/", &method, &headers)
            .await
            .unwrap_or_else(|| status(StatusCode::NOT_FOUND)),
        None => status(StatusCode::NOT_FOUND),
    }
}

async fn find(
    disk: Option<&ServeDir>,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Option<Response> {
    let Some(disk) = disk else {
        let name = match path.trim_start_matches('/') {
            "" => INDEX,
            name => name,
        };
        let file = builtin::find(name)?;
        return Some(file.answer(method, headers).map(Body::from));
    };
    let mut request = Request::new(Body::empty());
    *request.method_mut() = method.clone();
    *request.uri_mut() = path.parse().ok()?;
    *request.headers_mut() = headers.clone();
    let Ok(response) = disk.clone().oneshot(request).await;
    (response.status() != StatusCode::NOT_FOUND).then(|| response.map(Body::new))
}

/// Whether the request is a navigation to a client-side route, rather than for a missing file.
pub(crate) fn is_page(path: &str, headers: &HeaderMap) -> bool {
    if path.starts_with(ASSETS) {
        return false;
    }
    let wants_page = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/html"));
    let looks_like_file = path
        .rsplit('/')
        .next()
        .is_some_and(|name| name.contains('.'));
    wants_page || !looks_like_file
}

fn decorate(path: &str, policy: Option<HeaderValue>, response: &mut Response) {
    let is_immutable = path.starts_with(ASSETS) && response.status().is_success();
    let headers = response.headers_mut();
    let cache = if is_immutable {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    if let Some(policy) = policy {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::from(status.canonical_reason().unwrap_or_default()));
    *response.status_mut() = status;
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(settings: &Settings, path: &str, accept: &'static str) -> Response {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = path.parse().unwrap();
        let accept = HeaderValue::from_static(accept);
        request.headers_mut().insert(header::ACCEPT, accept);
        service(settings).oneshot(request).await.unwrap()
    }

    fn media_type(response: &Response) -> &str {
        response.headers()[header::CONTENT_TYPE].to_str().unwrap()
    }

    #[tokio::test]
    async fn client_side_routes_get_the_index_and_missing_files_404() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("assets")).unwrap();
        std::fs::write(root.path().join("index.html"), "<p>ours").unwrap();
        std::fs::write(root.path().join("assets/a.js"), "1").unwrap();
        let disk = Settings {
            static_root: root.path().to_owned(),
            ..Settings::default()
        };
        let builtin = Settings {
            static_root: root.path().join("missing"),
            ..Settings::default()
        };
        for settings in [&disk, &builtin] {
            for (path, accept, code) in [
                ("/", "*/*", 200),
                ("/clusters/x", "*/*", 200),
                ("/clusters/x.y", "text/html", 200),
                ("/clusters/x.js", "*/*", 404),
                ("/assets/old.js", "text/html", 404),
                ("/%2e%2e/%2e%2e/etc/passwd", "*/*", 200),
            ] {
                let response = ask(settings, path, accept).await;
                assert_eq!(response.status(), code, "{path}");
                if code == 200 {
                    assert!(media_type(&response).starts_with("text/html"), "{path}");
                    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache");
                }
            }
        }
        let asset = ask(&disk, "/assets/a.js", "*/*").await;
        let cache = asset.headers()[header::CACHE_CONTROL].to_str().unwrap();
        assert!(cache.contains("immutable"), "{cache}");
    }

    #[tokio::test]
    async fn every_answer_carries_the_security_headers() {
        let response = ask(&Settings::default(), "/nothing.txt", "*/*").await;
        for name in [
            "content-security-policy",
            "x-content-type-options",
            "referrer-policy",
            "x-frame-options",
        ] {
            assert!(response.headers().contains_key(name), "{name}");
        }
    }

    #[tokio::test]
    async fn other_methods_than_get_and_head_are_refused() {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::DELETE;
        let response = service(&Settings::default())
            .oneshot(request)
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()[header::ALLOW], "GET, HEAD");
    }
}
