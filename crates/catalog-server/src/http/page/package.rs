//! Page of a package: description, channels and versions.

use catalog::content::{Bundle, PackageModel};
use maud::{Markup, html};
use service::page::{ROWS_LIMIT, Shown, facts, section, table};

use super::document::{deprecated, document};
use super::route::PageRoute;

pub(super) fn page(catalog: &str, package: &PackageModel<'_>) -> Markup {
    let main = html! {
        section.panel { (facts(&about(package))) }
        (channels(catalog, package))
        (versions(catalog, package))
    };
    let breadcrumb = [PageRoute::Catalogs, PageRoute::Catalog(catalog)];
    document(package.name, &breadcrumb, &main)
}

fn about(package: &PackageModel<'_>) -> Vec<(&'static str, Markup)> {
    let mut pairs = vec![(
        "Default channel",
        html! { (Shown(&package.default_channel)) },
    )];
    if package.deprecation.is_some() {
        let why = package.deprecation.as_deref();
        pairs.push(("State", deprecated(why)));
    }
    if !package.description.is_empty() {
        let text = html! { div.text { (Shown(&package.description)) } };
        pairs.push(("Description", text));
    }
    pairs
}

fn channels(catalog: &str, package: &PackageModel<'_>) -> Markup {
    let row = |channel: &catalog::content::ChannelModel<'_>| {
        let head = &*channel.head().name;
        let path = PageRoute::Channel(catalog, package.name, channel.name).path();
        html! {
            th.name scope="row" { a href=(path) { (Shown(channel.name)) } }
            td { (bundle(catalog, package, head)) }
            td.number { (channel.entries.len()) }
            td { (deprecated(channel.deprecation.as_deref())) }
        }
    };
    let all = &package.channels;
    let rows: Vec<_> = all.iter().take(ROWS_LIMIT).map(row).collect();
    let heads = ["Channel", "Head", "Versions", "State"];
    let left_out = all.len() - rows.len();
    section("Channels", &table("Channels", &heads, &rows, left_out))
}

/// Versions, newest first.
fn versions(catalog: &str, package: &PackageModel<'_>) -> Markup {
    let mut all: Vec<&Bundle<'_>> = package.bundles.iter().collect();
    all.sort_by(|a, b| b.version.cmp(&a.version));
    let row = |shown: &&Bundle<'_>| {
        html! {
            td.name { (Shown(&shown.version_text)) }
            td { (bundle(catalog, package, shown.name)) }
            td.number { (shown.related_images.len()) }
            td { (deprecated(shown.deprecation.as_deref())) }
        }
    };
    let rows: Vec<_> = all.iter().take(ROWS_LIMIT).map(row).collect();
    let heads = ["Version", "Bundle", "Images", "State"];
    let left_out = all.len() - rows.len();
    section("Versions", &table("Versions", &heads, &rows, left_out))
}

/// Name of a bundle, linked if it exists.
pub(super) fn bundle(catalog: &str, package: &PackageModel<'_>, name: &str) -> Markup {
    html! {
        @if package.bundle(name).is_some() {
            a href=(PageRoute::Bundle(catalog, package.name, name).path()) { (Shown(name)) }
        } @else { (Shown(name)) }
    }
}
