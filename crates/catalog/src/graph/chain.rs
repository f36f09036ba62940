//! The replaces chain of a channel, from its head down.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use crate::schema::ChannelEntry;

/// Invalid replaces chain. Names are sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// Every entry is replaced or skipped by another.
    NoHead,
    /// Several entries are neither replaced nor skipped.
    Heads(Vec<String>),
    /// The chain has a cycle.
    Cycle(Vec<String>),
    /// Entries that are neither in the chain nor skipped.
    Stranded(Vec<String>),
}

/// Rule for the end of the replaces chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChainEnd {
    /// Before an entry that any entry skips. Source: opm from 1.58 on.
    #[default]
    BeforeSkipped,
    /// At the last entry. Source: opm before 1.58.
    AtLast,
}

/// Index of the head: the entry that nothing replaces or skips.
///
/// Errors: there is none, or more than one.
pub fn head(entries: &[ChannelEntry<'_>]) -> Result<usize, Flaw> {
    let targets: HashSet<&str> = entries
        .iter()
        .flat_map(|entry| entry.skips.iter().chain([&entry.replaces]))
        .map(AsRef::as_ref)
        .filter(|target: &&str| !target.is_empty())
        .collect();
    let heads: Vec<usize> = (0..entries.len())
        .filter(|index| !targets.contains(&*entries[*index].name))
        .collect();
    match heads.as_slice() {
        [] => Err(Flaw::NoHead),
        [head] => Ok(*head),
        heads => Err(Flaw::Heads(names(
            heads.iter().map(|index| &*entries[*index].name),
        ))),
    }
}

/// The replaces chain from the head. It ends before an entry that any entry skips.
///
/// Errors: no single head, a cycle, or entries neither in the chain nor skipped.
pub fn chain(entries: &[ChannelEntry<'_>]) -> Result<Vec<usize>, Flaw> {
    chain_to(entries, ChainEnd::BeforeSkipped)
}

/// The replaces chain from the head to `end`.
///
/// Errors: as [`chain`].
pub fn chain_to(entries: &[ChannelEntry<'_>], end: ChainEnd) -> Result<Vec<usize>, Flaw> {
    let head = head(entries)?;
    let positions: HashMap<&str, usize> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| (&*entry.name, index))
        .collect();
    let skipped: HashSet<&str> = entries
        .iter()
        .flat_map(|entry| entry.skips.iter().map(AsRef::as_ref))
        .collect();
    let mut path = vec![head];
    let mut seen = HashSet::from([head]);
    let mut replaces = &*entries[head].replaces;
    let continues_at = |next: &str| end == ChainEnd::AtLast || !skipped.contains(next);
    while continues_at(replaces)
        && let Some(&next) = positions.get(replaces)
    {
        if !seen.insert(next) {
            let start = path.iter().position(|index| *index == next).unwrap_or(0);
            let round = path[start..].iter().chain([&next]);
            let round = round.map(|index| entries[*index].name.to_string());
            return Err(Flaw::Cycle(round.collect()));
        }
        path.push(next);
        replaces = &*entries[next].replaces;
    }
    let stranded = (0..entries.len())
        .filter(|index| !seen.contains(index))
        .map(|index| &*entries[index].name)
        .filter(|name| !skipped.contains(name));
    let stranded = names(stranded);
    if stranded.is_empty() {
        Ok(path)
    } else {
        Err(Flaw::Stranded(stranded))
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let sorted: BTreeSet<&str> = names.collect();
    sorted.into_iter().map(str::to_owned).collect()
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHead => f.write_str("no channel head found in graph"),
            Self::Heads(names) => {
                let names = names.join(", ");
                write!(f, "multiple channel heads found in graph: {names}")
            }
            Self::Cycle(names) => {
                let names = names.join(" -> ");
                write!(
                    f,
                    "detected cycle in replaces chain of upgrade graph: {names}"
                )
            }
            Self::Stranded(names) => {
                let names = names.join(", ");
                write!(f, "channel contains one or more stranded bundles: {names}")
            }
        }
    }
}

impl std::error::Error for Flaw {}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, replaces: &str, skips: &[&str]) -> ChannelEntry<'static> {
        ChannelEntry {
            name: name.to_owned().into(),
            replaces: replaces.to_owned().into(),
            skips: skips.iter().map(|s| (*s).to_owned().into()).collect(),
            ..ChannelEntry::default()
        }
    }

    fn path(entries: &[ChannelEntry<'_>]) -> Result<Vec<String>, String> {
        chain(entries)
            .map(|path| path.iter().map(|i| entries[*i].name.to_string()).collect())
            .map_err(|flaw| flaw.to_string())
    }

    #[test]
    fn the_chain_follows_replaces() {
        let entries = [
            entry("a", "gone", &[]),
            entry("c", "b", &[]),
            entry("b", "a", &[]),
        ];
        assert_eq!(path(&entries).unwrap(), ["c", "b", "a"]);
    }

    #[test]
    fn the_chain_ends_before_skipped_entries() {
        let entries = [
            entry("a", "", &[]),
            entry("b", "a", &[]),
            entry("c", "b", &["b", "a"]),
        ];
        assert_eq!(path(&entries).unwrap(), ["c"]);
    }

    #[test]
    fn invalid_chains_are_reported() {
        let round = [entry("a", "b", &[]), entry("b", "a", &[])];
        assert_eq!(path(&round).unwrap_err(), "no channel head found in graph");
        let two = [entry("b", "", &[]), entry("a", "", &[])];
        assert_eq!(
            path(&two).unwrap_err(),
            "multiple channel heads found in graph: a, b"
        );
        let cycle = [
            entry("c", "b", &[]),
            entry("b", "a", &[]),
            entry("a", "b", &[]),
        ];
        assert_eq!(
            path(&cycle).unwrap_err(),
            "detected cycle in replaces chain of upgrade graph: b -> a -> b"
        );
        let stranded = [
            entry("c", "b", &["b"]),
            entry("b", "a", &[]),
            entry("a", "", &[]),
        ];
        assert_eq!(
            path(&stranded).unwrap_err(),
            "channel contains one or more stranded bundles: a"
        );
        let older = chain_to(&stranded, ChainEnd::AtLast).unwrap();
        assert_eq!(older, [0, 1, 2]);
    }
}
