//! String escaping of the normal form.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::str;

use super::malformed::Malformed;

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = ONES << 7;
/// First UTF-8 byte of U+2028 and U+2029, and of many others.
const LEAD: u8 = 0xe2;
/// Line separators of JavaScript that JSON does not know.
const SEPARATORS: [&[u8]; 2] = ["\u{2028}".as_bytes(), "\u{2029}".as_bytes()];

/// Appends the string contents at `at` of `source`, closing quote included, in the normal form; returns their end.
pub(super) fn copy(source: &str, at: usize, out: &mut Vec<u8>) -> Result<usize, Malformed> {
    let bytes = source.as_bytes();
    let mut from = at;
    let mut at = at;
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at) {
            None => return Err(Malformed::new(at, "a string is not closed")),
            Some(b'"') => {
                out.extend_from_slice(&bytes[from..=at]);
                return Ok(at + 1);
            }
            Some(b'\\') => match bytes.get(at + 1) {
                Some(b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'/') => {
                    out.extend_from_slice(&bytes[from..at]);
                    from = at + 1;
                    at += 2;
                }
                Some(b'u') => {
                    out.extend_from_slice(&bytes[from..at]);
                    let (char, length) = code_point(&bytes[at..])
                        .ok_or_else(|| Malformed::new(at, r"\u needs four hexadecimal digits"))?;
                    push(char, out);
                    at += length;
                    from = at;
                }
                _ => return Err(Malformed::new(at, "no such escape in JSON")),
            },
            Some(&LEAD) => {
                if SEPARATORS.iter().any(|it| bytes[at..].starts_with(it)) {
                    out.extend_from_slice(&bytes[from..at]);
                    push(
                        if bytes[at + 2] == 0xa8 {
                            '\u{2028}'
                        } else {
                            '\u{2029}'
                        },
                        out,
                    );
                    from = at + 3;
                }
                at += 3;
            }
            Some(_) => {
                return Err(Malformed::new(
                    at,
                    "a string has an unescaped control character",
                ));
            }
        }
    }
}

/// Appends `text` as a JSON string.
pub(super) fn print(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.push(b'"');
    let mut from = 0;
    let mut at = 0;
    loop {
        at = plain_end(bytes, at);
        let Some(char) = text[at..].chars().next() else {
            break;
        };
        let end = at + char.len_utf8();
        if char.len_utf8() == 1 || matches!(char, '\u{2028}' | '\u{2029}') {
            out.extend_from_slice(&bytes[from..at]);
            push(char, out);
            from = end;
        }
        at = end;
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

/// Decodes the contents of a string in the normal form.
pub(crate) fn unescaped(normal: &str) -> Cow<'_, str> {
    if !normal.contains('\\') {
        return Cow::Borrowed(normal);
    }
    let bytes = normal.as_bytes();
    let mut text = String::with_capacity(normal.len());
    let mut at = 0;
    while let Some(escape) = memchr::memchr(b'\\', &bytes[at..]) {
        text.push_str(&normal[at..at + escape]);
        at += escape;
        let (char, length) = match bytes.get(at + 1) {
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(b'u') => code_point(&bytes[at..]).unwrap_or((char::REPLACEMENT_CHARACTER, 2)),
            Some(&other) => (char::from(other), 2),
            None => break,
        };
        text.push(char);
        at += length;
    }
    text.push_str(&normal[at..]);
    Cow::Owned(text)
}

/// Escapes `<`, `>` and `&` in strings, as Go's `encoding/json` does by default.
pub(crate) fn html_escaped(json: &str) -> Cow<'_, str> {
    let bytes = json.as_bytes();
    let mut marks = memchr::memchr3_iter(b'<', b'>', b'&', bytes).peekable();
    if marks.peek().is_none() {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + json.len() / 8);
    let mut from = 0;
    for at in marks {
        escaped.push_str(&json[from..at]);
        write!(escaped, "\\u{:04x}", bytes[at]).expect("memory does not fail");
        from = at + 1;
    }
    escaped.push_str(&json[from..]);
    Cow::Owned(escaped)
}

/// Appends one character, escaped if required.
fn push(char: char, out: &mut Vec<u8>) {
    match char {
        '"' => out.extend_from_slice(br#"\""#),
        '\\' => out.extend_from_slice(br"\\"),
        '\u{8}' => out.extend_from_slice(br"\b"),
        '\u{c}' => out.extend_from_slice(br"\f"),
        '\n' => out.extend_from_slice(br"\n"),
        '\r' => out.extend_from_slice(br"\r"),
        '\t' => out.extend_from_slice(br"\t"),
        '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
            out.extend_from_slice(format!("\\u{:04x}", u32::from(char)).as_bytes());
        }
        _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Decodes `\uXXXX` or a surrogate pair; returns the character and the length of the escape. Lone surrogates become
/// U+FFFD.
fn code_point(escape: &[u8]) -> Option<(char, usize)> {
    let first = code_unit(escape)?;
    if let Some(char) = char::from_u32(u32::from(first)) {
        return Some((char, 6));
    }
    let pair = code_unit(&escape[6..])
        .and_then(|second| char::decode_utf16([first, second]).next())
        .and_then(Result::ok);
    Some(pair.map_or((char::REPLACEMENT_CHARACTER, 6), |char| (char, 12)))
}

fn code_unit(escape: &[u8]) -> Option<u16> {
    let digits = escape.strip_prefix(br"\u")?.get(..4)?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u16::from_str_radix(digits, 16).ok()
}

/// Offset of the first byte from `at` that needs inspection; the end of `text` without one.
fn plain_end(text: &[u8], mut at: usize) -> usize {
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let found = marks(u64::from_le_bytes(*word));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_mark = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\' | &LEAD);
    let tail = text.get(at..).unwrap_or_default();
    at + tail.iter().position(is_mark).unwrap_or(tail.len())
}

/// SWAR: sets the highest bit of each of eight bytes that is a control character, a quote, a backslash or [`LEAD`].
/// Only the lowest set bit is reliable: borrows may spill into higher bytes.
fn marks(word: u64) -> u64 {
    let equal = |byte: u8| {
        let difference = word ^ (ONES * u64::from(byte));
        difference.wrapping_sub(ONES) & !difference
    };
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | equal(b'"') | equal(b'\\') | equal(LEAD)) & HIGHS
}
