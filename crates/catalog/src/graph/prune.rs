//! Parts of channels that are valid channels themselves.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Flaw, chain_to};
use crate::content::{ChannelModel, PackageModel};
use crate::schema::ChannelEntry;
use crate::version::BundleVersion;

/// Minimum and maximum version, both inclusive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionBounds {
    pub min: Option<BundleVersion>,
    pub max: Option<BundleVersion>,
}

impl VersionBounds {
    /// Whether there is no bound.
    pub fn is_open(&self) -> bool {
        self.min.is_none() && self.max.is_none()
    }

    /// Whether `version` is within the bounds.
    pub fn contain(&self, version: &BundleVersion) -> bool {
        self.min.as_ref().is_none_or(|min| version >= min)
            && self.max.as_ref().is_none_or(|max| version <= max)
    }
}

/// Kept part of a channel: it has one head and no stranded entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptEntries {
    /// Sorted names.
    pub entries: BTreeSet<String>,
    /// Selected entries without an upgrade path to the others, sorted.
    pub left_out: BTreeSet<String>,
}

/// Keeps entries within `bounds` and those between them in the replaces chain, which starts at the channel's head, or
/// at the newest selected version when there is a maximum.
pub fn keep(
    package: &PackageModel<'_>,
    channel: &ChannelModel<'_>,
    bounds: &VersionBounds,
) -> KeptEntries {
    let versions = versions(package, channel);
    let is_selected = |(_, version): &(&&str, &&BundleVersion)| bounds.contain(version);
    let wanted = versions.iter().filter(is_selected).map(|(name, _)| *name);
    let wanted: HashSet<&str> = wanted.collect();
    let top = match bounds.max {
        Some(_) => newest(&versions, &mut wanted.iter().copied()),
        None => Some(&*channel.head().name),
    };
    top.map_or_else(KeptEntries::default, |top| {
        kept(channel, &versions, &wanted, top)
    })
}

/// Keeps the named bundles and the replaces chain from the channel's head to them.
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

/// Keeps the named bundles and every bundle that replaces them up to the channel's head; bundles that are only skipped
/// are not kept. From a skipped bundle the path starts at the first bundle that its chain and the head's share; without
/// one, at the lowest entry that skips it.
///
/// Source: oc-mirror v1, `fillUpgradeGraph`, which loses the head in that last case.
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
    let mut kept = replaces_chain(channel, top, wanted);
    kept.extend(wanted);
    while let Err(flaw) = check(channel, &kept) {
        match flaw {
            Flaw::Heads(heads) => {
                let best = newest(versions, &mut heads.iter().map(String::as_str));
                kept.retain(|name| Some(*name) == best || !heads.iter().any(|head| head == name));
            }
            Flaw::Stranded(names) => kept.retain(|name| !names.iter().any(|n| n == name)),
            // Only skipped entries can form a cycle, and here it would be the whole channel.
            Flaw::NoHead | Flaw::Cycle(_) => kept.clear(),
        }
    }
    let names = |names: &mut dyn Iterator<Item = &&str>| names.map(ToString::to_string).collect();
    KeptEntries {
        entries: names(&mut kept.iter()),
        left_out: names(&mut wanted.difference(&kept)),
    }
}

/// Checks that the kept entries are a valid channel; none are valid, too.
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

/// `start`, `head`, and the entries between them.
fn upwards<'p>(channel: &'p ChannelModel<'_>, start: &'p str, head: &'p str) -> HashSet<&'p str> {
    let (below, chain) = (downwards(channel, start), downwards(channel, head));
    let mut found = HashSet::from([start, head]);
    let Some(meeting) = chain.iter().find(|name| below.contains(name)) else {
        let skips = |name: &&str| {
            let entry = channel.entry(name);
            entry.is_some_and(|entry| entry.skips.iter().any(|it| it == start))
        };
        let lowest = chain.iter().rposition(skips);
        found.extend(chain.iter().take(lowest.map_or(0, |lowest| lowest + 1)));
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

/// The replaces chain from an entry; its last name may not exist in the channel.
fn downwards<'p>(channel: &'p ChannelModel<'_>, from: &'p str) -> Vec<&'p str> {
    let (mut chain, mut next) = (Vec::new(), from);
    while !next.is_empty() && !chain.contains(&next) {
        chain.push(next);
        next = channel.entry(next).map_or("", |entry| &entry.replaces);
    }
    chain
}

/// The replaces chain from `top` down to the last selected entry.
fn replaces_chain<'p>(
    channel: &'p ChannelModel<'_>,
    top: &str,
    wanted: &HashSet<&str>,
) -> HashSet<&'p str> {
    let mut chain: Vec<&str> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut next = channel.entry(top);
    while let Some(entry) = next
        && seen.insert(&entry.name)
    {
        chain.push(&entry.name);
        next = channel.entry(&entry.replaces);
    }
    let last = chain.iter().rposition(|name| wanted.contains(name));
    chain.truncate(last.map_or(0, |last| last + 1));
    chain.into_iter().collect()
}
