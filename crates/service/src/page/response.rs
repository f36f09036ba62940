//! Responses with pages and their files.

use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use maud::Markup;
use sha2::{Digest as _, Sha256};

use crate::conditional::Validator;

/// No page runs scripts, or loads more than our own style and icon.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// A page, or 304.
pub fn page(request: &HeaderMap, page: Markup) -> Response {
    file(request, "text/html; charset=utf-8", page.into_string())
}

/// A file, or 304. Browsers revalidate each time: pages change with the content that they show.
pub fn file(request: &HeaderMap, kind: &'static str, content: impl Into<String>) -> Response {
    let content = content.into();
    let validator = Validator::unaged(&hex::encode(Sha256::digest(&content)));
    let mut response = match validator.precondition(request) {
        Some(StatusCode::NOT_MODIFIED) => StatusCode::NOT_MODIFIED.into_response(),
        _ => content.into_response(),
    };
    response.headers_mut().extend(validator.headers());
    describe(&mut response, kind);
    response
}

/// Headers of every page.
pub fn describe(response: &mut Response, kind: &'static str) {
    let fixed: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "private, no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
    ];
    for (name, value) in fixed {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
}
