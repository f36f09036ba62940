//! Content of a manifest.

use blob_store::{ContentStore as _, StoreError};
use maud::{Markup, html};
use oci::{Descriptor, Manifest, Repository};
use service::page::{self, ROWS_LIMIT, Shown, section};

use super::config::Config;
use super::describe::Index;
use super::html;
use super::route;
use crate::storage::Store;

/// The manifests of an index; which of them are here.
///
/// Errors: the store's.
pub(super) async fn index(
    store: &Store,
    name: &Repository,
    manifest: &Manifest,
) -> Result<Markup, StoreError> {
    let entries = Index::parse(manifest).manifests;
    let mut rows = Vec::new();
    for entry in entries.iter().take(ROWS_LIMIT) {
        let is_here = match store.manifest(name, &entry.digest).await {
            Ok(_) => true,
            Err(StoreError::UnknownManifest(_)) => false,
            Err(error) => return Err(error),
        };
        let href = route::manifest(name, &entry.digest);
        rows.push(html! {
            th scope="row" { (Shown(entry.platform().as_deref().unwrap_or("none"))) }
            td {
                @if is_here { (html::link(&entry.digest, &href)) }
                @else { span.digest title=(entry.digest) { (html::short(&entry.digest)) } " (not here)" }
            }
            td.text { (Shown(&entry.media_type)) }
            td.number { (page::bytes(entry.size)) }
        });
    }
    let heads = ["Platform", "Digest", "Media type", "Size of the manifest"];
    let left_out = entries.len().saturating_sub(ROWS_LIMIT);
    let table = page::table("Manifests of the index", &heads, &rows, left_out);
    Ok(section("Manifests", &table))
}

/// Configuration of an image.
pub(super) fn configuration(
    name: &Repository,
    blob: &Descriptor,
    config: Option<&Result<Config, String>>,
) -> Markup {
    let mut pairs = vec![
        (
            "Digest",
            html! { (html::link(&blob.digest, &route::blob(name, &blob.digest))) },
        ),
        ("Media type", html! { (Shown(&blob.media_type)) }),
        ("Size", html! { (page::bytes(blob.size)) }),
    ];
    let mut labels = None;
    match config {
        Some(Ok(config)) => {
            pairs.extend(settings(config));
            labels = config.run().and_then(|run| run.labels.as_ref());
        }
        Some(Err(reason)) => pairs.push(("Content", html! { (Shown(reason)) })),
        None => {}
    }
    html! {
        (section("Configuration", &page::facts(&pairs)))
        @if let Some(labels) = labels.filter(|labels| !labels.is_empty()) {
            (html::texts("Labels", labels.iter()))
        }
    }
}

fn settings(config: &Config) -> Vec<(&'static str, Markup)> {
    let mut pairs = Vec::new();
    let mut text = |name, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            pairs.push((name, html! { (Shown(value)) }));
        }
    };
    text("Platform", config.platform().as_deref());
    text("Author", config.author.as_deref());
    let Some(run) = config.run() else {
        return pairs;
    };
    text("User", run.user.as_deref());
    text("Working directory", run.working_dir.as_deref());
    let words = |words: &Option<Vec<String>>| {
        let words = words.iter().flatten().map(String::as_str).collect();
        list(words)
    };
    let lists = [
        ("Entrypoint", words(&run.entrypoint)),
        ("Command", words(&run.cmd)),
        ("Environment", list(run.variables())),
        ("Ports", list(run.ports())),
        ("Volumes", list(run.volumes())),
    ];
    pairs.extend(
        lists
            .into_iter()
            .filter_map(|(name, list)| Some((name, list?))),
    );
    pairs
}

fn list(words: Vec<&str>) -> Option<Markup> {
    let left_out = words.len().saturating_sub(ROWS_LIMIT);
    (!words.is_empty()).then(|| {
        html! {
            @for word in words.into_iter().take(ROWS_LIMIT) { code { (Shown(word)) } " " }
            @if left_out > 0 { "and " (left_out) " more" }
        }
    })
}

/// The layers of an image with the commands that made them, or the files of an artifact.
pub(super) fn layers(name: &Repository, layers: &[Descriptor], config: Option<&Config>) -> Markup {
    let commands = config.map_or_else(Vec::new, |config| config.commands(layers.len()));
    let rows: Vec<_> = layers
        .iter()
        .take(ROWS_LIMIT)
        .enumerate()
        .map(|(at, layer)| {
            let notes = layer.annotations.as_ref();
            let title = notes.and_then(|notes| notes.get("org.opencontainers.image.title"));
            let made_by = commands.get(at).copied().or(title.map(String::as_str));
            html! {
                th scope="row" { (at + 1) }
                td { (html::link(&layer.digest, &route::blob(name, &layer.digest))) }
                td.number { (page::bytes(layer.size)) }
                td.text { (Shown(&layer.media_type)) }
                td.text { @if let Some(made_by) = made_by { code { (Shown(made_by)) } } }
            }
        })
        .collect();
    let heads = ["No.", "Digest", "Size", "Media type", "Made by"];
    let left_out = layers.len().saturating_sub(ROWS_LIMIT);
    section("Layers", &page::table("Layers", &heads, &rows, left_out))
}
