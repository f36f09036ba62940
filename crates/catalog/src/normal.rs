//! The form in which documents are kept and served: one line of JSON without spaces, members sorted by the bytes of
//! their names, of equal names the last, numbers as ECMAScript prints 64-bit floats (but `-0` as such), and of all
//! characters only those escaped that must be, besides U+2028 and U+2029.

mod json;
mod number;
mod text;
mod writer;

use std::fmt;

pub(crate) use self::text::{html_escaped, unescaped};
pub(crate) use self::writer::{JsonWriter, Style};

/// How deep objects and lists may lie in each other. Source: Go's `encoding/json`, which the peer reads with.
pub const MAX_DEPTH: usize = 10_000;

/// What is wrong with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Bytes from its beginning.
    pub at: usize,
    /// What is wrong there.
    pub why: String,
}

/// The normal form of one JSON text.
///
/// Errors: it is no JSON, holds more than one value or a number beyond 64-bit floats, or is deeper than [`MAX_DEPTH`].
///
/// # Examples
/// ```
/// let normal = catalog::normal::normalised(r#"{"b": 1.50, "a": "\u003c"}"#);
/// assert_eq!(normal.as_deref(), Ok(r#"{"a":"<","b":1.5}"#));
/// ```
pub fn normalised(json: &str) -> Result<String, Malformed> {
    let mut writer = JsonWriter::default();
    writer.json(json)?;
    Ok(writer.into_text())
}

impl Malformed {
    pub(crate) fn new(at: usize, why: impl Into<String>) -> Self {
        Self {
            at,
            why: why.into(),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.why)
    }
}

impl std::error::Error for Malformed {}

#[cfg(test)]
mod tests;
