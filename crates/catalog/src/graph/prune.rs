//! Parts of channels that are channels themselves.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Flaw, chain_to};
use crate::content::{ChannelModel, PackageModel};
use crate::schema::ChannelEntry;
use crate::version::BundleVersion;

/// Which versions are wanted; both ends belong to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionBounds {
    pub min: Option<BundleVersion>,
    pub max: Option<BundleVersion>,
}

impl VersionBounds {
    /// Whether all versions are wanted.
    pub fn is_open(&self) -> bool {
        self.min.is_none() && self.max.is_none()
    }

    /// Whether that version is wanted.
    pub fn contain(&self, version: &BundleVersion) -> bool {
        self.min.as_ref().is_none_or(|min| version >= min)
            && self.max.as_ref().is_none_or(|max| version <= max)
    }
}

/// The part of a channel that is kept. On its own it has one head, and nothing in it is stranded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptEntries {
    /// Names, in order. Empty where nothing is wanted.
    pub entries: BTreeSet<String>,
    /// What was wanted and has no way to the others, in order.
    pub left_out: BTreeSet<String>,
}

/// Keeps what lies within bounds, and what leads through it: from the channel's head, or the newest wanted version where
/// there is an upper bound, down what each replaces to the last that is wanted.
pub fn keep(
    package: &PackageModel<'_>,
    channel: &ChannelModel<'_>,
    bounds: &VersionBounds,
) -> KeptEntries {
    let versions = versions(package, channel);
    let is_wanted = |(_, version): &(&&str, &&BundleVersion)| bounds.contain(version);
    let wanted = versions.iter().filter(is_wanted).map(|(name, _)| *name);
    let wanted: HashSet<&str> = wanted.collect();
    let top = match bounds.max {
        Some(_) => newest(&versions, &mut wanted.iter().copied()),
        None => Some(&*channel.head().name),
    };
    top.map_or_else(KeptEntries::default, |top| {
        kept(channel, &versions, &wanted, top)
    })
}

/// Keeps the bundles of these names, and what leads to them from the channel's head.
pub fn keep_named(
    package: &PackageModel<'_>,
    channel: &ChannelModel<'_>,
    names: &BTreeSet<String>,
) -> KeptEntries {
    let versions = versions(package, channel);
    let wanted = versions
        .keys()
        .copied()
        .filter(|name| names.contains(*name));
    kept(channel, &versions, &wanted.collect(), &channel.head().name)
}

/// Keeps the bundles of these names, and all that replace them, one after the other, up to the channel's head. What is only
/// skipped on the way is not kept. From a bundle that is itself skipped, the way begins at what it and the head's way both
/// replace; where they have nothing in common, at the lowest entry that skips it.
///
/// Source: the peer's v1, `fillUpgradeGraph`, which forgets the head in that last case.
pub fn keep_from(
    package: &PackageModel<'_>,
    channel: &ChannelModel<'_>,
    names: &BTreeSet<String>,
) -> KeptEntries {
    let versions = versions(package, channel);
    let head = &*channel.head().name;
    let starts: Vec<&str> = versions
        .keys()
        .copied()
        .filter(|name| names.contains(*name))
        .collect();
    let from = starts
        .iter()
        .flat_map(|start| upwards(channel, start, head));
    kept(channel, &versions, &from.collect(), head)
}

type VersionsByName<'p> = HashMap<&'p str, &'p BundleVersion>;

fn versions<'p>(
    package: &'p PackageModel<'_>,
    channel: &'p ChannelModel<'_>,
) -> VersionsByName<'p> {
    let entries = channel.entries.iter();
    entries
        .filter_map(|entry| Some((&*entry.name, &package.bundle(&entry.name)?.version)))
        .collect()
}

fn newest<'p>(
    versions: &VersionsByName<'p>,
    names: &mut dyn Iterator<Item = &str>,
) -> Option<&'p str> {
    let versions = names.filter_map(|name| versions.get_key_value(name));
    let newest = versions.max_by_key(|(name, version)| (**version, **name));
    newest.map(|(name, _)| *name)
}

