//! Which tags and manifests of a repository no rule keeps: a pure decision.
//!
//! Retained content retains its dependents: an index its manifests, a manifest its referrers.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use model::time::Timestamp;
use oci::{Digest, Tag};

use super::{KeepTags, Rules, Span};

/// A tag, as rules look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tagged {
    pub(super) tag: Tag,
    /// The SHA-256 of its manifest.
    pub(super) digest: Digest,
    pub(super) pushed_at: Timestamp,
    pub(super) pulled_at: Timestamp,
    /// Whether the operator wants it to stay where it is.
    pub(super) is_immutable: bool,
}

/// A manifest, as rules look at it. All digests are SHA-256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) digest: Digest,
    pub(super) pushed_at: Timestamp,
    /// The manifests of an index.
    pub(super) children: Vec<Digest>,
    pub(super) subject: Option<Digest>,
}

/// Expired content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decision<'a> {
    pub(super) tags: Vec<&'a Tagged>,
    /// Indexes before their manifests, and subjects before their referrers, as far as these do not
    /// stand in a circle.
    pub(super) manifests: Vec<&'a Held>,
}

/// Content of a repository that no rule retains, apart from content younger than `delay`.
pub(super) fn decide<'a>(
    rules: &Rules,
    delay: Span,
    tags: &'a [Tagged],
    manifests: &'a [Held],
    now: Timestamp,
) -> Decision<'a> {
    let is_young = |pushed_at: Timestamp| pushed_at > now - delay.0;
    let by_rules = kept_by_rules(&rules.keep_tags, tags, now);
    let mut kept_tags: HashSet<&Tag> = tags
        .iter()
        .filter(|tagged| {
            tagged.is_immutable
                || is_young(tagged.pushed_at)
                || by_rules.contains(&tagged.tag)
                || !rules.delete_referrers && subject_of(&tagged.tag).is_some()
        })
        .map(|tagged| &tagged.tag)
        .collect();
    let mut kept = Kept::new(manifests);
    let tagged: HashSet<&Digest> = tags.iter().map(|tagged| &tagged.digest).collect();
    for manifest in manifests {
        let is_alone = !tagged.contains(&manifest.digest)
            && !kept.is_child(&manifest.digest)
            && manifest.subject.is_none();
        if is_young(manifest.pushed_at)
            || is_alone && !rules.delete_untagged
            || manifest.subject.is_some() && !rules.delete_referrers
        {
            kept.keep(&manifest.digest);
        }
    }
    loop {
        for tagged in tags {
            if kept_tags.contains(&tagged.tag) {
                kept.keep(&tagged.digest);
            }
        }
        let of_kept = tags.iter().filter(|tagged| {
            !kept_tags.contains(&tagged.tag)
                && subject_of(&tagged.tag).is_some_and(|subject| kept.contains(&subject))
        });
        let of_kept: Vec<_> = of_kept.map(|tagged| &tagged.tag).collect();
        if of_kept.is_empty() {
            break;
        }
        kept_tags.extend(of_kept);
    }
    let mut going: Vec<_> = manifests
        .iter()
        .filter(|manifest| !kept.contains(&manifest.digest))
        .collect();
    going.sort_by_key(|manifest| (manifest.subject.is_some(), manifest.children.is_empty()));
    Decision {
        tags: tags
            .iter()
            .filter(|tagged| !kept_tags.contains(&tagged.tag))
            .collect(),
        manifests: going,
    }
}

fn kept_by_rules<'a>(rules: &[KeepTags], tags: &'a [Tagged], now: Timestamp) -> HashSet<&'a Tag> {
    if rules.is_empty() {
        return tags.iter().map(|tagged| &tagged.tag).collect();
    }
    rules
        .iter()
        .flat_map(|keep| kept_by(keep, tags, now))
        .map(|tagged| &tagged.tag)
        .collect()
}

fn kept_by<'a>(keep: &KeepTags, tags: &'a [Tagged], now: Timestamp) -> Vec<&'a Tagged> {
    let matching: Vec<_> = tags
        .iter()
        .filter(|tagged| {
            let mut patterns = keep.patterns.iter();
            keep.patterns.is_empty() || patterns.any(|pattern| pattern.matches(&tagged.tag))
        })
        // Tags of the referrers scheme stay with their subject.
        .filter(|tagged| subject_of(&tagged.tag).is_none())
        .collect();
    let KeepTags {
        most_recently_pushed_count: pushed_count,
        most_recently_pulled_count: pulled_count,
        pushed_within,
        pulled_within,
        ..
    } = keep;
    let is_unconditional = pushed_count.is_none()
        && pulled_count.is_none()
        && pushed_within.is_none()
        && pulled_within.is_none();
    if is_unconditional {
        return matching;
    }
    let latest = |count: Option<usize>, at: fn(&Tagged) -> Timestamp| {
        let mut sorted = matching.clone();
        sorted.sort_by_key(|tagged| (Reverse(at(tagged)), &tagged.tag));
        sorted.truncate(count.unwrap_or_default());
        sorted
    };
    let since = |span: Option<Span>, at: fn(&Tagged) -> Timestamp| {
        let matching = matching.iter().copied();
        matching.filter(move |tagged| span.is_some_and(|span| at(tagged) >= now - span.0))
    };
    let pushed = |tagged: &Tagged| tagged.pushed_at;
    let pulled = |tagged: &Tagged| tagged.pulled_at;
    latest(*pushed_count, pushed)
        .into_iter()
        .chain(latest(*pulled_count, pulled))
        .chain(since(*pushed_within, pushed))
        .chain(since(*pulled_within, pulled))
        .collect()
}

/// The subject in a tag's name, as in `sha256-<hex>` and `sha256-<hex>.sig`. Source: distribution-spec,
/// referrers tag schema; cosign.
fn subject_of(tag: &Tag) -> Option<Digest> {
    let (algorithm, rest) = tag.as_str().split_once('-')?;
    let hex = rest.split_once('.').map_or(rest, |(hex, _)| hex);
    format!("{algorithm}:{hex}").parse().ok()
}

/// The retained manifests, closed over their dependents.
struct Kept<'a> {
    manifests: HashMap<&'a Digest, &'a Held>,
    referrers: HashMap<&'a Digest, Vec<&'a Digest>>,
    children: HashSet<&'a Digest>,
    digests: HashSet<&'a Digest>,
}

impl<'a> Kept<'a> {
    fn new(manifests: &'a [Held]) -> Self {
        let mut referrers: HashMap<_, Vec<_>> = HashMap::new();
        for manifest in manifests {
            if let Some(subject) = &manifest.subject {
                referrers.entry(subject).or_default().push(&manifest.digest);
            }
        }
        Self {
            manifests: manifests.iter().map(|held| (&held.digest, held)).collect(),
            referrers,
            children: manifests.iter().flat_map(|held| &held.children).collect(),
            digests: HashSet::new(),
        }
    }

    fn contains(&self, digest: &Digest) -> bool {
        self.digests.contains(digest)
    }

    fn is_child(&self, digest: &Digest) -> bool {
        self.children.contains(digest)
    }

    fn keep(&mut self, digest: &Digest) {
        let mut open: Vec<_> = self
            .manifests
            .get_key_value(digest)
            .map(|(digest, _)| *digest)
            .into_iter()
            .collect();
        while let Some(digest) = open.pop() {
            let Some(manifest) = self.manifests.get(digest) else {
                continue;
            };
            if self.digests.insert(digest) {
                open.extend(&manifest.children);
                open.extend(self.referrers.get(digest).into_iter().flatten());
            }
        }
    }
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
