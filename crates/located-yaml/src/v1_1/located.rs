//! A YAML or JSON document with positions, for files that people write: error messages name line and column.

use std::collections::HashMap;

use super::nodes::{NodeKind, Nodes, with_nodes};
use super::scalar::Scalar;
use crate::{DocumentError, Position};

/// Deepest nesting; each level takes stack, and no hand-written file is deeper.
const MAX_DEPTH: usize = 100;
/// Most values, expanded aliases included: some 30 MB.
const MAX_VALUES: usize = 250_000;
/// Most text, expanded aliases included: an alias of a few bytes repeats a text of megabytes. Units: bytes.
const MAX_TEXT: usize = 64 << 20;
const BEYOND: &str = "another document begins here, and only one is read";

/// A value with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// Its start.
    pub place: Position,
    /// The value.
    pub value: Value,
}

/// A YAML 1.1 value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// Range: smallest signed to largest unsigned 64-bit integer.
    Integer(i128),
    /// Possibly infinite or NaN.
    Float(f64),
    /// Text.
    Text(String),
    /// Items in order.
    List(Vec<Located>),
    /// Members in file order with duplicates; merged ones at the place of their `<<`.
    Object(Vec<LocatedMember>),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedMember {
    /// Name; of a key that is no text, its spelling.
    pub name: String,
    /// Position of the name.
    pub place: Position,
    /// Value.
    pub value: Located,
}

/// Reads the single document of `text`.
///
/// Errors: not YAML, more than one document, or beyond the limits of this module.
///
/// # Examples
/// ```
/// use located_yaml::v1_1::{Value, read};
///
/// let Value::Object(members) = read("a: 1\nb: [x, yes]").unwrap().value else {
///     panic!("an object");
/// };
/// let Value::List(b) = &members[1].value.value else {
///     panic!("a list");
/// };
/// assert_eq!(b[1].place.to_string(), "2:8");
/// assert_eq!(b[1].value, Value::Bool(true));
/// ```
pub fn read(text: &str) -> Result<Located, DocumentError> {
    with_nodes(text, BEYOND, |nodes| {
        if nodes.is_null() {
            let place = Position::START;
            let value = Value::Null;
            return Ok(Located { place, value });
        }
        let mut builder = Builder {
            nodes,
            values: 0,
            text: 0,
        };
        builder.located(0, 0)
    })
}

struct Builder<'a> {
    nodes: &'a Nodes<'a>,
    values: usize,
    /// Length of all texts and names. Units: bytes.
    text: usize,
}

