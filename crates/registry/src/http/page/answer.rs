//! Refusals as pages.

use axum::http::header;
use axum::response::Response;
use maud::html;
use service::page::{Shown, describe};

use super::html;
use super::visit::ROOT;
use crate::error::RegistryError;

/// Why there is no page, with the status that clients would get.
pub(super) fn refused(error: RegistryError) -> Response {
    let reasons = error.messages();
    let mut response = error.answer();
    let status = response.status();
    let title = status.canonical_reason().unwrap_or("Error");
    let text = html::bare(
        title,
        &html! {
            h1 { (title) }
            @for reason in &reasons { p { (Shown(reason)) } }
            p { a href=(ROOT) { "All repositories" } }
        },
    );
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    *response.body_mut() = text.into_string().into();
    describe(&mut response, "text/html; charset=utf-8");
    response
}
