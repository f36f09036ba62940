//! YAML with positions, resolved as go-yaml v3 resolves it. Aliases are copied and merge keys applied, so that
//! the tree is the one that JSON would give.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, ScalarStyle, Span, Tag};

use super::node::{ConfigMember, ConfigNode, NodeValue, ScalarKind};
use super::{MAX_DEPTH, NodeBudget, check_length, too_deep};
use crate::parser::{events, not_yaml, own_tag, position};
use crate::text::shown;
use crate::{DocumentError, Position};

/// Reads the first document; an empty text is null.
///
/// Errors: malformed YAML, a key that comes twice, or more than the bounds of [`v1_2`](super) allow.
pub fn from_yaml(text: &str) -> Result<ConfigNode, DocumentError> {
    let empty = || ConfigNode::scalar(Position::START, ScalarKind::Null, "");
    Ok(read(text, 1)?.pop().unwrap_or_else(empty))
}

/// Reads all documents; the bounds are those of one.
///
/// Errors: as [`from_yaml`].
pub fn documents_from_yaml(text: &str) -> Result<Vec<ConfigNode>, DocumentError> {
    read(text, usize::MAX)
}

fn read(text: &str, most: usize) -> Result<Vec<ConfigNode>, DocumentError> {
    check_length(text.len())?;
    let last_line = text.rsplit(['\n', '\r']).next().unwrap_or_default();
    let mut builder = TreeBuilder {
        open_end: (!last_line.trim_matches(' ').is_empty()).then_some(text.len()),
        ..TreeBuilder::default()
    };
    let mut documents = Vec::new();
    for event in events(text, MAX_DEPTH) {
        let (event, span) = event.map_err(|error| not_yaml(&error))?;
        if matches!(event, Event::DocumentEnd) {
            documents.extend(builder.root.take());
            builder.anchors.clear();
            if documents.len() == most {
                break;
            }
            continue;
        }
        builder.event(event, span)?;
    }
    Ok(documents)
}

/// A list or mapping whose end is not read yet.
struct OpenCollection {
    at: Position,
    anchor: usize,
    content: OpenContent,
}

enum OpenContent {
    List(Vec<ConfigNode>),
    Mapping(OpenMapping),
}

#[derive(Default)]
struct OpenMapping {
    members: Vec<ConfigMember>,
    /// Lines of the members by name.
    lines: HashMap<String, usize>,
    /// Read, without its value yet.
    key: Option<MappingKey>,
    /// The value of the merge key.
    merged: Option<ConfigNode>,
}

struct MappingKey {
    name: String,
    at: Position,
    is_merge: bool,
}

#[derive(Default)]
struct TreeBuilder {
    /// The end of a text whose last line has no line break. Units: bytes.
    open_end: Option<usize>,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, ConfigNode>,
    root: Option<ConfigNode>,
    budget: NodeBudget,
}

