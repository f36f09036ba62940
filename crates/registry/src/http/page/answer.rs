//! Pages and their files as answers.

use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use oci::Digest;

use super::html::{self, Shown};
use crate::http::{RegistryError, blobs};

/// Nothing runs and nothing is fetched but our own style and icon, whatever a page shows.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// A page, or word that the browser has it already.
pub(super) fn page(head: &Parts, page: Markup) -> Response {
    file(head, "text/html; charset=utf-8", page.into_string())
}

/// A file, or word that the browser has it already. It has to ask each time: pages change with every push.
pub(super) fn file(head: &Parts, kind: &'static str, content: impl Into<String>) -> Response {
    let content = content.into();
    let digest = Digest::sha256(content.as_bytes());
    let mut response = if blobs::is_known(&head.headers, &digest) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        content.into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, blobs::etag(&digest));
    describe(&mut response, kind);
    response
}

/// Why there is no page, with the status that clients would get.
pub(in crate::http) fn refused(error: RegistryError) -> Response {
    let reasons = error.messages();
    let mut response = error.answer();
    let status = response.status();
    let title = status.canonical_reason().unwrap_or("Error");
    let text = html::bare(
        title,
        &html! {
            h1 { (title) }
            @for reason in &reasons { p { (Shown(reason)) } }
            p { a href=(super::ROOT) { "All repositories" } }
        },
    );
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    *response.body_mut() = text.into_string().into();
    describe(&mut response, "text/html; charset=utf-8");
    response
}

fn describe(response: &mut Response, kind: &'static str) {
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
