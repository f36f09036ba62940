//! A channel: the ways through it, from the head down.

use catalog::content::{ChannelModel, PackageModel};
use catalog::graph;
use catalog::schema::ChannelEntry;
use maud::{Markup, html};
use service::page::{ROWS_LIMIT, Shown, facts, section, table};

use super::package::bundle;
use super::route::PageRoute;
use super::{deprecated, document, drawing};

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
    let way = [
        PageRoute::Catalogs,
        PageRoute::Catalog(catalog),
        PageRoute::Package(catalog, package.name),
    ];
    document(channel.name, &way, &main)
}

/// Along the way of replacements; then, the newest first, what is skipped.
fn ordered<'a>(channel: &'a ChannelModel<'_>) -> Vec<&'a ChannelEntry<'a>> {
    let way = graph::chain(&channel.entries).unwrap_or_default();
    let mut is_on_it = vec![false; channel.entries.len()];
    for index in &way {
        is_on_it[*index] = true;
    }
    let skipped = (0..channel.entries.len()).rev();
    let skipped = skipped.filter(|index| !is_on_it[*index]);
    way.iter()
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
    let heads = ["Version", "Bundle", "Replaces", "Skips", "Skips the range"];
    let left_out = entries.len() - rows.len();
    section("Entries", &table("Entries", &heads, &rows, left_out))
}
