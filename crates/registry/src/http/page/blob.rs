//! One blob.

use maud::html;
use oci::store::BlobStore as _;
use oci::{Digest, Repository};

use super::html::section;
use super::route::View;
use super::{Page, Visit, html};

pub(super) async fn page(visit: Visit<'_>, name: &Repository, digest: &Digest) -> Page {
    let size = visit.app.store.blob_size(name, digest).await?;
    let facts = [
        ("Digest", html! { code.whole { (digest) } }),
        ("Size", html! { (html::bytes(size)) " (" (size) " bytes)" }),
        (
            "Content",
            html! { a href={ (visit.app.prefix) "/v2/" (name) "/blobs/" (digest) } download { "Download" } },
        ),
    ];
    let main = html! { (section("Blob", &html::facts(&facts))) };
    let way = [View::Repositories, View::Repository(name.clone())];
    let title = format!("Blob {}", html::short(digest));
    Ok(html::document(visit, &title, &way, &main))
}
