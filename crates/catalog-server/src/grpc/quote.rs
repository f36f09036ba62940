//! Quotes names in error messages as Go's `%q`.

use std::fmt::Write as _;

/// Source: Go's `strconv.Quote`.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            _ if is_printable(letter) => quoted.push(letter),
            _ => escape(letter, &mut quoted),
        }
    }
    quoted.push('"');
    quoted
}

fn escape(letter: char, to: &mut String) {
    let written = match u32::from(letter) {
        code @ ..0x80 => write!(to, "\\x{code:02x}"),
        code @ ..0x1_0000 => write!(to, "\\u{code:04x}"),
        code => write!(to, "\\U{code:08x}"),
    };
    written.expect("a string grows");
}

/// Tested after a letter: `escape_debug` escapes a leading combining mark.
fn is_printable(letter: char) -> bool {
    let mut pair = ['a'; 2];
    pair[1] = letter;
    let pair = String::from_iter(pair);
    pair.escape_debug().eq(pair.chars()) || letter == '\''
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_go_does() {
        for (text, quoted) in [
            ("", r#""""#),
            ("a-b.v1", r#""a-b.v1""#),
            ("it's", r#""it's""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("\0\u{1b}\u{7f}", r#""\x00\x1b\x7f""#),
            ("ü日🦀e\u{301}", "\"ü日🦀e\u{301}\""),
            ("\u{a0}\u{200b}\u{feff}", r#""\u00a0\u200b\ufeff""#),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quote(text), quoted, "{text:?}");
        }
    }
}
