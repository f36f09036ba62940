//! Portable YAML: strings that a YAML 1.1 or 1.2 reader could resolve otherwise are quoted.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

/// Depth of block style; deeper values are in flow style.
const MAX_DEPTH: usize = 32;
/// Longest simple key. Units: bytes. Source: YAML 1.1, section 5.1.
const MAX_KEY: usize = 500;
/// Words that YAML 1.1 resolves to booleans or null, in any case.
const WORDS: &[&str] = &["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// Writes JSON without spaces between its values as a YAML document, with its `---`. Members keep their order.
///
/// Errors: those of `out`; `InvalidData` or `UnexpectedEof` – `json` is not JSON, or has a text that is not Unicode.
///
/// # Examples
/// ```
/// let mut text = Vec::new();
/// located_yaml::portable::write(r#"{"a":["no",1]}"#, &mut text).unwrap();
/// assert_eq!(text, b"---\na:\n- \"no\"\n- 1\n");
/// ```
pub fn write(json: &str, out: &mut impl Write) -> io::Result<()> {
    let json: &RawValue = serde_json::from_str(json)?;
    let mut text = String::from("---\n");
    block(json.get(), 0, 0, &mut text)?;
    out.write_all(text.as_bytes())
}

/// Writes a value in block style.
fn block(json: &str, indent: usize, depth: usize, out: &mut String) -> serde_json::Result<()> {
    match json.as_bytes() {
        [b'{', rest @ ..] if rest != b"}" && depth < MAX_DEPTH => {
            for (index, (key, value)) in members(json)?.into_iter().enumerate() {
                if index > 0 {
                    pad(indent, out);
                }
                member(&key, value.get(), indent, depth, out)?;
            }
        }
        [b'[', rest @ ..] if rest != b"]" && depth < MAX_DEPTH => {
            for (index, item) in items(json)?.into_iter().enumerate() {
                if index > 0 {
                    pad(indent, out);
                }
                out.push_str("- ");
                block(item.get(), indent + 2, depth + 1, out)?;
            }
        }
        _ => {
            scalar(json, indent, out)?;
            out.push('\n');
        }
    }
    Ok(())
}

fn member(
    key: &str,
    value: &str,
    indent: usize,
    depth: usize,
    out: &mut String,
) -> serde_json::Result<()> {
    let is_list = value.starts_with('[') && value != "[]" && depth + 1 < MAX_DEPTH;
    let is_object = value.starts_with('{') && value != "{}" && depth + 1 < MAX_DEPTH;
    if key.len() > MAX_KEY {
        let _ = writeln!(out, "? {}", quoted(key));
        pad(indent, out);
    } else {
        out.push_str(&plain_or_quoted(key));
    }
    out.push(':');
    if is_list || is_object {
        // List items are aligned with their key.
        let indent = if is_list { indent } else { indent + 2 };
        out.push('\n');
        pad(indent, out);
        block(value, indent, depth + 1, out)
    } else {
        out.push(' ');
        scalar(value, indent + 2, out)?;
        out.push('\n');
        Ok(())
    }
}

/// Writes a scalar or a flow-style value.
fn scalar(json: &str, indent: usize, out: &mut String) -> serde_json::Result<()> {
    match json.as_bytes() {
        // YAML integers have no negative zero.
        b"-0" => out.push_str("-0.0"),
        [b'"', ..] => {
            let YamlText(text) = serde_json::from_str(json)?;
            if is_literal(&text) {
                literal(&text, indent, out);
            } else {
                out.push_str(&plain_or_quoted(&text));
            }
        }
        [b'{' | b'[', ..] => out.push_str(&printable(json)),
        _ => out.push_str(json),
    }
    Ok(())
}

/// Writes a literal block scalar.
fn literal(text: &str, indent: usize, out: &mut String) {
    out.push_str(if text.ends_with('\n') { "|" } else { "|-" });
    for line in text.lines() {
        out.push('\n');
        if !line.is_empty() {
            pad(indent.max(2), out);
            out.push_str(line);
        }
    }
}

/// Whether a string can be a literal block scalar.
fn is_literal(text: &str) -> bool {
    let begins = !text.starts_with([' ', '\t', '\n']);
    let ends = !text.ends_with("\n\n") && !text.ends_with([' ', '\t']);
    let is_fine = |c: char| c == '\n' || c == '\t' || is_printable(c);
    let has_blank_lines = || {
        text.lines()
            .any(|line| !line.is_empty() && line.trim().is_empty())
    };
    text.contains('\n') && begins && ends && text.chars().all(is_fine) && !has_blank_lines()
}

fn plain_or_quoted(text: &str) -> Cow<'_, str> {
    if is_plain(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(quoted(text))
    }
}

/// Whether a string is safe without quotes.
fn is_plain(text: &str) -> bool {
    let is_fine = |b: u8| b.is_ascii_alphanumeric() || b"_./,()@+=-: ".contains(&b);
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(is_fine)
        && !text.contains(": ")
        && !text.contains("  ")
        && !text.ends_with([':', ' '])
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

fn quoted(text: &str) -> String {
    let json = serde_json::to_string(text).expect("texts can be written as JSON");
    printable(&json).into_owned()
}

/// Escapes characters that YAML does not print.
fn printable(json: &str) -> Cow<'_, str> {
    if json.chars().all(is_printable) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_printable(c) {
            text.push(c);
        } else {
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        }
    }
    Cow::Owned(text)
}

/// Source: YAML 1.1, section 4.1, without line breaks and the byte order mark.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

#[derive(serde::Deserialize)]
struct YamlText<'a>(#[serde(borrow)] Cow<'a, str>);

fn items(json: &str) -> serde_json::Result<Vec<&RawValue>> {
    serde_json::from_str(json)
}

/// Members in order.
fn members(json: &str) -> serde_json::Result<Vec<(Cow<'_, str>, &RawValue)>> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((YamlText(key), value)) = map.next_entry()? {
                members.push((key, value));
            }
            Ok(members)
        }
    }

    serde_json::Deserializer::from_str(json).deserialize_map(Members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_that_is_not_json_is_an_error() {
        for json in [
            "",
            "nope",
            "{\"a\"",
            "[1,]",
            "{\"a\":1}x",
            // Half of a surrogate pair is JSON, and not Unicode.
            r#"{"a":["\ud800"]}"#,
            r#"{"\ud800":1}"#,
        ] {
            let mut out = Vec::new();
            assert!(write(json, &mut out).is_err(), "{json}");
            assert_eq!(out, b"", "{json}");
        }
    }
}
