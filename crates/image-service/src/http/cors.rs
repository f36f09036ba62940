//! Cross-origin requests: pages of the allowed origins may read images.
//!
//! Source: the Fetch standard; headers, values and statuses as of assisted-image-service.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};

const METHODS: [Method; 2] = [Method::GET, Method::HEAD];
const HEADERS: HeaderValue = HeaderValue::from_static("Authorization, Content-Type");
/// How long browsers keep the answer to a preflight. Units: seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Lets pages of `origins` read the routes; without any, no response has a header about origins.
pub(super) fn allow(router: Router, origins: &[String]) -> Router {
    if origins.is_empty() {
        return router;
    }
    let origins: Arc<[String]> = origins
        .iter()
        .map(|origin| origin.to_ascii_lowercase())
        .collect();
    router.layer(middleware::from_fn(move |request, next| {
        answer(Arc::clone(&origins), request, next)
    }))
}

async fn answer(origins: Arc<[String]>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let origin = origin.filter(|origin| is_allowed(&origins, origin));
    let asked = request
        .headers()
        .get(header::ACCESS_CONTROL_REQUEST_METHOD)
        .cloned();
    let mut response = match asked.filter(|_| request.method() == Method::OPTIONS) {
        Some(method) => preflight(&method, origin.is_some()),
        None => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    response
}

fn preflight(method: &HeaderValue, is_origin_allowed: bool) -> Response {
    let mut headers = HeaderMap::new();
    let varying = [
        header::ACCESS_CONTROL_REQUEST_METHOD,
        header::ACCESS_CONTROL_REQUEST_HEADERS,
    ];
    for name in varying.iter().map(HeaderName::as_str) {
        headers.extend(HeaderValue::try_from(name).map(|name| (header::VARY, name)));
    }
    if is_origin_allowed && METHODS.iter().any(|known| known.as_str() == method) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, method.clone());
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn is_allowed(origins: &[String], origin: &HeaderValue) -> bool {
    let Ok(origin) = origin.to_str() else {
        return false;
    };
    let origin = origin.to_ascii_lowercase();
    origins.iter().any(|allowed| match allowed.split_once('*') {
        Some((start, end)) => {
            origin.len() >= start.len() + end.len()
                && origin.starts_with(start)
                && origin.ends_with(end)
        }
        None => *allowed == origin,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        let origins = ["https://*.example.org", "http://a:8080"].map(str::to_owned);
        for (origin, expected) in [
            ("https://x.example.org", true),
            ("HTTPS://X.Example.Org", true),
            ("https://.example.org", true),
            ("https://example.org", false),
            ("https://x.example.org.evil", false),
            ("http://a:8080", true),
            ("http://a:80801", false),
            ("null", false),
        ] {
            let value = HeaderValue::from_str(origin).unwrap();
            assert_eq!(is_allowed(&origins, &value), expected, "{origin}");
        }
    }
}
