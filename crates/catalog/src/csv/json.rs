//! JSON as Go's `encoding/json` writes it.

use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::normal::html_escaped;

/// Compact JSON of a record.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    print(value, Escapes { html: false })
}

/// [`to_json`] with `<`, `>` and `&` escaped in strings.
pub(super) fn to_html_safe_json(value: &impl Serialize) -> String {
    print(value, Escapes { html: true })
}

fn print(value: &impl Serialize, escapes: Escapes) -> String {
    let mut json = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut json, escapes))
        .expect("records of texts, numbers and JSON can be written");
    String::from_utf8(json).expect("JSON is UTF-8")
}

/// Escapes U+2028 and U+2029 always, which JSON does not require. Source: Go's `encoding/json`.
struct Escapes {
    html: bool,
}

impl Escapes {
    fn write<W: ?Sized + io::Write>(&self, writer: &mut W, text: &str) -> io::Result<()> {
        if self.html {
            writer.write_all(html_escaped(text).as_bytes())
        } else {
            writer.write_all(text.as_bytes())
        }
    }
}

impl Formatter for Escapes {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(index) = separator(rest) {
            let (before, after) = rest.split_at(index);
            let escaped = if after.starts_with('\u{2028}') {
                "\\u2028"
            } else {
                "\\u2029"
            };
            self.write(writer, before)?;
            writer.write_all(escaped.as_bytes())?;
            rest = &after['\u{2028}'.len_utf8()..];
        }
        self.write(writer, rest)
    }

    /// Raw JSON is in the normal form already.
    fn write_raw_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.write(writer, fragment)
    }
}

/// Offset of the first line separator.
fn separator(text: &str) -> Option<usize> {
    let lead = memchr::memchr(LEAD, text.as_bytes())?;
    let found = text[lead..].find(['\u{2028}', '\u{2029}'])?;
    Some(lead + found)
}

/// The first byte of both line separators.
const LEAD: u8 = 0xe2;