impl Builder<'_> {
    fn located(&mut self, at: usize, depth: usize) -> Result<Located, DocumentError> {
        let value = self.value(at, depth)?;
        let place = self.nodes.get(at).place;
        Ok(Located { place, value })
    }

    fn value(&mut self, at: usize, depth: usize) -> Result<Value, DocumentError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.wrong(at, format!("there are more than {MAX_VALUES} values")));
        }
        if depth > MAX_DEPTH {
            let why = format!("objects and lists are nested more than {MAX_DEPTH} deep");
            return Err(self.wrong(at, why));
        }
        Ok(match &self.nodes.get(at).kind {
            NodeKind::Scalar(scalar) => {
                if let Scalar::Text(text) = scalar {
                    self.count(at, text)?;
                }
                scalar.into()
            }
            NodeKind::Merge => Value::Text("<<".to_owned()),
            NodeKind::List { end } => Value::List(self.list(at + 1, *end, depth + 1)?),
            NodeKind::Map { end } => Value::Object(self.object(at + 1, *end, depth + 1)?),
            NodeKind::Alias { of } => self.value(*of, depth)?,
        })
    }

    fn list(
        &mut self,
        from: usize,
        end: usize,
        depth: usize,
    ) -> Result<Vec<Located>, DocumentError> {
        let mut list = Vec::new();
        let mut at = from;
        while at < end {
            list.push(self.located(at, depth)?);
            at = self.nodes.after(at);
        }
        Ok(list)
    }

    fn object(
        &mut self,
        from: usize,
        end: usize,
        depth: usize,
    ) -> Result<Vec<LocatedMember>, DocumentError> {
        let mut members = Vec::new();
        let mut key = from;
        while key < end {
            let at = self.nodes.after(key);
            if let NodeKind::Merge = self.nodes.get(key).kind {
                let merged = self.merged(at, depth)?;
                members.extend(merged.into_iter().map(|it| (it, MemberOrigin::Merged)));
            } else {
                let member = LocatedMember {
                    name: self.name(key)?,
                    place: self.nodes.get(key).place,
                    value: self.located(at, depth)?,
                };
                members.push((member, MemberOrigin::Own));
            }
            key = self.nodes.after(at);
        }
        Ok(effective(members))
    }

    /// Members merged from an object, or from a list of objects, of which the first wins.
    fn merged(&mut self, at: usize, depth: usize) -> Result<Vec<LocatedMember>, DocumentError> {
        let objects = match self.value(at, depth)? {
            Value::List(list) => list.into_iter().map(|it| it.value).collect(),
            value => vec![value],
        };
        let mut members = Vec::new();
        for object in objects.into_iter().rev() {
            let Value::Object(object) = object else {
                return Err(self.wrong(at, "`<<` merges objects only"));
            };
            members.extend(object);
        }
        Ok(members)
    }

    fn name(&mut self, at: usize) -> Result<String, DocumentError> {
        let of = match self.nodes.get(at).kind {
            NodeKind::Alias { of } => of,
            _ => at,
        };
        let name = match &self.nodes.get(of).kind {
            NodeKind::Scalar(scalar) => scalar.name(),
            _ => None,
        };
        let why = "a key must be a string, a number or a boolean";
        let name = name.ok_or_else(|| self.wrong(at, why))?;
        self.count(at, &name)?;
        Ok(name.into())
    }

    /// Counts a text before it is copied.
    fn count(&mut self, at: usize, text: &str) -> Result<(), DocumentError> {
        self.text = self.text.saturating_add(text.len());
        if self.text > MAX_TEXT {
            let why = format!("the texts have more than {} MiB", MAX_TEXT >> 20);
            return Err(self.wrong(at, why));
        }
        Ok(())
    }

    fn wrong(&self, at: usize, why: impl Into<String>) -> DocumentError {
        DocumentError::new(self.nodes.get(at).place, why)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberOrigin {
    Own,
    Merged,
}

/// Drops merged members that are repeated later, and members before a merged one of the same name. Source: go-yaml.
fn effective(members: Vec<(LocatedMember, MemberOrigin)>) -> Vec<LocatedMember> {
    let mut behind: HashMap<String, MemberOrigin> = HashMap::new();
    let mut kept = Vec::new();
    for (member, origin) in members.into_iter().rev() {
        let is_kept = match behind.get(&member.name) {
            None => true,
            Some(behind) => *behind == MemberOrigin::Own && origin == MemberOrigin::Own,
        };
        if is_kept {
            behind.insert(member.name.clone(), origin);
            kept.push(member);
        }
    }
    kept.reverse();
    kept
}

impl From<&Scalar<'_>> for Value {
    fn from(scalar: &Scalar<'_>) -> Self {
        match scalar {
            Scalar::Null => Self::Null,
            Scalar::Bool(value) => Self::Bool(*value),
            Scalar::Integer(value) => Self::Integer(*value),
            Scalar::Float(value) => Self::Float(*value),
            Scalar::Text(text) => Self::Text(text.clone().into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `line:column` and value of each top-level member.
    fn members(text: &str) -> Vec<String> {
        let Value::Object(members) = read(text).unwrap().value else {
            panic!("{text} is no object");
        };
        let each = members.iter().map(|it| {
            let (name, value) = (it.place, it.value.place);
            format!("{name} {} {value} {:?}", it.name, it.value.value)
        });
        each.collect()
    }

    fn refused(text: &str) -> (usize, usize, String) {
        let DocumentError { at, reason } = read(text).unwrap_err();
        (at.line, at.column, reason)
    }

    #[test]
    fn values_have_positions() {
        let text = "a: 4.10\n\"b\":   ~\n1: &x 'ä'\nä: *x\na: on\n";
        assert_eq!(
            members(text),
            [
                "1:1 a 1:4 Float(4.1)",
                "2:1 b 2:8 Null",
                "3:1 1 3:7 Text(\"ä\")",
                "4:1 ä 4:4 Text(\"ä\")",
                "5:1 a 5:4 Bool(true)",
            ]
        );
    }

    #[test]
    fn merged_members_are_at_the_place_of_the_merge_key() {
        let members = |text: &str| {
            let whole = format!("x: &x {{a: 1, b: 2}}\ny: {{{text}}}");
            let Value::Object(mut whole) = read(&whole).unwrap().value else {
                panic!("an object");
            };
            let Some(Value::Object(y)) = whole.pop().map(|it| it.value.value) else {
                panic!("an object");
            };
            let each = y.iter().map(|it| match it.value.value {
                Value::Integer(value) => format!("{}{value}", it.name),
                ref other => panic!("{other:?}"),
            });
            each.collect::<Vec<_>>().join(" ")
        };
        for (text, expected) in [
            ("<<: *x, a: 0", "b2 a0"),
            ("a: 0, <<: *x, c: 3", "a1 b2 c3"),
            ("<<: [*x, {b: 3, c: 4}]", "c4 a1 b2"),
            ("a: 0, a: 5", "a0 a5"),
            ("a: 0, <<: *x, a: 5", "a0 b2 a5"),
        ] {
            assert_eq!(members(text), expected, "{text}");
        }
    }

    #[test]
    fn an_empty_text_is_null() {
        for text in ["", "# nothing\n", "---\n", "~"] {
            assert_eq!(read(text).unwrap().value, Value::Null, "{text:?}");
        }
    }

    #[test]
    fn syntax_errors_have_positions() {
        let (line, column, why) = refused("a: 1\n---\nb: 2\n");
        assert_eq!((line, column), (2, 1), "{why}");
        let (line, column, why) = refused("a: 1\nb: {<<: 5}\n");
        assert_eq!((line, column), (2, 9), "{why}");
        let (line, column, why) = refused("a: 1\n? [b]\n: c\n");
        assert_eq!((line, column), (2, 3), "{why}");
    }

    #[test]
    fn deep_and_large_documents_are_refused() {
        let deep = "[".repeat(MAX_DEPTH + 2) + &"]".repeat(MAX_DEPTH + 2);
        let (line, _, why) = refused(&deep);
        assert!(line == 1 && why.contains("deep"), "{why}");
        let mut large = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..7 {
            let alias = format!("*a{}, ", n - 1).repeat(10);
            large.extend(["a", &n.to_string(), ": &a", &n.to_string()]);
            large.extend([" [", alias.trim_end_matches(", "), "]\n"]);
        }
        let (_, _, why) = refused(&large);
        assert!(why.contains("more than"), "{why}");
    }

    #[test]
    fn repeated_texts_are_bounded() {
        let repeated = |times: usize| {
            let text = "x".repeat(1 << 20);
            format!("a: &a {text}\nb: [{}]\n", "*a, ".repeat(times))
        };
        // The names take two bytes beside the texts.
        assert!(read(&repeated(62)).is_ok());
        let (line, _, why) = refused(&repeated(63));
        assert_eq!((line, why.as_str()), (1, "the texts have more than 64 MiB"));
        let keys = |times: usize| {
            let text = "x".repeat(1 << 20);
            format!("a: &a {text}\nb:\n{}", "- {*a : 1}\n".repeat(times))
        };
        assert!(read(&keys(62)).is_ok());
        assert!(read(&keys(63)).is_err());
    }
}
