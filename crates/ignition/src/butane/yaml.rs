//! Writing YAML: the form of a MachineConfig that people read and apply.

use std::fmt::Write as _;

use located_yaml::v1_2::{ConfigNode, NodeValue, ScalarKind};

/// Units: spaces.
const INDENT: usize = 2;

/// Writes a document with a comment before it. Members come in the order of their names.
pub(super) fn write(node: &ConfigNode, comment: &str) -> String {
    let mut text = format!("# {comment}\n");
    match &node.value {
        NodeValue::Scalar { .. } => {
            scalar(node, 0, &mut text);
            text.push('\n');
        }
        NodeValue::List(items) if items.is_empty() => text.push_str("[]\n"),
        NodeValue::Object(members) if members.is_empty() => text.push_str("{}\n"),
        _ => block(node, 0, &mut text),
    }
    text
}

/// A list or an object that is not empty. The cursor is at the start of a line, or behind the dash of an item.
fn block(node: &ConfigNode, indent: usize, text: &mut String) {
    match &node.value {
        NodeValue::List(items) => {
            for item in items {
                start_line(indent, text);
                text.push('-');
                value(item, indent + INDENT, true, text);
            }
        }
        NodeValue::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|one, other| one.name.cmp(&other.name));
            for member in members {
                start_line(indent, text);
                plain_or_quoted(&member.name, text);
                text.push(':');
                value(&member.node, indent + INDENT, false, text);
            }
        }
        NodeValue::Scalar { .. } => {}
    }
}

/// Spaces, unless the cursor is behind a dash.
fn start_line(indent: usize, text: &mut String) {
    if text.ends_with('\n') {
        let _ = write!(text, "{:indent$}", "");
    } else {
        text.push(' ');
    }
}

fn value(node: &ConfigNode, indent: usize, is_item: bool, text: &mut String) {
    match &node.value {
        NodeValue::List(items) if items.is_empty() => text.push_str(" []\n"),
        NodeValue::Object(members) if members.is_empty() => text.push_str(" {}\n"),
        NodeValue::Scalar { .. } => {
            text.push(' ');
            scalar(node, indent, text);
            text.push('\n');
        }
        // The first member, or the first inner item, is in the line of the dash.
        _ if is_item => block(node, indent, text),
        _ => {
            text.push('\n');
            block(node, indent, text);
        }
    }
}

fn scalar(node: &ConfigNode, indent: usize, text: &mut String) {
    let NodeValue::Scalar { kind, text: value } = &node.value else {
        return;
    };
    match kind {
        ScalarKind::Null => text.push_str("null"),
        ScalarKind::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        ScalarKind::Integer(value) => {
            let _ = write!(text, "{value}");
        }
        ScalarKind::Float(value) => {
            let _ = write!(text, "{value:?}");
        }
        ScalarKind::Text if is_literal(value) => literal(value, indent, text),
        ScalarKind::Text => plain_or_quoted(value, text),
    }
}

/// Whether the text keeps its form as a literal block: several lines of visible characters, at most one line feed at
/// the end.
fn is_literal(value: &str) -> bool {
    let body = value.strip_suffix('\n').unwrap_or(value);
    let is_visible = |letter: char| letter == '\n' || is_printable(letter);
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && body.chars().all(is_visible)
        && body.split('\n').all(|line| !line.ends_with(' '))
}

fn literal(value: &str, indent: usize, text: &mut String) {
    text.push_str(if value.ends_with('\n') { "|" } else { "|-" });
    for line in value.strip_suffix('\n').unwrap_or(value).split('\n') {
        text.push('\n');
        if !line.is_empty() {
            let _ = write!(text, "{:indent$}{line}", "");
        }
    }
}

fn is_printable(letter: char) -> bool {
    matches!(letter, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{10000}'..='\u{10ffff}')
        && !matches!(letter, '\u{2028}' | '\u{2029}')
}

/// Words of letters alone that YAML 1.1 or 1.2 reads as something else than text, in any case.
const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

fn plain_or_quoted(value: &str, text: &mut String) {
    let is_word_character =
        |byte: u8| byte.is_ascii_alphanumeric() || b"/_.,:+=@%-".contains(&byte);
    // No number, and no sign of YAML, starts like this.
    let starts_plain = value.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let is_plain = starts_plain
        && value.bytes().all(is_word_character)
        && !value.ends_with(':')
        && !WORDS.iter().any(|word| value.eq_ignore_ascii_case(word));
    if is_plain {
        text.push_str(value);
    } else {
        quoted(value, text);
    }
}

fn quoted(value: &str, text: &mut String) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            _ if is_printable(letter) => text.push(letter),
            _ if u32::from(letter) <= 0xffff => {
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            _ => {
                let _ = write!(text, "\\U{:08x}", u32::from(letter));
            }
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use located_yaml::v1_2::{from_json, from_yaml};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn written(value: &Value) -> String {
        write(&from_json(value.to_string().as_bytes()).unwrap(), "made")
    }

    #[test]
    fn documents_are_readable() {
        let text = written(&json!({
            "b": [{"y": 1, "x": "a b"}, "-", [1, []], {}],
            "a": "one\n  two\n\nthree\n",
            "c": "no line feed\nat the end",
            "d": "trailing \n", "e": "yes", "f": "12", "g": "data:,a%20b", "h": true, "i": null,
        }));
        let expected = "# made\na: |\n  one\n    two\n\n  three\nb:\n  - x: \"a b\"\n    \"y\": 1\n  - \"-\"\n  - - 1\n    - []\n  - {}\nc: |-\n  no line feed\n  at the end\nd: \"trailing \\n\"\ne: \"yes\"\nf: \"12\"\ng: data:,a%20b\nh: true\ni: null\n";
        assert_eq!(text, expected);
    }

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            any::<String>(),
            "[ a#:\\-\\n\"'|>{}&*!%@`,\\[\\]?~0-9.]{0,12}",
            "(a|b c|  d| |\\n|\\t|ü){0,8}",
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(text.clone(), inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn documents_round_trip(value in values()) {
            let text = written(&value);
            let read = from_yaml(&text).map(|node| node.to_json());
            prop_assert_eq!(read, Ok(value), "{}", text);
        }
    }
}
