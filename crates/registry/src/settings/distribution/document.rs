//! YAML, taken apart: each scalar under the name that its path gives it.

use serde_yaml::granit_parser::{Event, Parser, ScalarStyle, Span};

use super::key::PREFIX;

/// Maps and lists in one another.
const DEPTH_LIMIT: usize = 16;
/// Scalars of one document.
const LEAVES_LIMIT: usize = 10_000;

/// A scalar, or a map or list without any.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// The keys on the way to it in lower case, and the places in lists from 0 on, joined by `_`.
    pub(super) name: String,
    /// As it is written there; nothing for null.
    pub(super) text: String,
    pub(super) line: usize,
}

/// Why a text is no document.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) line: usize,
    pub(super) reason: String,
}

type Result<T> = std::result::Result<T, Unreadable>;

/// The scalars of the map or list in `text`, each named below `prefix`.
///
/// Errors: no YAML, a scalar alone, a key that stands there twice, aliases.
pub(super) fn leaves(text: &str, prefix: &str) -> Result<Vec<Leaf>> {
    let mut walk = Walk {
        events: Parser::new_from_str(text),
        leaves: Vec::new(),
    };
    loop {
        let (event, line) = walk.next()?;
        match event {
            Event::StreamEnd | Event::DocumentEnd => return Ok(walk.leaves),
            Event::MappingStart(..) => walk.map(prefix, line, 0)?,
            Event::SequenceStart(..) if prefix != PREFIX => walk.list(prefix, line, 0)?,
            Event::Scalar(text, ScalarStyle::Plain, ..) if text.is_empty() => {}
            Event::Scalar(..) | Event::SequenceStart(..) => {
                return Err(unreadable(line, "expected keys with values"));
            }
            _ => {}
        }
    }
}

struct Walk<'t> {
    events: Parser<'t, serde_yaml::granit_parser::StrInput<'t>>,
    leaves: Vec<Leaf>,
}

impl<'t> Walk<'t> {
    fn next(&mut self) -> Result<(Event<'t>, usize)> {
        loop {
            return match self.events.next() {
                None => Ok((Event::StreamEnd, 0)),
                Some(Ok((Event::Comment(..), _))) => continue,
                Some(Ok((event, span))) => Ok((event, line(span))),
                Some(Err(error)) => Err(unreadable(error.marker().line(), error.info())),
            };
        }
    }

    fn map(&mut self, name: &str, start: usize, depth: usize) -> Result<()> {
        let mut keys = Vec::new();
        loop {
            let (event, line) = self.next()?;
            let key = match event {
                Event::MappingEnd if keys.is_empty() => {
                    return self.add(name.to_owned(), "", start);
                }
                Event::MappingEnd => return Ok(()),
                Event::Scalar(key, ..) => key.to_lowercase(),
                _ => return Err(unreadable(line, "expected a key")),
            };
            if keys.contains(&key) {
                return Err(unreadable(line, format!("{key} stands there twice")));
            }
            self.value(format!("{name}_{key}"), depth)?;
            keys.push(key);
        }
    }

    fn list(&mut self, name: &str, start: usize, depth: usize) -> Result<()> {
        for index in 0.. {
            let (event, line) = self.next()?;
            if event == Event::SequenceEnd {
                if index == 0 {
                    self.add(name.to_owned(), "", start)?;
                }
                break;
            }
            self.node((event, line), format!("{name}_{index}"), depth)?;
        }
        Ok(())
    }

    fn value(&mut self, name: String, depth: usize) -> Result<()> {
        let event = self.next()?;
        self.node(event, name, depth)
    }

    fn node(
        &mut self,
        (event, line): (Event<'t>, usize),
        name: String,
        depth: usize,
    ) -> Result<()> {
        if depth == DEPTH_LIMIT {
            return Err(unreadable(line, "too deep"));
        }
        match event {
            Event::Scalar(text, style, ..) => {
                let is_null = style == ScalarStyle::Plain && matches!(&*text, "~" | "null");
                self.add(name, if is_null { "" } else { &text }, line)
            }
            Event::MappingStart(..) => self.map(&name, line, depth + 1),
            Event::SequenceStart(..) => self.list(&name, line, depth + 1),
            Event::Alias(_) => Err(unreadable(
                line,
                "aliases are not followed: repeat the value",
            )),
            _ => Err(unreadable(line, "expected a value")),
        }
    }

    fn add(&mut self, name: String, text: &str, line: usize) -> Result<()> {
        if self.leaves.len() == LEAVES_LIMIT {
            return Err(unreadable(line, "more than anybody can mean"));
        }
        let text = text.to_owned();
        self.leaves.push(Leaf { name, text, line });
        Ok(())
    }
}

fn line(span: Span) -> usize {
    span.start.line()
}

fn unreadable(line: usize, reason: impl Into<String>) -> Unreadable {
    let reason = reason.into();
    Unreadable { line, reason }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn scalars_keep_their_text_and_their_line() {
        let text = "a:\n  B: 007 # seven\n  c: [x, 'y: z']\nd:\ne: {}\nf: |\n  1\n  2\ng: 'null'\nh: 1.50\n";
        let leaves = leaves(text, "p").unwrap();
        let leaves: Vec<_> = leaves
            .iter()
            .map(|leaf| (&*leaf.name, &*leaf.text, leaf.line))
            .collect();
        let expected = [
            ("p_a_b", "007", 2),
            ("p_a_c_0", "x", 3),
            ("p_a_c_1", "y: z", 3),
            ("p_d", "", 4),
            ("p_e", "", 5),
            ("p_f", "1\n2\n", 7),
            ("p_g", "null", 9),
            ("p_h", "1.50", 10),
        ];
        assert_eq!(leaves, expected);
    }

    #[test]
    fn depth_is_bounded() {
        let deep = "[".repeat(1000) + &"]".repeat(1000);
        assert!(leaves(&deep, "p").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([a-z]{0,3}[:\\-\\[\\]{},&*'\"|>#!?% \n]{0,4}){0,30}") {
            leaves(&text, "p").ok();
        }
    }
}
