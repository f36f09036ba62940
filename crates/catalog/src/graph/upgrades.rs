//! Upgrade edges: replaces, skips, skipRange.

use std::collections::{HashMap, VecDeque};

use crate::content::{ChannelModel, PackageModel};
use crate::range::Range;
use crate::schema::ChannelEntry;
use crate::version::BundleVersion;

/// Upgrade graph of a channel.
#[derive(Debug)]
pub struct UpgradeGraph<'p> {
    nodes: Vec<GraphNode<'p>>,
    positions: HashMap<&'p str, usize>,
}

#[derive(Debug)]
struct GraphNode<'p> {
    entry: &'p ChannelEntry<'p>,
    version: &'p BundleVersion,
    skip_range: Option<Range>,
}

/// An upgrade edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge<'p> {
    /// Bundle name; possibly missing from the channel.
    pub from: &'p str,
    pub to: &'p str,
    pub kind: EdgeKind,
}

/// Kind of an upgrade edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeKind {
    Replaces,
    Skips,
    SkipRange,
}

impl<'p> UpgradeGraph<'p> {
    /// The graph of a channel of `package`.
    pub fn new(package: &'p PackageModel<'p>, channel: &'p ChannelModel<'p>) -> Self {
        let nodes: Vec<_> = channel
            .entries
            .iter()
            .filter_map(|entry| {
                let version = &package.bundle(&entry.name)?.version;
                let range = Some(&*entry.skip_range).filter(|range| !range.is_empty());
                Some(GraphNode {
                    entry,
                    version,
                    skip_range: range.and_then(|range| range.parse().ok()),
                })
            })
            .collect();
        let positions = nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (&*node.entry.name, index))
            .collect();
        Self { nodes, positions }
    }

    /// All edges, sorted by the name of their target.
    pub fn edges(&self) -> Vec<Edge<'p>> {
        self.nodes
            .iter()
            .flat_map(|node| self.edges_to(node))
            .collect()
    }

    /// Entries one upgrade after `name`, sorted by name.
    pub fn upgrades_from(&self, name: &str) -> Vec<&'p ChannelEntry<'p>> {
        let to = |node: &&GraphNode<'p>| self.edges_to(node).any(|edge| edge.from == name);
        let entries = self.nodes.iter().filter(to).map(|node| node.entry);
        entries.collect()
    }

    /// Names of bundles one upgrade before an entry: replaces, skips, then skipRange.
    pub fn upgrades_to(&self, name: &str) -> Vec<&'p str> {
        let node = self.positions.get(name).map(|index| &self.nodes[*index]);
        let mut names: Vec<&str> = Vec::new();
        for edge in node.into_iter().flat_map(|node| self.edges_to(node)) {
            if !names.contains(&edge.from) {
                names.push(edge.from);
            }
        }
        names
    }

    /// Shortest path between two bundles, both included; among equally short ones that with the newest bundles. `None`
    /// when unreachable.
    pub fn shortest_path(&self, from: &str, to: &str) -> Option<Vec<&'p str>> {
        let end = *self.positions.get(to)?;
        let mut next: HashMap<&str, &'p str> = HashMap::new();
        let mut queue = VecDeque::from([end]);
        while let Some(index) = queue.pop_front() {
            let node = &self.nodes[index];
            if &*node.entry.name == from {
                return Some(path(&node.entry.name, to, &next));
            }
            let mut found = Vec::new();
            for edge in self.edges_to(node) {
                if edge.from == to || next.contains_key(edge.from) {
                    continue;
                }
                next.insert(edge.from, edge.to);
                match self.positions.get(edge.from) {
                    Some(index) => found.push(*index),
                    None if edge.from == from => return Some(path(edge.from, to, &next)),
                    None => {}
                }
            }
            found.sort_by(|a, b| self.nodes[*b].version.cmp(self.nodes[*a].version));
            queue.extend(found);
        }
        None
    }

    fn edges_to<'g>(&'g self, node: &'g GraphNode<'p>) -> impl Iterator<Item = Edge<'p>> + 'g {
        let entry = node.entry;
        let edge = |from, kind| Edge {
            from,
            to: &entry.name,
            kind,
        };
        let replaces = Some(&*entry.replaces).filter(|name| !name.is_empty());
        let replaces = replaces.map(|name| edge(name, EdgeKind::Replaces));
        let skips = entry
            .skips
            .iter()
            .map(move |name| edge(name, EdgeKind::Skips));
        let in_range = node.skip_range.iter().flat_map(move |range| {
            let others = self
                .nodes
                .iter()
                .filter(|other| other.entry.name != entry.name);
            let others = others.filter(|other| range.contains(other.version));
            others.map(move |other| edge(&*other.entry.name, EdgeKind::SkipRange))
        });
        replaces.into_iter().chain(skips).chain(in_range)
    }
}

fn path<'p>(from: &'p str, to: &str, next: &HashMap<&str, &'p str>) -> Vec<&'p str> {
    let mut path = vec![from];
    let mut at = from;
    while at != to
        && let Some(name) = next.get(at)
    {
        path.push(name);
        at = name;
    }
    path
}
