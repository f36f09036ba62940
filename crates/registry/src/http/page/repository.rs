//! One repository: its tags.

use blob_store::{ContentStore as _, StoreError};
use maud::{Markup, html};
use oci::{Digest, Repository, Tag, Target};
use service::page::{self, Shown};

use super::route::{self, View, parameter};
use super::visit::{Page, Visit};
use super::{describe, html, repositories};

/// Tags of a page: each one's manifest and configuration are read.
const PAGE_LIMIT: usize = 50;

pub(super) async fn page(visit: Visit<'_>, name: &Repository) -> Page {
    let store = visit.store;
    let after = parameter(&visit.head.uri, "last");
    let tags = store.tagged(name, &after, PAGE_LIMIT + 1).await?;
    let usage = store.usage(name).await?;
    let shown = &tags[..tags.len().min(PAGE_LIMIT)];
    let mut rows = Vec::new();
    for (tag, digest) in shown {
        rows.push(row(visit, name, tag, digest).await?);
    }
    let next = shown.last().filter(|_| tags.len() > shown.len());
    let path = View::Repository(name.clone()).path();
    let heads = [
        "Tag",
        "Digest",
        "Kind",
        "Platforms",
        "Size",
        "Created",
        "Referrers",
    ];
    let main = html! {
        p.lead {
            "Tags: " (usage.tags) ", manifests: " (usage.manifests) ", size: " (page::bytes(usage.bytes))
        }
        @if rows.is_empty() {
            p.panel { "No manifest has a tag here." }
        } @else {
            div.panel { (page::table("Tags", &heads, &rows, 0)) }
        }
        (repositories::pages(&after, next.map(|(tag, _)| tag.as_str()), "", &path))
    };
    let way = [View::Repositories];
    Ok(html::document(visit, name.as_str(), &way, &main))
}

async fn row(
    visit: Visit<'_>,
    name: &Repository,
    tag: &Tag,
    digest: &Digest,
) -> Result<Markup, StoreError> {
    let store = visit.store;
    let here = View::Manifest(name.clone(), Target::Tag(tag.clone())).path();
    let first = html! {
        th.name scope="row" { a href=(here) { (tag) } }
        td { (html::link(digest, &route::manifest(name, digest))) }
    };
    let manifest = match store.manifest(name, digest).await {
        Ok(manifest) => manifest,
        // Another request took it away meanwhile.
        Err(StoreError::UnknownManifest(_)) => {
            return Ok(html! { (first) td colspan="5" { "not here any more" } });
        }
        Err(error) => return Err(error),
    };
    let summary = describe::summary(visit.store, name, &manifest).await?;
    let referrers = store.referrers(name, digest).await?.len();
    let now = service::clock::now();
    Ok(html! {
        (first)
        td { (Shown(&summary.kind)) }
        td.text { (Shown(&summary.platforms.join(", "))) }
        td.number { (page::bytes(summary.bytes)) }
        td { @if let Some(created) = summary.created { (page::age(created, now)) } }
        td.number { (referrers) }
    })
}
