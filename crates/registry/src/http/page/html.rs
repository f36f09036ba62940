//! The frame around every page, refusals as pages, and how digests are written.

use axum::http::header;
use axum::response::Response;
use maud::{Markup, html};
use oci::Digest;
use service::page::{ROWS_LIMIT, Shown, Site, describe, framed, section, table};

use super::route::View;
use super::visit::{ROOT, Visit};
use crate::error::RegistryError;

/// Units: characters. Length of an abbreviated digest.
const SHORT_DIGEST: usize = 12;

/// The frame of every page.
const SITE: Site = Site {
    name: "Registry",
    root: ROOT,
};

/// A page of `main` below the way to it.
pub(super) fn document(visit: Visit, title: &str, way: &[View], main: &Markup) -> Markup {
    let top = html! {
        header.top {
            a.brand href=(View::Repositories.path()) {
                img src={ (ROOT) "icon.svg" } alt="" width="28" height="28";
                "Registry"
            }
            p.who {
                @if let Some(user) = visit.access.user() { "Logged in as " strong { (Shown(user)) } }
                @if visit.may_log_in { a href=(View::LogIn.path()) { "Log in" } }
            }
        }
    };
    let body = html! {
        @if !way.is_empty() {
            nav aria-label="Breadcrumb" {
                ol.way {
                    @for view in way { li { a href=(view.path()) { (step(view)) } } }
                }
            }
        }
        h1 { (title) }
        (main)
    };
    framed(&SITE, title, &top, &body)
}

/// A page without parts that depend on the visitor.
pub(super) fn bare(title: &str, main: &Markup) -> Markup {
    framed(&SITE, title, &html! {}, main)
}

fn step(view: &View) -> String {
    match view {
        View::Repository(name) => name.to_string(),
        _ => "Repositories".to_owned(),
    }
}

/// Names and values from pushed content.
pub(super) fn texts<'a>(
    caption: &str,
    pairs: impl ExactSizeIterator<Item = (&'a String, &'a String)>,
) -> Markup {
    let left_out = pairs.len().saturating_sub(ROWS_LIMIT);
    let rows: Vec<_> = pairs
        .take(ROWS_LIMIT)
        .map(|(name, value)| html! { th.name scope="row" { (Shown(name)) } td.text { (Shown(value)) } })
        .collect();
    section(
        caption,
        &table(caption, &["Name", "Value"], &rows, left_out),
    )
}

/// A digest that leads to `href`, shortened.
pub(super) fn link(digest: &Digest, href: &str) -> Markup {
    html! { a.digest href=(href) title=(digest) { (short(digest)) } }
}

/// An abbreviated digest.
pub(super) fn short(digest: &Digest) -> String {
    let hex = &digest.hex()[..SHORT_DIGEST];
    format!("{}:{hex}…", digest.algorithm().as_str())
}

/// Why there is no page, with the status that clients would get.
pub(super) fn refused(error: RegistryError) -> Response {
    let reasons = error.messages();
    let mut response = error.answer();
    let status = response.status();
    let title = status.canonical_reason().unwrap_or("Error");
    let text = bare(
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
