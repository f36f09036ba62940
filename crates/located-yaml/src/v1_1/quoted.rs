//! Multi-line quoted scalars whose continuation lines are not indented deeper than their key.
//!
//! go-yaml and many emitters write them so; the parser here requires deeper lines. Leading blanks of such a line are
//! insignificant, so they can be added.

use std::ops::Range;

/// A text with added indentation.
pub(super) struct Reindented {
    pub(super) text: String,
    /// Offsets of the added blanks.
    blanks: Vec<usize>,
}

impl Reindented {
    /// Adds blanks where they seem to be missing; `None` if nowhere.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut lines = Lines::default();
        for line in text.split_inclusive('\n') {
            lines.line(line);
        }
        let Lines { text, blanks, .. } = lines;
        (!blanks.is_empty()).then_some(Self { text, blanks })
    }

    /// Whether all blanks are inside multi-line quoted scalars, where they are insignificant.
    pub(super) fn is_harmless(&self, quoted: &[Range<usize>]) -> bool {
        let is_inside = |at: &usize| {
            let behind = quoted.partition_point(|range| range.start <= *at);
            behind > 0 && quoted[behind - 1].contains(at)
        };
        self.blanks.iter().all(is_inside)
    }
}

#[derive(Default)]
struct Lines {
    text: String,
    blanks: Vec<usize>,
    inside: Inside,
}

/// Scalar that the next line continues.
#[derive(Clone, Copy, Default)]
enum Inside {
    #[default]
    Nothing,
    /// A quoted scalar whose lines need this indentation.
    Quoted { quote: char, depth: usize },
    /// A block scalar, indented deeper than `parent`.
    Literal { parent: usize },
}

impl Lines {
    fn line(&mut self, line: &str) {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        let is_blank = content.trim().is_empty();
        match self.inside {
            Inside::Quoted { quote, depth } => {
                if !is_blank && indent < depth {
                    self.blanks.push(self.text.len());
                    self.text.extend((indent..depth).map(|_| ' '));
                }
                if end_of_quoted(content, quote).is_some() {
                    self.inside = Inside::Nothing;
                }
            }
            Inside::Literal { parent } if is_blank || indent > parent => {}
            _ => self.inside = begun(content, indent),
        }
        self.text.push_str(line);
    }
}

/// The scalar that a line opens and does not close.
fn begun(content: &str, indent: usize) -> Inside {
    let mut rest = content;
    let mut column = indent;
    let mut parent = indent;
    while let Some(item) = rest.strip_prefix("- ").or_else(|| rest.strip_prefix("? ")) {
        parent = column;
        let trimmed = item.trim_start_matches(' ');
        column += rest.len() - trimmed.len();
        rest = trimmed;
    }
    if let Some(value) = behind_key(rest) {
        parent = column;
        rest = value;
    }
    rest = rest.trim_start();
    while rest.starts_with(['!', '&']) {
        let word = rest.find(' ').unwrap_or(rest.len());
        rest = rest[word..].trim_start();
    }
    match rest.chars().next() {
        Some(quote @ ('\'' | '"')) if end_of_quoted(&rest[1..], quote).is_none() => {
            let depth = parent + 1;
            Inside::Quoted { quote, depth }
        }
        Some('|' | '>') => Inside::Literal { parent },
        _ => Inside::Nothing,
    }
}

/// The text after the key of a member.
fn behind_key(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| ['\'', '"'].contains(c));
    if let Some(quote) = quote {
        let end = 1 + end_of_quoted(&text[1..], quote)?;
        return text[end..].trim_start().strip_prefix(": ");
    }
    text.split_once(": ").map(|(_, value)| value)
}

/// Offset after the closing quote.
fn end_of_quoted(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote {
            let is_doubled = quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == quote);
            if !is_doubled {
                return Some(at + 1);
            }
            chars.next();
        }
    }
    None
}