impl TreeBuilder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), DocumentError> {
        let at = position(span.start);
        match event {
            Event::Scalar(mut text, style, anchor, tag) => {
                self.budget.spend(1, at)?;
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let ends_text = self.open_end.is_some() && span.end.byte_offset() == self.open_end;
                // The parser adds the line break that a block at the very end does not have.
                if is_block && ends_text && text.ends_with('\n') {
                    text.to_mut().pop();
                }
                let is_plain = style == ScalarStyle::Plain;
                let is_merge = is_plain && text == "<<";
                let node = scalar(at, text, is_plain, tag.as_deref())?;
                self.close_value(node, anchor, is_merge)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.begin(at, anchor, OpenContent::List(Vec::new()))
            }
            Event::MappingStart(_, anchor, _) => {
                self.begin(at, anchor, OpenContent::Mapping(OpenMapping::default()))
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let reason = "an alias inside its own anchor";
                let anchored = self.anchors.get(&anchor);
                let anchored = anchored.ok_or_else(|| DocumentError::new(at, reason))?;
                self.budget.copy(anchored)?;
                let mut node = anchored.clone();
                node.at = at;
                if self.open.len() + depth(&node) > MAX_DEPTH {
                    return Err(too_deep(at));
                }
                self.close_value(node, 0, false)
            }
            _ => Ok(()),
        }
    }

    fn begin(
        &mut self,
        at: Position,
        anchor: usize,
        content: OpenContent,
    ) -> Result<(), DocumentError> {
        self.budget.spend(1, at)?;
        if self.open.len() == MAX_DEPTH {
            return Err(too_deep(at));
        }
        self.open.push(OpenCollection {
            at,
            anchor,
            content,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), DocumentError> {
        let Some(OpenCollection {
            at,
            anchor,
            content,
        }) = self.open.pop()
        else {
            return Ok(());
        };
        let node = match content {
            OpenContent::List(items) => ConfigNode::list(at, items),
            OpenContent::Mapping(mapping) => ConfigNode::object(at, mapping.close()?),
        };
        self.close_value(node, anchor, false)
    }

    /// Adds a complete value to the collection around it.
    fn close_value(
        &mut self,
        node: ConfigNode,
        anchor: usize,
        is_merge: bool,
    ) -> Result<(), DocumentError> {
        if anchor != 0 {
            self.budget.copy(&node)?;
            self.anchors.insert(anchor, node.clone());
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut parent.content {
            OpenContent::List(items) => items.push(node),
            OpenContent::Mapping(mapping) => match mapping.key.take() {
                None => mapping.key = Some(mapping_key(node, is_merge)?),
                Some(key) => mapping.add(key, node)?,
            },
        }
        Ok(())
    }
}

fn mapping_key(node: ConfigNode, is_merge: bool) -> Result<MappingKey, DocumentError> {
    match node.value {
        NodeValue::Scalar { text, .. } => Ok(MappingKey {
            name: text,
            at: node.at,
            is_merge,
        }),
        _ => Err(DocumentError::new(node.at, "a key is a list or a mapping")),
    }
}

impl OpenMapping {
    fn add(&mut self, key: MappingKey, node: ConfigNode) -> Result<(), DocumentError> {
        let MappingKey { name, at, is_merge } = key;
        if is_merge {
            self.merged = Some(node);
            return Ok(());
        }
        if let Some(line) = self.lines.insert(name.clone(), at.line) {
            let reason = format!("key {} is already in line {line}", shown(&name));
            return Err(DocumentError::new(at, reason));
        }
        self.members.push(ConfigMember { name, at, node });
        Ok(())
    }

    /// The members, with those of the merge key's mappings that are not there yet; the first of several mappings
    /// counts.
    fn close(mut self) -> Result<Vec<ConfigMember>, DocumentError> {
        let sources = match self.merged.take() {
            None => Vec::new(),
            Some(ConfigNode {
                value: NodeValue::List(items),
                ..
            }) => items,
            Some(mapping) => vec![mapping],
        };
        for source in sources {
            let NodeValue::Object(added) = source.value else {
                let reason = "a merge key takes a mapping, or a list of mappings";
                return Err(DocumentError::new(source.at, reason));
            };
            for member in added {
                if !self.lines.contains_key(&member.name) {
                    self.lines.insert(member.name.clone(), member.at.line);
                    self.members.push(member);
                }
            }
        }
        Ok(self.members)
    }
}

fn depth(node: &ConfigNode) -> usize {
    let inner = match &node.value {
        NodeValue::Scalar { .. } => return 0,
        NodeValue::List(items) => items.iter().map(depth).max(),
        NodeValue::Object(members) => members.iter().map(|member| depth(&member.node)).max(),
    };
    1 + inner.unwrap_or(0)
}

fn scalar(
    at: Position,
    text: Cow<'_, str>,
    is_plain: bool,
    tag: Option<&Tag>,
) -> Result<ConfigNode, DocumentError> {
    let own = own_tag(tag);
    let resolved = resolve(&text);
    let (kind, fits) = match own.as_deref() {
        Some("int") => (resolved, matches!(resolved, ScalarKind::Integer(_))),
        Some("bool") => (resolved, matches!(resolved, ScalarKind::Bool(_))),
        Some("null") => (resolved, resolved == ScalarKind::Null),
        None if is_plain && tag.is_none() => (resolved, true),
        // Quoted, or of another type.
        _ => (ScalarKind::Text, true),
    };
    if fits {
        return Ok(ConfigNode::scalar(at, kind, text));
    }
    let tag = own.unwrap_or_default();
    Err(DocumentError::new(at, format!("the value is no {tag}")))
}

/// The type of plain text. Source: go-yaml v3, `resolve.go`.
fn resolve(text: &str) -> ScalarKind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return ScalarKind::Null,
        "true" | "True" | "TRUE" => return ScalarKind::Bool(true),
        "false" | "False" | "FALSE" => return ScalarKind::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return ScalarKind::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return ScalarKind::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return ScalarKind::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let is_number = text.starts_with(|first: char| "+-.".contains(first) || first.is_ascii_digit());
    if !is_number {
        return ScalarKind::Text;
    }
    let digits = text.replace('_', "");
    if let Some(integer) = integer(&digits) {
        return i64::try_from(integer)
            .map_or(ScalarKind::Float(f64::INFINITY), ScalarKind::Integer);
    }
    let is_float = digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    match digits.parse() {
        Ok(value) if is_float => ScalarKind::Float(value),
        _ => ScalarKind::Text,
    }
}

/// Decimal, or with the prefix of another base; a leading zero is octal.
fn integer(digits: &str) -> Option<i128> {
    let (sign, unsigned) = match digits.as_bytes().first()? {
        b'-' => (-1, &digits[1..]),
        b'+' => (1, &digits[1..]),
        _ => (1, digits),
    };
    let prefix = unsigned.get(..2).map(str::to_ascii_lowercase);
    let (base, rest) = match prefix.as_deref() {
        Some("0x") => (16, &unsigned[2..]),
        Some("0o") => (8, &unsigned[2..]),
        Some("0b") => (2, &unsigned[2..]),
        Some(_) if unsigned.starts_with('0') => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if rest.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(rest, base).ok()?;
    let value = sign * value;
    (i128::from(i64::MIN)..=i128::from(u64::MAX))
        .contains(&value)
        .then_some(value)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::v1_2::{MAX_BYTES, MAX_NODES, from_json};

    fn problem(text: &str) -> String {
        from_yaml(text).unwrap_err().to_string()
    }

    #[test]
    fn values_have_positions() {
        let root =
            from_yaml("variant: fcos\nstorage:\n  files:\n    - path: /a\n      mode: 0644\n")
                .unwrap();
        let file = &root.find(&["storage", "files"]).unwrap().items()[0];
        let mode = &file.members()[1];
        assert_eq!(
            (mode.at.to_string(), mode.node.at.to_string()),
            ("5:7".to_owned(), "5:13".to_owned())
        );
        assert_eq!(mode.node.as_integer(), Some(0o644));
        assert_eq!(file.at.to_string(), "4:7");
    }

    #[test]
    fn scalars_resolve_as_in_go() {
        for (text, kind) in [
            ("1", ScalarKind::Integer(1)),
            ("0644", ScalarKind::Integer(420)),
            ("0o644", ScalarKind::Integer(420)),
            ("0x1F", ScalarKind::Integer(31)),
            ("0b11", ScalarKind::Integer(3)),
            ("-7", ScalarKind::Integer(-7)),
            ("+7", ScalarKind::Integer(7)),
            ("1_000", ScalarKind::Integer(1000)),
            ("0", ScalarKind::Integer(0)),
            ("08", ScalarKind::Float(8.0)),
            ("1.5", ScalarKind::Float(1.5)),
            ("1e3", ScalarKind::Float(1000.0)),
            ("true", ScalarKind::Bool(true)),
            ("yes", ScalarKind::Text),
            ("~", ScalarKind::Null),
            ("", ScalarKind::Null),
            ("\"1\"", ScalarKind::Text),
            ("!!str 1", ScalarKind::Text),
            ("!!int 1", ScalarKind::Integer(1)),
            ("1.2.3", ScalarKind::Text),
            ("2020-01-01", ScalarKind::Text),
            ("-", ScalarKind::Text),
            ("0x", ScalarKind::Text),
            ("--1", ScalarKind::Text),
        ] {
            let root = from_yaml(&format!("a: {text}\n"));
            let Ok(root) = root else {
                assert_eq!(text, "-", "{root:?}");
                continue;
            };
            let NodeValue::Scalar { kind: found, .. } = root.members()[0].node.value else {
                panic!("{text}");
            };
            assert_eq!(found, kind, "{text}");
        }
        assert!(problem("a: !!int x").starts_with("1:10: "));
    }

    #[test]
    fn aliases_and_merge_keys_are_applied() {
        let root = from_yaml("a: &a {x: 1, y: [2]}\nb: *a\nc:\n  <<: [*a, {z: 3, x: 9}]\n  y: 4\n")
            .unwrap();
        let expected = json!({
            "a": {"x": 1, "y": [2]}, "b": {"x": 1, "y": [2]}, "c": {"y": 4, "x": 1, "z": 3},
        });
        assert_eq!(root.to_json(), expected);
        assert_eq!(root.get("b").unwrap().at.to_string(), "2:4");
        assert!(problem("a:\n  <<: 1\n").starts_with("2:7: "));
    }

    #[test]
    fn malformed_documents_are_refused_with_their_position() {
        for (text, at) in [
            ("a: 1\na: 2\n", "2:1: "),
            ("a: [1\n", "1:4: "),
            ("[a]: 1\n", "1:1: "),
            ("a: *b\n", "1:4: "),
            ("a: &a [*a]\n", "1:8: "),
            ("a: 'open\n", "2:1: "),
        ] {
            let problem = problem(text);
            assert!(problem.starts_with(at), "{text:?}: {problem}");
        }
        assert!(from_yaml("").unwrap().is_null());
        assert!(from_yaml("# nothing\n").unwrap().is_null());
    }

    #[test]
    fn bounds_hold() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(from_yaml(&nested(MAX_DEPTH)).is_ok());
        assert!(from_yaml(&nested(MAX_DEPTH + 1)).is_err());
        let long = |items: usize| format!("[{}1]", "1,".repeat(items - 1));
        assert!(from_yaml(&long(MAX_NODES - 1)).is_ok());
        assert!(problem(&long(MAX_NODES)).contains("values"));
        // Many keys take no more time than many items.
        let mut keys = String::new();
        for key in 0..100_000 {
            writeln!(keys, "k{key}: 1").unwrap();
        }
        assert_eq!(from_yaml(&keys).unwrap().members().len(), 100_000);
        let mut bomb = "a0: &a0 [x]\n".to_owned();
        for level in 1..40 {
            let below = level - 1;
            writeln!(bomb, "a{level}: &a{level} [*a{below}, *a{below}]").unwrap();
        }
        assert!(problem(&bomb).contains("values"));
        // Aliases add up to more depth than the text has.
        let mut deep = "a0: &a0 [[[[[[[[[[x]]]]]]]]]]\n".to_owned();
        for level in 1..9 {
            let below = level - 1;
            writeln!(deep, "a{level}: &a{level} [[[[[[[[*a{below}]]]]]]]]").unwrap();
        }
        assert!(problem(&deep).contains("levels deep"));
    }

    #[test]
    fn a_block_at_the_end_has_no_line_break_of_its_own() {
        for (text, value) in [
            ("a: |\n  x\n  y", "x\ny"),
            ("a: |+\n  x", "x"),
            ("a: >\n  x\n  y", "x y"),
            ("a: |\n  x\n", "x\n"),
            ("a: |\n  x\n# end", "x\n"),
            ("a: |\n  x\n  ", "x\n"),
            ("a: |+\n  x\n\n ", "x\n\n"),
            ("a: |\n  x\r\n", "x\n"),
        ] {
            let root = from_yaml(text).unwrap();
            assert_eq!(root.get("a").unwrap().as_text(), Some(value), "{text:?}");
        }
    }

    #[test]
    fn copies_of_text_are_bounded() {
        let half = "x".repeat(MAX_BYTES / 4);
        let text = |aliases: usize| format!("a: &a {half}\nb: [{}]\n", "*a, ".repeat(aliases));
        // The anchor holds one copy.
        assert!(from_yaml(&text(3)).is_ok());
        assert!(problem(&text(4)).contains("bytes"));
        let nested = format!("&a [&b [&c [&d [&e {half}]]]]");
        assert!(problem(&nested).contains("bytes"));
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in "[a&*<:\\[\\]{}\"'!|>, \n\t0-9-]{0,80}") {
            from_yaml(&text).ok();
        }

        #[test]
        fn any_text_never_panics(text in any::<String>()) {
            from_yaml(&text).ok();
        }

        #[test]
        fn json_reads_the_same(words in proptest::collection::btree_map("[a-z]{1,4}", "[ -~]{0,9}", 1..6)) {
            let text = serde_json::to_string(&words).unwrap();
            prop_assert_eq!(from_yaml(&text).unwrap().to_json(), from_json(text.as_bytes()).unwrap().to_json());
        }
    }
}
