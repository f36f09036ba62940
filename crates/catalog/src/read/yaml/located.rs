//! One document of YAML or JSON with the place of everything in it: for files that people write, whose mistakes are
//! shown to them where they are.

use std::collections::HashSet;

use super::expand::name;
use super::nodes::{Kind, Nodes};
use super::scalar::Scalar;
pub use super::{Place, Wrong};

/// How deep objects and lists may lie in each other: no file of a person is deeper, and each takes some stack.
const MAX_DEPTH: usize = 100;
/// How many values there may be, those of aliases each time: some 30 MB.
const MAX_VALUES: usize = 250_000;
const BEYOND: &str = "another document begins here, and only one is read";

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    pub place: Place,
    pub value: Value,
}

/// A value, with plain texts taken as YAML 1.1 has them.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    /// From the smallest signed to the largest unsigned one of 64 bits.
    Integer(i128),
    /// Also not finite.
    Float(f64),
    Text(String),
    List(Vec<Located>),
    /// In the order in which they stand, also those of the same name; what `<<` takes over comes last.
    Object(Vec<Member>),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub name: String,
    /// Where the name stands.
    pub place: Place,
    pub value: Located,
}

/// Reads the one document that `text` consists of.
///
/// Errors: it is no YAML, or more than one document, or larger than any file of a person.
///
/// # Examples
/// ```
/// use catalog::located::{Value, read};
///
/// let Value::Object(members) = read("a: 1\nb: [x, yes]").unwrap().value else {
///     panic!("an object");
/// };
/// let Value::List(b) = &members[1].value.value else {
///     panic!("a list");
/// };
/// assert_eq!((b[1].place.line, b[1].place.column), (2, 8));
/// assert_eq!(b[1].value, Value::Bool(true));
/// ```
pub fn read(text: &str) -> Result<Located, Wrong> {
    super::with_nodes(text, BEYOND, |nodes| {
        if nodes.is_null() {
            let place = Place { line: 1, column: 1 };
            let value = Value::Null;
            return Ok(Located { place, value });
        }
        let mut builder = Builder { nodes, values: 0 };
        builder.located(0, 0)
    })
}

struct Builder<'a> {
    nodes: &'a Nodes<'a>,
    values: usize,
}

impl Builder<'_> {
    fn located(&mut self, at: usize, depth: usize) -> Result<Located, Wrong> {
        let value = self.value(at, depth)?;
        let place = self.nodes.get(at).place;
        Ok(Located { place, value })
    }

    fn value(&mut self, at: usize, depth: usize) -> Result<Value, Wrong> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.wrong(at, format!("there are more than {MAX_VALUES} values")));
        }
        if depth > MAX_DEPTH {
            let why = format!("objects and lists lie more than {MAX_DEPTH} deep in each other");
            return Err(self.wrong(at, why));
        }
        Ok(match &self.nodes.get(at).kind {
            Kind::Scalar(scalar) => scalar.into(),
            Kind::Merge => Value::Text("<<".to_owned()),
            Kind::List { end } => Value::List(self.list(at + 1, *end, depth + 1)?),
            Kind::Map { end } => Value::Object(self.object(at + 1, *end, depth + 1)?),
            Kind::Alias { of } => self.value(*of, depth)?,
        })
    }

    fn list(&mut self, from: usize, end: usize, depth: usize) -> Result<Vec<Located>, Wrong> {
        let mut list = Vec::new();
        let mut at = from;
        while at < end {
            list.push(self.located(at, depth)?);
            at = self.nodes.after(at);
        }
        Ok(list)
    }

    fn object(&mut self, from: usize, end: usize, depth: usize) -> Result<Vec<Member>, Wrong> {
        let mut members = Vec::new();
        let mut taken_over = Vec::new();
        let mut key = from;
        while key < end {
            let at = self.nodes.after(key);
            match self.nodes.get(key).kind {
                Kind::Merge => self.take_over(at, depth, &mut taken_over)?,
                _ => members.push(Member {
                    name: self.name(key)?,
                    place: self.nodes.get(key).place,
                    value: self.located(at, depth)?,
                }),
            }
            key = self.nodes.after(at);
        }
        if !taken_over.is_empty() {
            let mut names: HashSet<String> = members.iter().map(|it| it.name.clone()).collect();
            taken_over.retain(|it: &Member| names.insert(it.name.clone()));
            members.append(&mut taken_over);
        }
        Ok(members)
    }

    /// The members of an object, or of several in a list.
    fn take_over(
        &mut self,
        at: usize,
        depth: usize,
        members: &mut Vec<Member>,
    ) -> Result<(), Wrong> {
        let objects = match self.value(at, depth)? {
            Value::List(list) => list.into_iter().map(|it| it.value).collect(),
            value => vec![value],
        };
        for object in objects {
            let Value::Object(object) = object else {
                return Err(self.wrong(at, "`<<` takes over the members of objects only"));
            };
            members.extend(object);
        }
        Ok(())
    }

    fn name(&self, at: usize) -> Result<String, Wrong> {
        let of = match self.nodes.get(at).kind {
            Kind::Alias { of } => of,
            _ => at,
        };
        let name = match &self.nodes.get(of).kind {
            Kind::Scalar(scalar) => name(scalar),
            _ => None,
        };
        let why = "a name is a text, a number or a truth value";
        name.map(Into::into).ok_or_else(|| self.wrong(at, why))
    }

    fn wrong(&self, at: usize, why: impl Into<String>) -> Wrong {
        Wrong::new(self.nodes.get(at).place, why)
    }
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

    /// `line:column` and the value, of each member below the whole.
    fn members(text: &str) -> Vec<String> {
        let Value::Object(members) = read(text).unwrap().value else {
            panic!("{text} is no object");
        };
        let each = members.iter().map(|it| {
            let at = |place: Place| format!("{}:{}", place.line, place.column);
            let (name, value) = (at(it.place), at(it.value.place));
            format!("{name} {} {value} {:?}", it.name, it.value.value)
        });
        each.collect()
    }

    fn refused(text: &str) -> (usize, usize, String) {
        let Wrong { place, why } = read(text).unwrap_err();
        (place.line, place.column, why)
    }

    #[test]
    fn everything_has_its_place() {
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
    fn what_is_taken_over_comes_last_and_replaces_nothing() {
        let text = "x: &x {a: 1, b: 2}\n'y': {<<: [*x, {b: 3, c: 4}], a: 0}";
        let Value::Object(whole) = read(text).unwrap().value else {
            panic!("an object");
        };
        let Value::Object(y) = &whole[1].value.value else {
            panic!("an object");
        };
        let of = |it: &Member| (it.name.clone(), it.value.value.clone());
        let expected = [("a", 0), ("b", 2), ("c", 4)];
        let expected = expected.map(|(name, value)| (name.to_owned(), Value::Integer(value)));
        assert_eq!(y.iter().map(of).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_empty_text_is_null() {
        for text in ["", "# nothing\n", "---\n", "~"] {
            assert_eq!(read(text).unwrap().value, Value::Null, "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_place() {
        let (line, column, why) = refused("a: 1\n---\nb: 2\n");
        assert_eq!((line, column), (2, 1), "{why}");
        let (line, column, why) = refused("a: 1\nb: {<<: 5}\n");
        assert_eq!((line, column), (2, 9), "{why}");
        let (line, column, why) = refused("a: 1\n? [b]\n: c\n");
        assert_eq!((line, column), (2, 3), "{why}");
    }

    #[test]
    fn a_text_without_end_is_refused() {
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
}
