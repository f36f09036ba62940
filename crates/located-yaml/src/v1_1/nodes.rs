//! Nodes of one document, in file order.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, ScalarStyle, ScanError, Span, Tag};

use super::quoted::Reindented;
use super::scalar::{self, Scalar};
use crate::parser::{events, not_yaml, own_tag, position};
use crate::{DocumentError, Position};

/// Levels of lists and objects that are parsed. Source: Go's `encoding/json`, which reads the converted text.
const MAX_DEPTH: usize = 10_000;

/// End of a collection that is still open.
const OPEN: usize = 0;

/// A parsed document.
#[derive(Debug, Default)]
pub struct Nodes<'a> {
    nodes: Vec<YamlNode<'a>>,
    /// Ranges of multi-line quoted scalars, sorted.
    quoted: Vec<Range<usize>>,
}

/// A node with its position.
#[derive(Debug)]
pub struct YamlNode<'a> {
    /// Its start.
    pub place: Position,
    /// The node.
    pub kind: NodeKind<'a>,
}

/// The content of a node. Numbers are indices of nodes.
#[derive(Debug)]
pub enum NodeKind<'a> {
    /// A scalar, resolved.
    Scalar(Scalar<'a>),
    /// A merge key `<<`.
    Merge,
    /// Its items follow, up to `end`.
    List {
        /// Index of the node behind it.
        end: usize,
    },
    /// Its keys and values follow, alternating, up to `end`.
    Map {
        /// Index of the node behind it.
        end: usize,
    },
    /// The anchored node.
    Alias {
        /// Its index.
        of: usize,
    },
}

impl<'a> Nodes<'a> {
    /// Whether the document is empty or null.
    pub fn is_null(&self) -> bool {
        let root = self.nodes.first().map(|node| &node.kind);
        matches!(root, None | Some(NodeKind::Scalar(Scalar::Null)))
    }

    /// Ranges of multi-line quoted scalars, sorted.
    /// Units: bytes.
    pub(super) fn quoted(&self) -> &[Range<usize>] {
        &self.quoted
    }

    /// Line of the root, none of an empty document.
    pub fn first_line(&self) -> Option<usize> {
        self.nodes.first().map(|node| node.place.line)
    }

    /// A node; the root is 0.
    ///
    /// Panics: there is no such node.
    pub fn get(&self, index: usize) -> &YamlNode<'a> {
        &self.nodes[index]
    }

    fn is_closed(&self, index: usize) -> bool {
        !matches!(
            self.nodes[index].kind,
            NodeKind::List { end: OPEN } | NodeKind::Map { end: OPEN }
        )
    }

    /// Index of the next sibling.
    pub fn after(&self, index: usize) -> usize {
        match self.nodes[index].kind {
            NodeKind::List { end } | NodeKind::Map { end } => end,
            _ => index + 1,
        }
    }
}

/// Calls `work` with the nodes of the single document of `text`; `beyond` is the error for a second one.
///
/// Errors: not YAML, more than one document, and those of `work`.
pub fn with_nodes<T>(
    text: &str,
    beyond: &'static str,
    work: impl FnOnce(&Nodes<'_>) -> Result<T, DocumentError>,
) -> Result<T, DocumentError> {
    match read(text, beyond) {
        Ok(nodes) => work(&nodes),
        Err(wrong) => match Reindented::new(text) {
            Some(deepened) => match read(&deepened.text, beyond) {
                Ok(nodes) if deepened.is_harmless(nodes.quoted()) => work(&nodes),
                _ => Err(wrong),
            },
            None => Err(wrong),
        },
    }
}

/// Parses the single document of `text`; `beyond` is the error for a second one.
fn read<'a>(text: &'a str, beyond: &'static str) -> Result<Nodes<'a>, DocumentError> {
    let mut reader = NodeReader {
        beyond,
        ..NodeReader::default()
    };
    // Most lines have a name and a value.
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    reader.nodes.nodes.reserve(2 * (lines + 1));
    for event in events(text, MAX_DEPTH) {
        let (event, span) = event.map_err(|error| reader.unreadable(&error))?;
        reader.event(event, span)?;
    }
    Ok(reader.nodes)
}

#[derive(Default)]
struct NodeReader<'a> {
    nodes: Nodes<'a>,
    /// Open collections.
    open: Vec<usize>,
    /// Nodes by the parser's anchor number.
    anchors: HashMap<usize, usize>,
    is_over: bool,
    beyond: &'static str,
}

impl<'a> NodeReader<'a> {
    fn event(&mut self, event: Event<'a>, span: Span) -> Result<(), DocumentError> {
        let place = position(span.start);
        match event {
            Event::DocumentStart(..) if self.is_over => {
                return Err(DocumentError::new(place, self.beyond));
            }
            Event::DocumentEnd => self.is_over = true,
            Event::Scalar(text, style, anchor, tag) => {
                let is_quoted =
                    [ScalarStyle::SingleQuoted, ScalarStyle::DoubleQuoted].contains(&style);
                if is_quoted && span.end.line() > place.line {
                    self.nodes.quoted.extend(span.byte_range());
                }
                let kind = kind(text, style, tag.as_deref())
                    .map_err(|why| DocumentError::new(place, why))?;
                self.push(place, anchor, kind);
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(place, anchor, NodeKind::List { end: OPEN });
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(place, anchor, NodeKind::Map { end: OPEN });
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => {
                let of = self.anchors.get(&anchor).copied();
                let of = of.filter(|&of| self.nodes.is_closed(of));
                let why = "an alias is inside its own anchor";
                let of = of.ok_or_else(|| DocumentError::new(place, why))?;
                self.push(place, 0, NodeKind::Alias { of });
            }
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, place: Position, anchor: usize, kind: NodeKind<'a>) {
        if anchor != 0 {
            self.anchors.insert(anchor, self.nodes.nodes.len());
        }
        self.nodes.nodes.push(YamlNode { place, kind });
    }

    fn open(&mut self, place: Position, anchor: usize, kind: NodeKind<'a>) {
        self.open.push(self.nodes.nodes.len());
        self.push(place, anchor, kind);
    }

    fn close(&mut self) {
        let nodes = &mut self.nodes.nodes;
        let behind = nodes.len();
        let closed = self.open.pop().and_then(|index| nodes.get_mut(index));
        if let Some(NodeKind::List { end } | NodeKind::Map { end }) =
            closed.map(|node| &mut node.kind)
        {
            *end = behind;
        }
    }

    fn unreadable(&self, error: &ScanError) -> DocumentError {
        if self.is_over {
            return DocumentError::new(position(*error.marker()), self.beyond);
        }
        not_yaml(error)
    }
}

fn kind<'a>(
    text: Cow<'a, str>,
    style: ScalarStyle,
    tag: Option<&Tag>,
) -> Result<NodeKind<'a>, String> {
    let is_plain = tag.is_none() && style == ScalarStyle::Plain;
    let own = own_tag(tag);
    if text == "<<" && (is_plain || own.as_deref() == Some("merge")) {
        return Ok(NodeKind::Merge);
    }
    if is_plain {
        return Ok(NodeKind::Scalar(scalar::plain(text)));
    }
    match own {
        Some(tag) => scalar::tagged(text, &tag).map(NodeKind::Scalar),
        // Quoted, or with a custom tag.
        None => Ok(NodeKind::Scalar(Scalar::Text(text))),
    }
}
