//! Upgrade graphs as Mermaid and Graphviz text.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use super::{EdgeKind, UpgradeGraph};
use crate::content::{ChannelModel, PackageModel};

/// Nodes and edges to render.
struct Drawing<'p> {
    /// Nodes by bundle name, those missing from the channel too.
    nodes: BTreeMap<&'p str, NodeStyle>,
    /// Node ids from 0, in name order.
    ids: HashMap<&'p str, usize>,
    /// Edges without duplicates: from, to, kind.
    edges: BTreeSet<(&'p str, &'p str, EdgeKind)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeStyle {
    Head,
    Deprecated,
    Plain,
    /// Named by an edge, missing from the channel.
    Missing,
}

impl<'p> Drawing<'p> {
    fn new(package: &'p PackageModel<'p>, channel: &'p ChannelModel<'p>) -> Self {
        let head = &*channel.head().name;
        let kind = |name: &str| match package.bundle(name) {
            Some(bundle) if bundle.deprecation.is_some() => NodeStyle::Deprecated,
            _ if name == head => NodeStyle::Head,
            _ => NodeStyle::Plain,
        };
        let mut nodes: BTreeMap<_, _> = channel
            .entries
            .iter()
            .map(|entry| (&*entry.name, kind(&entry.name)))
            .collect();
        let mut edges = BTreeMap::new();
        for edge in UpgradeGraph::new(package, channel).edges() {
            nodes.entry(edge.from).or_insert(NodeStyle::Missing);
            // A bundle replaced or skipped by name may be in the skipRange, too: one edge suffices.
            edges.entry((edge.from, edge.to)).or_insert(edge.kind);
        }
        let edges = edges
            .into_iter()
            .map(|((from, to), kind)| (from, to, kind))
            .collect();
        let ids = nodes.keys().copied().zip(0..).collect();
        Self { nodes, ids, edges }
    }
}

/// Renders a channel for Mermaid: <https://mermaid.js.org/syntax/flowchart.html>.
pub fn mermaid<'p>(package: &'p PackageModel<'p>, channel: &'p ChannelModel<'p>) -> String {
    let drawing = Drawing::new(package, channel);
    let mut text = String::from("graph LR\n");
    let title = mermaid_text(&format!("{} {}", package.name, channel.name));
    line(&mut text, format_args!("  subgraph channel[\"{title}\"]"));
    for (name, kind) in &drawing.nodes {
        let id = drawing.ids[name];
        let class = match kind {
            NodeStyle::Head => ":::head",
            NodeStyle::Deprecated => ":::deprecated",
            NodeStyle::Plain => "",
            NodeStyle::Missing => ":::missing",
        };
        let name = mermaid_text(name);
        line(&mut text, format_args!("    n{id}[\"{name}\"]{class}"));
    }
    line(&mut text, format_args!("  end"));
    for (from, to, kind) in &drawing.edges {
        let arrow = match kind {
            EdgeKind::Replaces => "-->",
            EdgeKind::Skips => "-. skips .->",
            EdgeKind::SkipRange => "-. skipRange .->",
        };
        let (from, to) = (drawing.ids[from], drawing.ids[to]);
        line(&mut text, format_args!("  n{from} {arrow} n{to}"));
    }
    text.push_str(
        "  classDef head stroke-width:3px\n  classDef deprecated fill:#ddd,stroke:#999\n  classDef missing stroke-dasharray:4\n",
    );
    text
}

/// Renders a channel for Graphviz: <https://graphviz.org/doc/info/lang.html>.
pub fn dot<'p>(package: &'p PackageModel<'p>, channel: &'p ChannelModel<'p>) -> String {
    let drawing = Drawing::new(package, channel);
    let title = dot_text(&format!("{} {}", package.name, channel.name));
    let mut text = format!("digraph \"{title}\" {{\n  rankdir=LR;\n  node [shape=box];\n");
    for (name, kind) in &drawing.nodes {
        let style = match kind {
            NodeStyle::Head => " [penwidth=3]",
            NodeStyle::Deprecated => " [style=filled, fillcolor=lightgrey]",
            NodeStyle::Plain => "",
            NodeStyle::Missing => " [style=dashed]",
        };
        let name = dot_text(name);
        line(&mut text, format_args!("  \"{name}\"{style};"));
    }
    for (from, to, kind) in &drawing.edges {
        let style = match kind {
            EdgeKind::Replaces => "",
            EdgeKind::Skips => " [style=dashed, label=skips]",
            EdgeKind::SkipRange => " [style=dotted, label=skipRange]",
        };
        let (from, to) = (dot_text(from), dot_text(to));
        line(&mut text, format_args!("  \"{from}\" -> \"{to}\"{style};"));
    }
    text.push_str("}\n");
    text
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("memory does not fail");
}

/// Names are untrusted input: escapes all that could end the quotes.
fn mermaid_text(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '"' | '#' | '<' | '>' | '&' | ';' | '`' | '\\' | '\0'..='\u{1f}' => {
                format!("#{};", u32::from(c))
            }
            c => c.to_string(),
        })
        .collect()
}

fn dot_text(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