fn kept(
    channel: &ChannelModel<'_>,
    versions: &VersionsByName<'_>,
    wanted: &HashSet<&str>,
    top: &str,
) -> KeptEntries {
    if wanted.is_empty() {
        return KeptEntries::default();
    }
    let mut kept = way(channel, top, wanted);
    kept.extend(wanted);
    while let Err(flaw) = check(channel, &kept) {
        match flaw {
            Flaw::Heads(heads) => {
                let best = newest(versions, &mut heads.iter().map(String::as_str));
                kept.retain(|name| Some(*name) == best || !heads.iter().any(|head| head == name));
            }
            Flaw::Stranded(names) => kept.retain(|name| !names.iter().any(|n| n == name)),
            // Only what is skipped by others may lead back to itself, and here it would be alone.
            Flaw::NoHead | Flaw::Cycle(_) => kept.clear(),
        }
    }
    let names = |names: &mut dyn Iterator<Item = &&str>| names.map(ToString::to_string).collect();
    KeptEntries {
        entries: names(&mut kept.iter()),
        left_out: names(&mut wanted.difference(&kept)),
    }
}

/// Whether these entries are a channel of their own. None are fine.
fn check(channel: &ChannelModel<'_>, kept: &HashSet<&str>) -> Result<(), Flaw> {
    if kept.is_empty() {
        return Ok(());
    }
    let entries: Vec<ChannelEntry<'_>> = channel
        .entries
        .iter()
        .filter(|entry| kept.contains(&*entry.name))
        .cloned()
        .collect();
    chain_to(&entries, channel.chain_end()).map(drop)
}

/// The start, the head, and the entries between them.
fn upwards<'p>(channel: &'p ChannelModel<'_>, start: &'p str, head: &'p str) -> HashSet<&'p str> {
    let (below, way) = (downwards(channel, start), downwards(channel, head));
    let mut found = HashSet::from([start, head]);
    let Some(meeting) = way.iter().find(|name| below.contains(name)) else {
        let skips = |name: &&str| {
            let entry = channel.entry(name);
            entry.is_some_and(|entry| entry.skips.iter().any(|it| it == start))
        };
        let lowest = way.iter().rposition(skips);
        found.extend(way.iter().take(lowest.map_or(0, |lowest| lowest + 1)));
        return found;
    };
    let own = below.iter().take_while(|name| *name != meeting);
    let own: HashSet<&str> = own.copied().collect();
    let mut next = vec![*meeting];
    let mut seen = HashSet::from([*meeting]);
    while let Some(replaced) = next.pop() {
        let replacing = channel.entries.iter().filter(|it| it.replaces == replaced);
        for name in replacing.map(|it| &*it.name) {
            if seen.insert(name) {
                next.push(name);
                found.extend((!own.contains(name)).then_some(name));
            }
        }
    }
    found
}

/// An entry, what it replaces, and so on; at the end there may be a name that the channel does not have.
fn downwards<'p>(channel: &'p ChannelModel<'_>, from: &'p str) -> Vec<&'p str> {
    let (mut way, mut next) = (Vec::new(), from);
    while !next.is_empty() && !way.contains(&next) {
        way.push(next);
        next = channel.entry(next).map_or("", |entry| &entry.replaces);
    }
    way
}

/// What each replaces, from the top down to the last that is wanted.
fn way<'p>(channel: &'p ChannelModel<'_>, top: &str, wanted: &HashSet<&str>) -> HashSet<&'p str> {
    let mut way: Vec<&str> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut next = channel.entry(top);
    while let Some(entry) = next
        && seen.insert(&entry.name)
    {
        way.push(&entry.name);
        next = channel.entry(&entry.replaces);
    }
    let last = way.iter().rposition(|name| wanted.contains(name));
    way.truncate(last.map_or(0, |last| last + 1));
    way.into_iter().collect()
}
