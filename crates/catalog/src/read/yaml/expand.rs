//! Writes nodes in the normal form, with aliases expanded.

use std::borrow::Cow;

use located_yaml::DocumentError;
use located_yaml::v1_1::{NodeKind, Nodes, Scalar};

use crate::normal::{JsonWriter, MAX_DEPTH};

/// Node count up to which 99 % may come from aliases. Source: go-yaml, `decode.go`.
const SMALL: f64 = 400_000.0;
/// Node count from which only 10 % may. Source: go-yaml, `decode.go`.
const LARGE: f64 = 4_000_000.0;

/// Writes the document, at most `limit` bytes.
pub(super) fn write(
    nodes: &Nodes<'_>,
    writer: &mut JsonWriter,
    limit: usize,
) -> Result<(), DocumentError> {
    let mut expansion = Expansion {
        nodes,
        writer,
        limit,
        open: Vec::new(),
        seen: 0,
        seen_in_aliases: 0,
        aliases: 0,
    };
    expansion.node(0, false)?;
    while let Some(open) = expansion.open.last_mut() {
        match open.advance(nodes) {
            Some((key, value)) => expansion.member(key, value)?,
            None => expansion.close(),
        }
    }
    Ok(())
}

struct Expansion<'a> {
    nodes: &'a Nodes<'a>,
    writer: &'a mut JsonWriter,
    limit: usize,
    /// Open collections, the innermost last.
    open: Vec<OpenCollection>,
    /// Written nodes, expanded aliases included.
    seen: u32,
    /// Written nodes within aliases.
    seen_in_aliases: u32,
    /// Number of open aliases.
    aliases: u32,
}

/// A collection being written.
#[derive(Debug, Clone, Copy)]
struct OpenCollection {
    what: CollectionKind,
    /// Its next node.
    next: usize,
    end: usize,
    /// Whether it is an expanded alias.
    is_alias: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CollectionKind {
    List,
    Map,
    /// A merge key: its members join the enclosing object.
    Merged,
}

impl OpenCollection {
    /// The next key and value; `None` at the end.
    fn advance(&mut self, nodes: &Nodes<'_>) -> Option<(Option<usize>, usize)> {
        let at = (self.next < self.end).then_some(self.next)?;
        let (key, value) = match self.what {
            CollectionKind::List => (None, at),
            CollectionKind::Map | CollectionKind::Merged => (Some(at), nodes.after(at)),
        };
        self.next = nodes.after(value);
        Some((key, value))
    }
}

impl Expansion<'_> {
    fn member(&mut self, key: Option<usize>, value: usize) -> Result<(), DocumentError> {
        match key {
            Some(key) if matches!(self.nodes.get(key).kind, NodeKind::Merge) => self.merge(value),
            Some(key) => {
                self.key(key)?;
                self.node(value, false)
            }
            None => self.node(value, false),
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.pop() else {
            return;
        };
        if open.what != CollectionKind::Merged {
            self.writer.end();
        }
        self.aliases -= u32::from(open.is_alias);
    }

    /// Writes a scalar or opens a collection.
    fn node(&mut self, at: usize, is_alias: bool) -> Result<(), DocumentError> {
        self.count(at)?;
        let nodes = self.nodes;
        match &nodes.get(at).kind {
            NodeKind::List { end } => return self.begin(CollectionKind::List, at, *end, is_alias),
            NodeKind::Map { end } => return self.begin(CollectionKind::Map, at, *end, is_alias),
            NodeKind::Alias { of } => {
                self.aliases += 1;
                return self.node(*of, true);
            }
            NodeKind::Scalar(scalar) => self.scalar(at, scalar)?,
            NodeKind::Merge => self.writer.string("<<"),
        }
        self.aliases -= u32::from(is_alias);
        Ok(())
    }

    fn begin(
        &mut self,
        what: CollectionKind,
        at: usize,
        end: usize,
        is_alias: bool,
    ) -> Result<(), DocumentError> {
        if what != CollectionKind::Merged && self.writer.depth() == MAX_DEPTH {
            let why = format!("objects and lists are nested more than {MAX_DEPTH} deep");
            return Err(self.wrong(at, why));
        }
        match what {
            CollectionKind::List => self.writer.begin_list(),
            CollectionKind::Map => self.writer.begin_object(),
            CollectionKind::Merged => {}
        }
        self.open.push(OpenCollection {
            what,
            next: at + 1,
            end,
            is_alias,
        });
        Ok(())
    }

    /// Merges the members of an object, or of a list of objects, of which the first wins.
    fn merge(&mut self, at: usize) -> Result<(), DocumentError> {
        if self.merge_one(at)? {
            return Ok(());
        }
        let NodeKind::List { end } = self.nodes.get(at).kind else {
            return Err(self.wrong(at, "`<<` merges objects only"));
        };
        let mut from = at + 1;
        while from < end {
            // The collection opened last is written first.
            if !self.merge_one(from)? {
                return Err(self.wrong(from, "`<<` merges objects only"));
            }
            from = self.nodes.after(from);
        }
        Ok(())
    }

    /// Merges one object; false if it is not one.
    fn merge_one(&mut self, at: usize) -> Result<bool, DocumentError> {
        let (of, is_alias) = match self.nodes.get(at).kind {
            NodeKind::Alias { of } => (of, true),
            _ => (at, false),
        };
        let NodeKind::Map { end } = self.nodes.get(of).kind else {
            return Ok(false);
        };
        self.aliases += u32::from(is_alias);
        self.count(of)?;
        self.begin(CollectionKind::Merged, of, end, is_alias)?;
        Ok(true)
    }

    fn key(&mut self, at: usize) -> Result<(), DocumentError> {
        self.count(at)?;
        let of = match self.nodes.get(at).kind {
            NodeKind::Alias { of } => of,
            _ => at,
        };
        let nodes = self.nodes;
        let key = match &nodes.get(of).kind {
            NodeKind::Scalar(scalar) => scalar.name(),
            NodeKind::Merge => Some(Cow::Borrowed("<<")),
            _ => None,
        };
        let why = "a key must be a string, a number or a boolean";
        let key = key.ok_or_else(|| self.wrong(at, why))?;
        self.writer.key(&key);
        Ok(())
    }

    fn scalar(&mut self, at: usize, scalar: &Scalar<'_>) -> Result<(), DocumentError> {
        match scalar {
            Scalar::Null => self.writer.literal("null"),
            Scalar::Bool(true) => self.writer.literal("true"),
            Scalar::Bool(false) => self.writer.literal("false"),
            Scalar::Integer(value) => self.writer.integer(*value),
            Scalar::Float(value) if value.is_finite() => self.writer.number(*value),
            Scalar::Float(_) => return Err(self.wrong(at, "JSON has no such number")),
            Scalar::Text(text) => self.writer.string(text),
        }
        Ok(())
    }

    /// Refuses excessive alias expansion ("billion laughs").
    fn count(&mut self, at: usize) -> Result<(), DocumentError> {
        self.seen += 1;
        self.seen_in_aliases += u32::from(self.aliases > 0);
        let [seen, in_aliases] = [self.seen, self.seen_in_aliases].map(f64::from);
        let share = 0.99 - 0.89 * ((seen - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
        let is_excessive = in_aliases > 100.0 && seen > 1000.0 && in_aliases / seen > share;
        if is_excessive || self.writer.text_length() > self.limit {
            return Err(self.wrong(at, "excessive aliasing makes the document too large"));
        }
        Ok(())
    }

    fn wrong(&self, at: usize, why: impl Into<String>) -> DocumentError {
        DocumentError::new(self.nodes.get(at).place, why)
    }
}
