//! The grammar of data URLs, as strict as Ignition's reader.
//! Source: vincent-petithory/dataurl, `lex.go`, `rfc2396.go`; RFC 2397.

use base64::Engine as _;

use crate::data_url::BASE64;

/// Media types start with one of these, or with `x-`.
const TYPES: &[&str] = &[
    "text",
    "image",
    "audio",
    "video",
    "application",
    "message",
    "multipart",
];

/// ASCII characters that data have only as an escape.
const ESCAPED: &[u8] = b" <>#\"{}|\\^[]`";

/// ASCII characters that separate parts of the head.
const SEPARATORS: &[u8] = b"()<>@,;:\\\"/[]?=";

/// Checks a data URL.
///
/// Errors: the reason, without any of the data.
pub(super) fn check(url: &str) -> Result<(), String> {
    let rest = url
        .strip_prefix("data:")
        .ok_or("the scheme is not in lower case")?;
    let rest = media_type(rest)?;
    let (is_base64, data) = parameters(rest)?;
    if is_base64 {
        let is_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        if let Some(at) = data.bytes().position(|byte| !is_alphabet(byte)) {
            return Err(format!("character {at} of the data is not base64"));
        }
        let decoded = BASE64.decode(data);
        return decoded
            .map(|_| ())
            .map_err(|error| format!("the base64 data is broken: {error}"));
    }
    let is_plain = |byte: u8| (b'!'..=b'~').contains(&byte) && !ESCAPED.contains(&byte);
    if let Some(at) = data.bytes().position(|byte| !is_plain(byte)) {
        return Err(format!("character {at} of the data needs a percent escape"));
    }
    check_escapes(data)
}

/// The rest after an optional media type.
fn media_type(text: &str) -> Result<&str, &'static str> {
    if text.starts_with([';', ',']) {
        return Ok(text);
    }
    let (kind, subtype) = text.split_once('/').ok_or("the media type has no slash")?;
    let is_extension = kind
        .get(..2)
        .is_some_and(|start| start.eq_ignore_ascii_case("x-"));
    let is_known = is_extension || TYPES.iter().any(|known| kind.starts_with(known));
    if !is_known || !is_token(kind) {
        return Err("unknown media type");
    }
    let end = subtype.find([';', ',']).ok_or("no comma before the data")?;
    if !is_token(&subtype[..end]) {
        return Err("malformed media type");
    }
    Ok(&subtype[end..])
}

/// Whether the data are base64, and the data.
fn parameters(mut text: &str) -> Result<(bool, &str), &'static str> {
    const MALFORMED: &str = "malformed parameter before the comma";
    loop {
        if let Some(data) = text.strip_prefix(',') {
            return Ok((false, data));
        }
        let parameter = text.strip_prefix(';').ok_or(MALFORMED)?;
        let end = parameter.find(['=', ',']).ok_or(MALFORMED)?;
        let (name, rest) = parameter.split_at(end);
        if name.is_empty() || !is_token(name) {
            return Err(MALFORMED);
        }
        if let Some(data) = rest.strip_prefix(',') {
            return match name {
                "base64" => Ok((true, data)),
                _ => Err("expected base64 before the comma"),
            };
        }
        text = parameter_value(&rest[1..]).ok_or(MALFORMED)?;
    }
}

/// The rest after the value of a parameter.
fn parameter_value(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('"') {
        let mut is_escaped = false;
        let end = quoted.char_indices().find_map(|(at, letter)| {
            let is_end = letter == '"' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            is_end.then_some(at)
        })?;
        let (value, rest) = quoted.split_at(end);
        return (value.is_ascii() && are_go_escapes(value)).then_some(&rest[1..]);
    }
    let end = text.find([';', ','])?;
    let (value, rest) = text.split_at(end);
    let is_value = !value.is_empty() && is_token(value) && check_escapes(value).is_ok();
    is_value.then_some(rest)
}

/// Whether every backslash starts an escape of one letter that Go's strings have.
fn are_go_escapes(value: &str) -> bool {
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        if letter == '\\'
            && !letters
                .next()
                .is_some_and(|next| "abfnrtv\\\"".contains(next))
        {
            return false;
        }
    }
    true
}

fn is_token(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_graphic() && !SEPARATORS.contains(&byte))
}

fn check_escapes(text: &str) -> Result<(), String> {
    for (at, _) in text.match_indices('%') {
        let digits = text.as_bytes().get(at + 1..at + 3);
        if !digits.is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit)) {
            return Err(format!(
                "\"%\" at character {at} of the data is not followed by two hexadecimal digits; a percent sign itself is written %25"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_grammar_is_that_of_ignition() {
        for url in [
            "data:,",
            "data:,a%20b",
            "data:;base64,",
            "data:;base64,YQ==",
            "data:;base64,YR==",
            "data:text/plain,x",
            "data:text/plain;charset=utf-8;base64,YQ==",
            "data:text/,x",
            "data:textual/x,",
            "data:x-a/b,x",
            "data:;a=\"b;,\\\"\",x",
            "data:;a=%41,x",
            "data:,a,b;c=d?e/f:g@h&'()*+$!~",
        ] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
        for url in [
            "DATA:,x",
            "data:",
            "data:x",
            "data:base64,x",
            "data:;base64",
            "data:;BASE64,YQ==",
            "data:;,x",
            "data:;a,x",
            "data:;a=,x",
            "data:;a=b",
            "data:;base64;a=b,x",
            "data:font/x,x",
            "data:text,x",
            "data:text/a b,x",
            "data:,a b",
            "data:,ü",
            "data:,%",
            "data:,%4",
            "data:,%zz",
            "data:,a#b",
            "data:,[",
            "data:;base64,Y",
            "data:;base64,YQ",
            "data:;base64,YQ%3D%3D",
            "data:;base64,Y-_=",
            "data:;a=\"x,y",
            "data:;a=\"\\q\",x",
            "data:;a=\"ü\",x",
            "data:;a=%4,x",
            "data:;a=\"b\"c,x",
        ] {
            assert!(check(url).is_err(), "{url}");
        }
    }

    proptest! {
        #[test]
        fn checking_never_panics(url in "data:[a-z;,=\"\\\\%/ü ]{0,30}") {
            check(&url).ok();
        }

        #[test]
        fn written_ones_pass(contents in any::<String>(), bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            prop_assert_eq!(check(&crate::data_url::text(&contents)), Ok(()));
            prop_assert_eq!(check(&crate::data_url::base64(&bytes)), Ok(()));
        }
    }
}
