//! Page of a bundle: images, provided and required APIs, dependencies.

use catalog::content::{Bundle, PackageModel};
use catalog::schema::Gvk;
use maud::{Markup, html};
use service::page::{ROWS_LIMIT, Shown, facts, section, table};

use super::document::{deprecated, document};
use super::route::PageRoute;

pub(super) fn page(catalog: &str, package: &PackageModel<'_>, bundle: &Bundle<'_>) -> Markup {
    let mut about = vec![
        ("Version", html! { (Shown(&bundle.version_text)) }),
        ("Channels", channels(catalog, package, bundle)),
    ];
    if !bundle.image.is_empty() {
        let image = html! { code.whole { (Shown(&bundle.image)) } };
        about.push(("Image", image));
    }
    if bundle.deprecation.is_some() {
        about.push(("State", deprecated(bundle.deprecation.as_deref())));
    }
    let main = html! {
        section.panel { (facts(&about)) }
        (images(bundle))
        (apis("Provided APIs", &bundle.provided_apis))
        (apis("Required APIs", &bundle.required_apis))
        (dependencies(bundle))
    };
    let breadcrumb = [
        PageRoute::Catalogs,
        PageRoute::Catalog(catalog),
        PageRoute::Package(catalog, package.name),
    ];
    document(bundle.name, &breadcrumb, &main)
}

fn channels(catalog: &str, package: &PackageModel<'_>, bundle: &Bundle<'_>) -> Markup {
    let channels = package.channels.iter();
    let channels = channels.filter(|channel| channel.entry(bundle.name).is_some());
    html! {
        @for channel in channels.take(ROWS_LIMIT) {
            a href=(PageRoute::Channel(catalog, package.name, channel.name).path()) { (Shown(channel.name)) } " "
        }
    }
}

/// Related images, which a mirror must have for an installation.
fn images(bundle: &Bundle<'_>) -> Markup {
    let all = &bundle.related_images;
    let rows: Vec<_> = all
        .iter()
        .take(ROWS_LIMIT)
        .map(|related| {
            html! {
                td.name { (Shown(&related.name)) }
                td { code.whole { (Shown(&related.image)) } }
            }
        })
        .collect();
    let left_out = all.len() - rows.len();
    listed("Required images", &["Name", "Image"], &rows, left_out)
}

fn apis(title: &str, all: &[Gvk<'_>]) -> Markup {
    let rows: Vec<_> = all
        .iter()
        .take(ROWS_LIMIT)
        .map(|api| {
            html! {
                td.name { (Shown(&api.kind)) }
                td { (Shown(&api.version)) }
                td { (Shown(&api.group)) }
            }
        })
        .collect();
    let left_out = all.len() - rows.len();
    listed(title, &["Kind", "Version", "Group"], &rows, left_out)
}

fn dependencies(bundle: &Bundle<'_>) -> Markup {
    let all = &bundle.dependencies;
    let rows: Vec<_> = all
        .iter()
        .take(ROWS_LIMIT)
        .map(|needed| {
            html! {
                td.name { (needed.kind) }
                td.text { (Shown(&needed.value)) }
            }
        })
        .collect();
    let left_out = all.len() - rows.len();
    listed("Dependencies", &["Type", "Value"], &rows, left_out)
}

/// A table section; nothing without rows.
fn listed(title: &str, heads: &[&str], rows: &[Markup], left_out: usize) -> Markup {
    html! { @if !rows.is_empty() { (section(title, &table(title, heads, rows, left_out))) } }
}
