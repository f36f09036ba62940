//! The UI's files from the static root, and the status page.
//!
//! A path that is no file gets index.html, so that client-side routes can be opened and reloaded. A missing asset gets
//! 404, so that an old tab fails with the right reason after an upgrade; nginx under the specification's rules sends
//! index.html for it, too. Without a static root all pages are those of the status page.

use std::convert::Infallible;
use std::path::Path;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use tower::service_fn;
use tower::util::BoxCloneSyncService;

use crate::page_files::{ASSETS, PageFiles};
use crate::settings::Settings;
use crate::status_page;

const INDEX: &str = "index.html";
const X_FRAME_OPTIONS: HeaderName = HeaderName::from_static("x-frame-options");

type FileService = BoxCloneSyncService<Request<Body>, Response, Infallible>;

/// Serves every path outside of the API.
pub(crate) fn service(settings: &Settings) -> FileService {
    let policy = HeaderValue::from_str(&settings.content_security_policy).ok();
    let files = is_root(&settings.static_root).then(|| PageFiles::new(&settings.static_root));
    if files.is_some() {
        tracing::info!(root = %settings.static_root.display(), "serving the UI from STATIC_ROOT");
    } else {
        tracing::info!("STATIC_ROOT has no index.html: serving the status page alone");
    }
    let service = service_fn(move |request: Request<Body>| {
        let (files, policy) = (files.clone(), policy.clone());
        async move {
            let path = request.uri().path().to_owned();
            let mut response = answer(files, request).await;
            decorate(&path, policy, &mut response);
            Ok(response)
        }
    });
    BoxCloneSyncService::new(service)
}

fn is_root(folder: &Path) -> bool {
    folder.join(INDEX).is_file()
}

async fn answer(files: Option<PageFiles>, request: Request<Body>) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    if method != Method::GET && method != Method::HEAD {
        let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(header::ALLOW, allowed);
        return response;
    }
    let headers = request.headers();
    if let Some(name) = status_page_path(&path) {
        let page = || status_page::find(INDEX).filter(|_| is_page(&path, headers));
        return match status_page::find(name).or_else(page) {
            Some(file) => file.answer(&method, headers).map(Body::from),
            None => status(StatusCode::NOT_FOUND),
        };
    }
    let Some(files) = files else {
        return if is_page(&path, headers) {
            to_status_page(request.uri())
        } else {
            status(StatusCode::NOT_FOUND)
        };
    };
    match files.find(&path, &method, headers).await {
        Some(response) => response,
        None if is_page(&path, headers) => files
            .find("/", &method, headers)
            .await
            .unwrap_or_else(|| status(StatusCode::NOT_FOUND)),
        None => status(StatusCode::NOT_FOUND),
    }
}

/// The path below the status page's root; none of other paths.
fn status_page_path(path: &str) -> Option<&str> {
    if path == status_page::ROOT.trim_end_matches('/') {
        return Some(INDEX);
    }
    let name = path.strip_prefix(status_page::ROOT)?;
    Some(if name.is_empty() { INDEX } else { name })
}

/// Leads to the same page below the status page's root: older bookmarks have no prefix.
fn to_status_page(uri: &Uri) -> Response {
    let page = uri.path_and_query().map_or("/", |page| page.as_str());
    let target = format!("{}{}", status_page::ROOT, page.trim_start_matches('/'));
    let Ok(target) = HeaderValue::from_str(&target) else {
        return status(StatusCode::NOT_FOUND);
    };
    let mut response = status(StatusCode::TEMPORARY_REDIRECT);
    response.headers_mut().insert(header::LOCATION, target);
    response
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
    use tower::ServiceExt as _;

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
        for (path, accept, code) in [
            ("/", "*/*", 200),
            ("/clusters/x", "*/*", 200),
            ("/clusters/x.y", "text/html", 200),
            ("/clusters/x.js", "*/*", 404),
            ("/assets/old.js", "text/html", 404),
            ("/%2e%2e/%2e%2e/etc/passwd", "*/*", 200),
            ("/status", "*/*", 200),
            ("/status/", "*/*", 200),
            ("/status/clusters/x", "*/*", 200),
            ("/status/missing.js", "*/*", 404),
        ] {
            let response = ask(&disk, path, accept).await;
            assert_eq!(response.status(), code, "{path}");
            if code == 200 {
                assert!(media_type(&response).starts_with("text/html"), "{path}");
                assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache");
            }
        }
        let asset = ask(&disk, "/assets/a.js", "*/*").await;
        let cache = asset.headers()[header::CACHE_CONTROL].to_str().unwrap();
        assert!(cache.contains("immutable"), "{cache}");
    }

    #[tokio::test]
    async fn a_script_that_is_there_compressed_is_sent_to_every_client() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("assets")).unwrap();
        std::fs::write(root.path().join("index.html"), "<p>ours").unwrap();
        std::fs::write(root.path().join("assets/a.js.gz"), "compressed").unwrap();
        let settings = Settings {
            static_root: root.path().to_owned(),
            ..Settings::default()
        };
        for accepted in [None, Some("gzip, deflate, br"), Some("identity")] {
            let mut request = Request::new(Body::empty());
            *request.uri_mut() = "/assets/a.js".parse().unwrap();
            if let Some(accepted) = accepted {
                let value = HeaderValue::from_static(accepted);
                request.headers_mut().insert(header::ACCEPT_ENCODING, value);
            }
            let response = service(&settings).oneshot(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::OK, "{accepted:?}");
            assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
            assert_eq!(media_type(&response), "text/javascript");
        }
    }

    #[tokio::test]
    async fn without_a_root_pages_are_those_of_the_status_page() {
        for (path, accept, target) in [
            ("/", "*/*", Some("/status/")),
            ("/clusters/x?a=b", "*/*", Some("/status/clusters/x?a=b")),
            ("//evil.example/", "*/*", Some("/status/evil.example/")),
            ("/clusters/x.js", "*/*", None),
            ("/assets/old.js", "text/html", None),
        ] {
            let response = ask(&Settings::default(), path, accept).await;
            let location = response.headers().get(header::LOCATION);
            assert_eq!(location.map(|at| at.to_str().unwrap()), target, "{path}");
            let code = if target.is_some() { 307 } else { 404 };
            assert_eq!(response.status(), code, "{path}");
        }
    }

    #[tokio::test]
    async fn an_index_of_the_same_time_is_sent_again() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("index.html"), "<p>new").unwrap();
        let settings = Settings {
            static_root: root.path().to_owned(),
            ..Settings::default()
        };
        let mut request = Request::new(Body::empty());
        let future = HeaderValue::from_static("Fri, 01 Jan 2100 00:00:00 GMT");
        let headers = request.headers_mut();
        headers.insert(header::IF_MODIFIED_SINCE, future);
        let response = service(&settings).oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
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
