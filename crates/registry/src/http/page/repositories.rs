//! Every repository, page by page.

use blob_store::ContentStore as _;
use maud::{Markup, html};
use oci::Repository;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use service::page;

use super::html;
use super::route::{View, parameter};
use super::visit::{Page, ROOT, Visit};
use crate::http::lists;

/// Repositories of a page: each one's content is counted.
const PAGE_LIMIT: usize = 50;

pub(super) async fn page(visit: Visit<'_>) -> Page {
    let uri = &visit.head.uri;
    let (wanted, after) = (parameter(uri, "q"), parameter(uri, "last"));
    let text = wanted.to_lowercase();
    let limit = PAGE_LIMIT + 1;
    let fits = |name: &Repository| name.as_str().contains(&text);
    let names = lists::visible(visit.store, visit.access, after.clone(), limit, fits).await?;
    let shown = &names[..names.len().min(PAGE_LIMIT)];
    let mut rows = Vec::new();
    for name in shown {
        let usage = visit.store.usage(name).await?;
        rows.push(html! {
            th.name scope="row" { a href=(View::Repository(name.clone()).path()) { (name) } }
            td.number { (usage.tags) }
            td.number { (usage.manifests) }
            td.number { (page::bytes(usage.bytes)) }
        });
    }
    let next = shown.last().filter(|_| names.len() > shown.len());
    let main = html! {
        (search(&wanted))
        @if rows.is_empty() {
            p.panel { @if wanted.is_empty() { "Nothing was pushed here yet." } @else { "No repository has that in its name." } }
        } @else {
            div.panel { (page::table("Repositories", &["Name", "Tags", "Manifests", "Size"], &rows, 0)) }
        }
        (pages(&after, next.map(Repository::as_str), &wanted, ROOT))
    };
    Ok(html::document(visit, "Repositories", &[], &main))
}

fn search(wanted: &str) -> Markup {
    html! {
        form.search role="search" action=(ROOT) {
            label for="q" { "Name contains" }
            input #q type="search" name="q" value=(wanted) autocomplete="off" spellcheck="false" maxlength="255";
            button type="submit" { "Search" }
        }
    }
}

/// The ways to the first page and to the one after `next`.
pub(super) fn pages(after: &str, next: Option<&str>, wanted: &str, path: &str) -> Markup {
    let address = |last: &str| {
        let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
        let query = [("q", wanted), ("last", last)];
        let query = query.into_iter().filter(|(_, value)| !value.is_empty());
        let query: Vec<_> = query
            .map(|(name, value)| format!("{name}={}", encode(value)))
            .collect();
        format!("{path}?{}", query.join("&"))
    };
    html! {
        @if !after.is_empty() || next.is_some() {
            nav.pages aria-label="Pages" {
                @if !after.is_empty() { a href=(address("")) { "First page" } }
                @if let Some(next) = next { a rel="next" href=(address(next)) { "Next page" } }
            }
        }
    }
}
