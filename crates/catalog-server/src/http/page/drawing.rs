//! SVG of an upgrade graph: one row per entry, the head on top; solid arcs for replaces, dashed ones for skips.

use std::collections::HashMap;

use catalog::content::PackageModel;
use catalog::schema::ChannelEntry;
use maud::{Markup, html};
use service::page::Shown;

/// Most entries drawn; more would be unreadable.
const LIMIT: usize = 100;
/// Units: pixels.
const ROW: usize = 28;
const MARGIN: usize = 20;
/// Left edge of names; arcs are left of it. Units: pixels.
const NAMES: usize = 140;
/// Bend of an arc per row that it passes, and its maximum. Units: pixels.
const BEND: usize = 8;
const BEND_LIMIT: usize = 110;

pub(super) fn graph(package: &PackageModel<'_>, entries: &[&ChannelEntry<'_>]) -> Markup {
    let shown = &entries[..entries.len().min(LIMIT)];
    let rows: HashMap<&str, usize> = shown
        .iter()
        .enumerate()
        .map(|(row, entry)| (&*entry.name, row))
        .collect();
    let height = 2 * MARGIN + ROW * shown.len().saturating_sub(1);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Upgrade graph" {
            svg width="700" height=(height) role="img" aria-label="Each entry leads to what it replaces or skips" {
                @for (row, entry) in shown.iter().enumerate() {
                    @for skip in &entry.skips { (edge(row, rows.get(&**skip), true)) }
                    (edge(row, rows.get(&*entry.replaces), false))
                }
                @for (row, entry) in shown.iter().enumerate() {
                    circle cx=(NAMES - MARGIN) cy=(height_of(row)) r="6" fill="currentColor" {}
                    text x=(NAMES) y=(height_of(row) + 5) fill="currentColor" font-size="14" {
                        @if let Some(bundle) = package.bundle(&entry.name) { (Shown(&bundle.version_text)) " · " }
                        (Shown(&entry.name))
                    }
                }
            }
        }
        @if shown.len() < entries.len() { p.muted { (entries.len() - shown.len()) " more are not drawn" } }
    }
}

fn height_of(row: usize) -> usize {
    MARGIN + ROW * row
}

fn edge(from: usize, to: Option<&usize>, is_skip: bool) -> Markup {
    let Some(&to) = to.filter(|to| **to != from) else {
        return html! {};
    };
    let (x, first, last) = (NAMES - MARGIN, height_of(from), height_of(to));
    let passed = from.abs_diff(to);
    let bend = if passed == 1 && !is_skip {
        0
    } else {
        (BEND * (passed + 1)).min(BEND_LIMIT)
    };
    let left = x - bend;
    let path = format!("M {x} {first} C {left} {first} {left} {last} {x} {last}");
    html! {
        @if is_skip { path d=(path) fill="none" stroke="currentColor" stroke-opacity="0.5" stroke-dasharray="4 3" {} }
        @else { path d=(path) fill="none" stroke="currentColor" {} }
    }
}
