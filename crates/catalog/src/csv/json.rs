//! JSON text as the peer's encoder writes it.

use std::io;

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Compact JSON of a record.
pub(crate) fn to_json(value: &impl Serialize) -> String {
    let mut json = Vec::new();
    value
        .serialize(&mut Serializer::with_formatter(&mut json, Lines))
        .expect("records of texts, numbers and JSON can be written");
    String::from_utf8(json).expect("JSON is UTF-8")
}

/// The two line separators of Unicode are escaped, though JSON does not ask for it.
struct Lines;

impl Formatter for Lines {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(index) = rest.find(['\u{2028}', '\u{2029}']) {
            let (before, after) = rest.split_at(index);
            let escaped = if after.starts_with('\u{2028}') {
                "\\u2028"
            } else {
                "\\u2029"
            };
            writer.write_all(before.as_bytes())?;
            writer.write_all(escaped.as_bytes())?;
            rest = &after['\u{2028}'.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }
}
