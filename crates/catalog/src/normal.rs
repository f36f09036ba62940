//! The normal form (canonical JSON) of documents: one line without spaces, members sorted by the bytes of their names,
//! the last of duplicates, numbers as ECMAScript prints 64-bit floats (but `-0` as such), and minimal escapes plus
//! U+2028 and U+2029. Source: operator-registry, `alpha/declcfg/declcfg.go`, `Meta.UnmarshalJSON`.

mod json;
mod malformed;
mod number;
mod text;
mod writer;

pub use self::malformed::{MAX_DEPTH, Malformed};
pub(crate) use self::text::{html_escaped, unescaped};
pub(crate) use self::writer::{JsonWriter, Style};

/// Normalises one JSON value.
///
/// Errors: not JSON, more than one value, a number beyond 64-bit floats, or nesting deeper than [`MAX_DEPTH`].
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

#[cfg(test)]
mod tests;
