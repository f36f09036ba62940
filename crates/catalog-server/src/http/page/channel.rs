//! Page of a channel: upgrade graph and entries, from the head down.

use catalog::content::{ChannelModel, PackageModel};
use catalog::graph;
use catalog::schema::ChannelEntry;
use maud::{Markup, html};
use service::page::{ROWS_LIMIT, Shown, facts, section, table};

use super::document::{deprecated, document};
use super::drawing;
use super::package::bundle;
use super::route::PageRoute;

pub(super) fn page(
    catalog: &str,
    package: &PackageModel<'_>,
    channel: &ChannelModel<'_>,
) -> Markup {
    let entries = ordered(channel);
    let head = bundle(catalog, package, &channel.head().name);
    let mut about = vec![("Head", head)];
    if channel.deprecation.is_some() {
        about.push(("State", deprecated(channel.deprecation.as_deref())));
    }
    let main = html! {
        section.panel { (facts(&about)) }
        (section("Upgrade graph", &drawing::graph(package, &entries)))
        (list(catalog, package, &entries))
    };
    let breadcrumb = [
        PageRoute::Catalogs,
        PageRoute::Catalog(catalog),
        PageRoute::Package(catalog, package.name),
    ];
    document(channel.name, &breadcrumb, &main)
}

/// Entries of the replaces chain, then skipped ones, newest first.
fn ordered<'a>(channel: &'a ChannelModel<'_>) -> Vec<&'a ChannelEntry<'a>> {
    let chain = graph::chain(&channel.entries).unwrap_or_default();
    let mut is_in_chain = vec![false; channel.entries.len()];
    for index in &chain {
        is_in_chain[*index] = true;
    }
    let skipped = (0..channel.entries.len()).rev();
    let skipped = skipped.filter(|index| !is_in_chain[*index]);
    chain
        .iter()
        .copied()
        .chain(skipped)
        .map(|index| &channel.entries[index])
        .collect()
}

fn list(catalog: &str, package: &PackageModel<'_>, entries: &[&ChannelEntry<'_>]) -> Markup {
    let row = |entry: &&ChannelEntry<'_>| {
        let version = package.bundle(&entry.name);
        html! {
            td.name { @if let Some(shown) = version { (Shown(&shown.version_text)) } }
            td { (bundle(catalog, package, &entry.name)) }
            td { (bundle(catalog, package, &entry.replaces)) }
            td.text { (Shown(&entry.skips.join(" "))) }
            td { (Shown(&entry.skip_range)) }
        }
    };
    let rows: Vec<_> = entries.iter().take(ROWS_LIMIT).map(row).collect();
    let heads = ["Version", "Bundle", "Replaces", "Skips", "Skip range"];
    let left_out = entries.len() - rows.len();
    section("Entries", &table("Entries", &heads, &rows, left_out))
}
