//! Parts of channels that are channels themselves.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Flaw, chain};
use crate::content::{Channel, Package};
use crate::schema::Entry;
use crate::version::Version;

/// Which versions are wanted; both ends belong to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bounds {
    pub min: Option<Version>,
    pub max: Option<Version>,
}

impl Bounds {
    /// Whether all versions are wanted.
    pub fn is_open(&self) -> bool {
        self.min.is_none() && self.max.is_none()
    }

    /// Whether that version is wanted.
    pub fn contain(&self, version: &Version) -> bool {
        self.min.as_ref().is_none_or(|min| version >= min)
            && self.max.as_ref().is_none_or(|max| version <= max)
    }
}

/// The part of a channel that is kept. On its own it has one head, and nothing in it is stranded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Names, in order. Empty where nothing is wanted.
    pub entries: BTreeSet<String>,
    /// What was wanted and has no way to the others, in order.
    pub left_out: BTreeSet<String>,
}

/// Keeps what lies within bounds, and what leads through it: from the channel's head, or the newest wanted version where
/// there is an upper bound, down what each replaces to the last that is wanted.
pub fn keep(package: &Package<'_>, channel: &Channel<'_>, bounds: &Bounds) -> Kept {
    let versions = versions(package, channel);
    let is_wanted = |(_, version): &(&&str, &&Version)| bounds.contain(version);
    let wanted = versions.iter().filter(is_wanted).map(|(name, _)| *name);
    let wanted: HashSet<&str> = wanted.collect();
    let top = match bounds.max {
        Some(_) => newest(&versions, &mut wanted.iter().copied()),
        None => Some(&*channel.head().name),
    };
    top.map_or_else(Kept::default, |top| kept(channel, &versions, &wanted, top))
}

/// Keeps the bundles of these names, and what leads to them from the channel's head.
pub fn keep_named(package: &Package<'_>, channel: &Channel<'_>, names: &BTreeSet<String>) -> Kept {
    let versions = versions(package, channel);
    let wanted = versions
        .keys()
        .copied()
        .filter(|name| names.contains(*name));
    kept(channel, &versions, &wanted.collect(), &channel.head().name)
}

type Versions<'p> = HashMap<&'p str, &'p Version>;

fn versions<'p>(package: &'p Package<'_>, channel: &'p Channel<'_>) -> Versions<'p> {
    let entries = channel.entries.iter();
    entries
        .filter_map(|entry| Some((&*entry.name, &package.bundle(&entry.name)?.version)))
        .collect()
}

fn newest<'p>(versions: &Versions<'p>, names: &mut dyn Iterator<Item = &str>) -> Option<&'p str> {
    let versions = names.filter_map(|name| versions.get_key_value(name));
    let newest = versions.max_by_key(|(name, version)| (**version, **name));
    newest.map(|(name, _)| *name)
}

fn kept(channel: &Channel<'_>, versions: &Versions<'_>, wanted: &HashSet<&str>, top: &str) -> Kept {
    if wanted.is_empty() {
        return Kept::default();
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
    Kept {
        entries: names(&mut kept.iter()),
        left_out: names(&mut wanted.difference(&kept)),
    }
}

/// Whether these entries are a channel of their own. None are fine.
fn check(channel: &Channel<'_>, kept: &HashSet<&str>) -> Result<(), Flaw> {
    if kept.is_empty() {
        return Ok(());
    }
    let entries: Vec<Entry<'_>> = channel
        .entries
        .iter()
        .filter(|entry| kept.contains(&*entry.name))
        .cloned()
        .collect();
    chain(&entries).map(drop)
}

/// What each replaces, from the top down to the last that is wanted.
fn way<'p>(channel: &'p Channel<'_>, top: &str, wanted: &HashSet<&str>) -> HashSet<&'p str> {
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
