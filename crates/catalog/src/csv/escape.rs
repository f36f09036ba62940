//! JSON text as the peer's encoder writes it.

use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// What is written as `\u....` though JSON does not ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    /// The two line separators of Unicode.
    Lines,
    /// These, and what means something to HTML.
    Html,
}

/// Compact JSON of a record.
pub(crate) fn to_json(value: &impl Serialize, escape: Escape) -> String {
    let mut json = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut json, escape))
        .expect("records of texts, numbers and JSON can be written");
    String::from_utf8(json).expect("JSON is UTF-8")
}

impl Escape {
    fn replacement(self, c: char) -> Option<&'static str> {
        match c {
            '\u{2028}' => Some("\\u2028"),
            '\u{2029}' => Some("\\u2029"),
            '<' if self == Self::Html => Some("\\u003c"),
            '>' if self == Self::Html => Some("\\u003e"),
            '&' if self == Self::Html => Some("\\u0026"),
            _ => None,
        }
    }

    fn write<W: ?Sized + io::Write>(self, writer: &mut W, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some((index, c, replacement)) = rest
            .char_indices()
            .find_map(|(index, c)| Some((index, c, self.replacement(c)?)))
        {
            writer.write_all(&rest.as_bytes()[..index])?;
            writer.write_all(replacement.as_bytes())?;
            rest = &rest[index + c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}

impl Formatter for Escape {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.write(writer, fragment)
    }

    /// Texts that are JSON already are normal, so that these letters stand in strings only.
    fn write_raw_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.write(writer, fragment)
    }
}
