//! One manifest: summary, pull command, content, referrers.

use blob_store::ContentStore as _;
use maud::{Markup, html};
use oci::Referrer;
use oci::{Digest, Kind, Manifest, Repository, Tag, Target};
use service::page::{self, ROWS_LIMIT, Shown, section};

use super::route::{self, View};
use super::visit::{Page, Visit};
use super::{blob, config, contents, describe, html, tags};

pub(super) async fn page(visit: Visit<'_>, name: &Repository, target: &Target) -> Page {
    let store = visit.store;
    let digest = match target {
        Target::Digest(digest) => digest.clone(),
        Target::Tag(tag) => store.resolve_tag(name, tag).await?,
    };
    let manifest = store.manifest(name, &digest).await?;
    let tags = tags::at(store, name, &manifest).await?;
    let config = config::read(store, name, &manifest).await?;
    let summary = describe::summary(store, name, &manifest).await?;
    let mut referrers = store.referrers(name, &digest).await?;
    let left_out = referrers.len().saturating_sub(ROWS_LIMIT);
    referrers.truncate(ROWS_LIMIT);
    let fallback = tags::fallback(store, name, &manifest).await?;
    let indexes = store.needed_by(name, &digest).await?;
    let main = html! {
        (section("Manifest", &overview(name, &manifest, &digest, &summary, &tags)))
        (section("Pull", &commands(&visit.origin(), name, target)))
        @match &manifest.kind {
            Kind::Index { .. } => (contents::index(store, name, &manifest).await?),
            Kind::Image { config: its, layers } => {
                (contents::configuration(name, its, config.as_ref()))
                (contents::layers(name, layers, config.as_ref().and_then(|config| config.as_ref().ok())))
            }
            Kind::Schema1 { layers, .. } => {
                (contents::layers(name, &describe::sized(store, name, layers).await?, None))
            }
        }
        @if let Some(notes) = manifest.annotations.as_ref().filter(|notes| !notes.is_empty()) {
            (html::texts("Annotations", notes.iter()))
        }
        @if !indexes.is_empty() { (section("Part of", &blob::manifests(name, &indexes))) }
        (section("Referrers", &self::referrers(name, &referrers, left_out, &fallback)))
    };
    let title = match target {
        Target::Tag(tag) => format!("{name}:{tag}"),
        Target::Digest(digest) => format!("{name}@{}", html::short(digest)),
    };
    let way = [View::Repositories, View::Repository(name.clone())];
    Ok(html::document(visit, &title, &way, &main))
}

fn overview(
    name: &Repository,
    manifest: &Manifest,
    digest: &Digest,
    summary: &describe::Summary,
    tags: &[Tag],
) -> Markup {
    let mut pairs = vec![
        ("Digest", html! { code.whole { (digest) } }),
        ("Kind", html! { (Shown(&summary.kind)) }),
        ("Media type", html! { code { (manifest.media_type) } }),
    ];
    if *digest != manifest.digest {
        pairs.push(("SHA-256", html! { code.whole { (manifest.digest) } }));
    }
    if !summary.platforms.is_empty() {
        pairs.push((
            "Platforms",
            html! { (Shown(&summary.platforms.join(", "))) },
        ));
    }
    pairs.push((
        "Size",
        html! { (page::bytes(summary.bytes)) " with its content" },
    ));
    if let Some(created) = summary.created {
        pairs.push(("Created", page::age(created, service::clock::now())));
    }
    pairs.push(("Tags", tag_links(name, tags)));
    if let Some(subject) = &manifest.subject {
        pairs.push((
            "Refers to",
            html! { (html::link(&subject.digest, &route::manifest(name, &subject.digest))) },
        ));
    }
    page::facts(&pairs)
}

fn tag_links(name: &Repository, tags: &[Tag]) -> Markup {
    html! {
        @if tags.is_empty() { "none" }
        @for (at, tag) in tags.iter().take(ROWS_LIMIT).enumerate() {
            @if at > 0 { ", " }
            a href=(View::Manifest(name.clone(), Target::Tag(tag.clone())).path()) { (tag) }
        }
        @if tags.len() > ROWS_LIMIT { " and " (tags.len() - ROWS_LIMIT) " more" }
    }
}

/// Names, digests and hosts hold nothing that a shell would take for its own.
fn commands(origin: &str, name: &Repository, target: &Target) -> Markup {
    let (scheme, host) = origin.split_once("://").unwrap_or(("https", origin));
    let is_plain = scheme == "http";
    let image = match target {
        Target::Tag(tag) => format!("{host}/{name}:{tag}"),
        Target::Digest(digest) => format!("{host}/{name}@{digest}"),
    };
    let option = |text: &'static str| if is_plain { text } else { "" };
    let folder = name.as_str().rsplit('/').next().unwrap_or_default();
    let lines = [
        (
            "podman",
            format!("podman pull {}{image}", option("--tls-verify=false ")),
        ),
        ("docker", format!("docker pull {image}")),
        (
            "skopeo",
            format!(
                "skopeo copy {}docker://{image} oci:{folder}",
                option("--src-tls-verify=false ")
            ),
        ),
        (
            "oras",
            format!("oras pull {}{image}", option("--plain-http ")),
        ),
    ];
    let lines = lines.map(|(tool, line)| (tool, html! { code.whole { (line) } }));
    page::facts(&lines)
}

fn referrers(
    name: &Repository,
    referrers: &[Referrer],
    left_out: usize,
    fallback: &[Tag],
) -> Markup {
    let rows: Vec<_> = referrers
        .iter()
        .map(|referrer| {
            let kind = referrer.artifact_type.as_deref();
            let notes = referrer.annotations.iter().flatten();
            html! {
                th scope="row" { (html::link(&referrer.digest, &route::manifest(name, &referrer.digest))) }
                td.text { (Shown(kind.unwrap_or(&referrer.media_type))) }
                td.number { (page::bytes(referrer.size)) }
                td.text {
                    @for (key, value) in notes.take(NOTES_LIMIT) { div { (Shown(key)) ": " (Shown(value)) } }
                }
            }
        })
        .collect();
    let heads = ["Digest", "Type", "Size", "Annotations"];
    html! {
        @if rows.is_empty() { p { "Nothing in this repository refers to the manifest." } }
        @else { (page::table("Referrers", &heads, &rows, left_out)) }
        @if !fallback.is_empty() { p { "By tag: " (tag_links(name, fallback)) } }
    }
}

/// Annotations of a referrer in the list; its own page has all.
const NOTES_LIMIT: usize = 4;
