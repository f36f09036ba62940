//! One blob and its dependents.

use blob_store::{ContentStore as _, StoreError};
use maud::{Markup, html};
use oci::{Digest, Repository};
use service::page::{self, ROWS_LIMIT, section};

use super::html;
use super::route::{self, View};
use super::visit::{Page, Visit};
use crate::auth::Action;

pub(super) async fn page(visit: Visit<'_>, name: &Repository, digest: &Digest) -> Page {
    let size = visit.store.blob_size(name, digest).await?;
    let facts = [
        ("Digest", html! { code.whole { (digest) } }),
        ("Size", html! { (page::bytes(size)) " (" (size) " bytes)" }),
        (
            "Content",
            html! { a href={ (visit.origins.prefix) "/v2/" (name) "/blobs/" (digest) } download { "Download" } },
        ),
    ];
    let main = html! {
        (section("Blob", &page::facts(&facts)))
        (section("Repositories and manifests", &dependents(visit, digest).await?))
    };
    let way = [View::Repositories, View::Repository(name.clone())];
    let title = format!("Blob {}", html::short(digest));
    Ok(html::document(visit, &title, &way, &main))
}

/// Repositories that the visitor may not pull are left out.
async fn dependents(visit: Visit<'_>, digest: &Digest) -> Result<Markup, StoreError> {
    let mut holders = visit.store.holders(digest).await?;
    holders.retain(|name| visit.access.allows(name, Action::Pull));
    let mut rows = Vec::new();
    for name in holders.iter().take(ROWS_LIMIT) {
        let needed_by = visit.store.needed_by(name, digest).await?;
        rows.push(html! {
            th.name scope="row" { a href=(View::Repository(name.clone()).path()) { (name) } }
            td { (manifests(name, &needed_by)) }
        });
    }
    let left_out = holders.len().saturating_sub(ROWS_LIMIT);
    let heads = ["Repository", "Manifests that need it"];
    Ok(page::table("Dependents", &heads, &rows, left_out))
}

/// Links to manifests of a repository.
pub(super) fn manifests(name: &Repository, digests: &[Digest]) -> Markup {
    html! {
        @if digests.is_empty() { "none" }
        @for digest in digests.iter().take(ROWS_LIMIT) {
            (html::link(digest, &route::manifest(name, digest))) " "
        }
        @if digests.len() > ROWS_LIMIT { "and " (digests.len() - ROWS_LIMIT) " more" }
    }
}
