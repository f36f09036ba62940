//! Pages of all catalogs and of one catalog's packages.

use std::collections::BTreeMap;

use catalog::PACKAGE;
use catalog::schema::{BUNDLE, CHANNEL};
use maud::{Markup, html};
use service::page::{Shown, table};

use super::document::{PageResult, document};
use super::route::PageRoute;
use crate::http::app::{HttpApp, ListedCatalog};

/// Most packages listed; large catalogs have some hundreds.
const LIMIT: usize = 2000;
/// Longest search text. Units: characters.
const SEARCH_LIMIT: usize = 255;

pub(super) fn catalogs(app: &HttpApp) -> Markup {
    let (waiting, ailing) = (app.0.health.waiting(), app.0.health.ailing());
    let row = |listed: &ListedCatalog| {
        let cache = listed.catalog.current();
        let why = waiting
            .get(&listed.name)
            .or_else(|| ailing.get(&listed.name));
        html! {
            th.name scope="row" {
                @if cache.is_some() { a href=(PageRoute::Catalog(&listed.name).path()) { (listed.name) } }
                @else { (listed.name) }
            }
            td.text { (Shown(&listed.source)) }
            @match cache {
                Some(cache) => {
                    td.number { (cache.package_count()) }
                    td.number { (cache.channel_count()) }
                }
                None => { td {} td {} }
            }
            td.text { @if let Some(why) = why { (Shown(why)) } @else { "served" } }
        }
    };
    let rows: Vec<_> = app.0.catalogs.iter().map(row).collect();
    let heads = ["Catalog", "Source", "Packages", "Channels", "State"];
    let main = html! { div.panel { (table("Catalogs", &heads, &rows, 0)) } };
    document("Catalogs", &[], &main)
}

/// Counts of a package.
#[derive(Default)]
struct Counts {
    channels: usize,
    bundles: usize,
}

pub(super) fn packages(app: &HttpApp, catalog: &str, wanted: &str) -> PageResult {
    let cache = app.cache(catalog)?;
    let text = wanted.to_lowercase();
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    for line in cache.lines().filter(|line| line.group().contains(&text)) {
        let counts = match line.schema {
            PACKAGE | CHANNEL | BUNDLE => counts.entry(line.group()).or_default(),
            _ => continue,
        };
        counts.channels += usize::from(line.schema == CHANNEL);
        counts.bundles += usize::from(line.schema == BUNDLE);
    }
    // Documents of packages that are not served are in the cache, too.
    counts.retain(|name, _| cache.package(name).is_some());
    let row = |(name, counts): (&&str, &Counts)| {
        html! {
            th.name scope="row" { a href=(PageRoute::Package(catalog, name).path()) { (Shown(name)) } }
            td.number { (counts.channels) }
            td.number { (counts.bundles) }
        }
    };
    let rows: Vec<_> = counts.iter().take(LIMIT).map(row).collect();
    let left_out = counts.len() - rows.len();
    let heads = ["Package", "Channels", "Versions"];
    let main = html! {
        (search(catalog, wanted))
        @if rows.is_empty() {
            p.panel { @if wanted.is_empty() { "The catalog is empty." } @else { "No package name matches." } }
        } @else {
            div.panel { (table("Packages", &heads, &rows, left_out)) }
        }
    };
    Ok(document(catalog, &[PageRoute::Catalogs], &main))
}

fn search(catalog: &str, wanted: &str) -> Markup {
    html! {
        form.search role="search" action=(PageRoute::Catalog(catalog).path()) {
            label for="q" { "Name contains" }
            input #q type="search" name="q" value=(wanted) autocomplete="off" spellcheck="false" maxlength=(SEARCH_LIMIT);
            button type="submit" { "Search" }
        }
    }
}
