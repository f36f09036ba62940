//! Images that charts alone name.
//!
//! The peer renders its charts again when it reads an archive. Here they are the tags that nothing else selects: an archive has
//! the bytes of its own run's images alone, and charts name the others. The text of the charts has their registries.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use flate2::read::GzDecoder;
use model::Error;
use model::image_set::MirrorSelection;
use model::mirror_metadata::ImageType;
use oci::{Digest, Reference, Registry, Repository, Tag};

use super::selection::Selection;
use crate::archive::set::Set;
use crate::archive::v2_paths::CHARTS;
use crate::names;
use crate::platform::{COMPONENTS, RELEASES, graph_image_name};
use oci::artifact_tag;

/// Text of all charts of an archive. Units: bytes.
const TEXT_LIMIT_BYTES: u64 = 64 << 20;
/// Registry of images without one.
const DEFAULT_REGISTRY: &str = "docker.io";
/// Member of values with the registry of images whose repository is in another member.
const REGISTRY_MEMBER: &str = "registry:";

/// Adds the images that the charts of a configuration name.
///
/// Errors: Invalid – a malformed name; Internal – the archive cannot be read.
pub(super) fn add(selection: &mut Selection<'_>, mirror: &MirrorSelection) -> Result<(), Error> {
    if mirror.helm.repositories.is_empty() && mirror.helm.local.is_empty() {
        return Ok(());
    }
    let text = ChartText::of(selection.set);
    let mut others: BTreeSet<Repository> = [
        RELEASES.parse()?,
        COMPONENTS.parse()?,
        graph_image_name()?.0,
    ]
    .into();
    for operator in &mirror.operators {
        others.insert(names::v2::catalog_repository(operator)?);
    }
    let images = selection.images.iter();
    let selected = images.map(|it| (it.wanted.repository.clone(), it.wanted.tag.clone()));
    let selected: BTreeSet<(Repository, Tag)> = selected.collect();
    let tree = selection.tree;
    let mut registries: BTreeMap<&Repository, Option<String>> = BTreeMap::new();
    for ((repository, tag), digest) in tree.tags() {
        let is_attached =
            tag.as_str().contains('.') && artifact_tag::subject(tag.as_str()).is_some();
        let is_other = others.contains(repository) || is_attached;
        let name = (repository.clone(), tag.clone());
        if is_other || selected.contains(&name) {
            continue;
        }
        let registry = registries
            .entry(repository)
            .or_insert_with(|| text.registry_of(repository))
            .clone();
        // A previous archive has the bytes of images that charts still name.
        let is_named = registry.is_some() && text.has_version(tag, digest);
        let is_kept = is_named && selection.set.previous_blobs().contains_key(digest);
        if !is_kept && selection.set.blob(digest).is_none() {
            continue;
        }
        let is_pinned = *tag == names::v2::tag_of_digest(digest);
        let source = Reference {
            registry: Registry::Host(registry.unwrap_or_else(|| DEFAULT_REGISTRY.to_owned())),
            repository: repository.clone(),
            tag: (!is_pinned).then(|| tag.clone()),
            digest: is_pinned.then(|| digest.clone()),
        };
        selection.add(name, source, ImageType::HelmImage);
    }
    Ok(())
}

/// The files of all charts, one after the other.
struct ChartText(String);

impl ChartText {
    /// Blocking. Charts that cannot be read are left out: the registry of their images is unknown then.
    fn of(set: &Set) -> Self {
        let mut text = Vec::new();
        for (_, place) in set.below(CHARTS) {
            let Ok(file) = place.open() else {
                continue;
            };
            let limit = TEXT_LIMIT_BYTES.saturating_sub(text.len() as u64);
            let mut unpacked = tar::Archive::new(GzDecoder::new(file).take(limit));
            let entries = unpacked.entries().into_iter().flatten();
            for mut entry in entries.map_while(Result::ok) {
                if entry.read_to_end(&mut text).is_err() {
                    break;
                }
                text.push(b'\n');
            }
        }
        Self(String::from_utf8_lossy(&text).into_owned())
    }

    /// Whether the charts name that tag, or that digest.
    fn has_version(&self, tag: &Tag, digest: &Digest) -> bool {
        [tag.as_str(), digest.hex()]
            .iter()
            .any(|it| self.0.contains(it))
    }

    /// The registry of a repository: before its name, or in the only value of another member. None where the charts do not
    /// name it.
    fn registry_of(&self, repository: &Repository) -> Option<String> {
        let text = self.0.as_str();
        let named = text
            .match_indices(repository.as_str())
            .filter(|(at, name)| {
                let next = text[at + name.len()..].chars().next();
                !next.is_some_and(|it| it.is_ascii_alphanumeric() || "._-/".contains(it))
            });
        let mut is_named = false;
        for (at, _) in named {
            let before = &text[..at];
            let Some(before) = before.strip_suffix('/') else {
                let last = before.chars().next_back();
                is_named |=
                    !last.is_some_and(|it| it.is_ascii_alphanumeric() || "._-".contains(it));
                continue;
            };
            let is_of_host = |it: char| it.is_ascii_alphanumeric() || ".-:".contains(it);
            let host = before.rsplit(|it| !is_of_host(it)).next();
            if let Some(host) = host.filter(|host| is_host(host)) {
                return Some(host.to_owned());
            }
        }
        if !is_named {
            return None;
        }
        let values = text.lines().filter_map(|line| {
            let value = line.trim().strip_prefix(REGISTRY_MEMBER)?;
            let value = value.trim().trim_matches(['"', '\'']);
            is_host(value).then_some(value)
        });
        let values: BTreeSet<&str> = values.collect();
        let only = values.first().filter(|_| values.len() == 1);
        Some(only.map_or(DEFAULT_REGISTRY, |it| it).to_owned())
    }
}

/// Whether it is the host of a registry, rather than the first part of a repository.
fn is_host(text: &str) -> bool {
    let has_mark = text.contains(['.', ':']) || text == "localhost";
    has_mark && !text.starts_with(['.', ':', '-']) && !text.ends_with(['.', ':', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_found_in_the_text_of_charts() {
        for (text, expected) in [
            (
                "image: quay.example:5000/acme/tool:1\n",
                Some("quay.example:5000"),
            ),
            (
                "repository: \"quay.example/acme/tool\"\n",
                Some("quay.example"),
            ),
            (
                "registry: quay.example\nrepository: acme/tool\n",
                Some("quay.example"),
            ),
            ("image: acme/tool:1\n", Some("docker.io")),
            (
                "registry: a.example\nregistry: b.example\nrepository: acme/tool\n",
                Some("docker.io"),
            ),
            ("image: quay.example/acme/tool-x:1\n", None),
            ("image: quay.example/other/acme/tool:1\n", None),
            ("image: quay.example/xacme/tool:1\n", None),
            ("", None),
        ] {
            let repository = "acme/tool".parse().unwrap();
            let found = ChartText(text.to_owned()).registry_of(&repository);
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
