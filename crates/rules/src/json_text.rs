//! JSON for and of agents; theirs is read as the peer's service reads it.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Most objects of a record that is read as a tree, and most values: an object takes up to 700 bytes, a value 32.
const OBJECTS_LIMIT: usize = 1 << 16;
const VALUES_LIMIT: usize = 1 << 20;

/// A record as the argument of a step.
pub(crate) fn text(record: &impl Serialize) -> Option<String> {
    serde_json::to_string(record).ok()
}

/// The text with the replacement character for each half of a surrogate pair, as Go's reader has it, and for NUL, which
/// no database stores: firmware tables hold such bytes. Source: RFC 8259, 8.2.
pub fn with_whole_characters(json: &str) -> Cow<'_, str> {
    const ESCAPE: usize = "\\uXXXX".len();
    /// The code unit of an escape at the start of a text.
    fn unit(text: &str) -> Option<u32> {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    }
    let is_high = |unit: u32| (0xd800..0xdc00).contains(&unit);
    let is_low = |unit: u32| (0xdc00..0xe000).contains(&unit);
    let (mut whole, mut rest) = (String::new(), json);
    let mut copied_from = json;
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at..];
        let next = escape.get(ESCAPE..).unwrap_or_default();
        let length = match unit(escape) {
            Some(high) if is_high(high) && unit(next).is_some_and(is_low) => 2 * ESCAPE,
            Some(half) if is_high(half) || is_low(half) || half == 0 => {
                let before = copied_from.len() - escape.len();
                whole.push_str(&copied_from[..before]);
                whole.push_str("\\ufffd");
                copied_from = next;
                ESCAPE
            }
            // The character behind the backslash is part of the escape.
            _ => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        rest = &escape[length..];
    }
    if whole.is_empty() {
        return Cow::Borrowed(json);
    }
    whole.push_str(copied_from);
    Cow::Owned(whole)
}

/// A record without the null items of its lists, and with the last one of members that are present twice; none if it is
/// malformed otherwise. Source: Go, encoding/json.
pub(crate) fn without_null_items<T: DeserializeOwned>(json: &str) -> Option<T> {
    let count = |marks: &[u8]| json.bytes().filter(|byte| marks.contains(byte)).count();
    if count(b"{") > OBJECTS_LIMIT || count(b"{[,") > VALUES_LIMIT {
        return None;
    }
    let mut value: Value = serde_json::from_str(json).ok()?;
    remove_null_items(&mut value);
    serde_json::from_value(value).ok()
}

fn remove_null_items(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(remove_null_items),
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(remove_null_items);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_are_replaced() {
        for (text, expected) in [
            (r"\ud83d\ude00", r"\ud83d\ude00"),
            (r"\ud83d", r"\ufffd"),
            (r"\ude00\ud83d\ude00x\uD83Dy", r"\ufffd\ud83d\ude00x\ufffdy"),
            (r"\\ud83d", r"\\ud83d"),
            (r"\\\ud83d", r"\\\ufffd"),
            (r"\ud8", r"\ud8"),
            ("\\", "\\"),
            (r"a\u0000b\\u0000", r"a\ufffdb\\u0000"),
            (r"\ü\ud800ü", r"\ü\ufffdü"),
        ] {
            assert_eq!(with_whole_characters(text), expected, "{text}");
        }
    }

    #[test]
    fn objects_and_values_have_a_bound() {
        let read = |item: &str, count: usize| {
            let json = format!("[{}]", vec![item; count].join(","));
            without_null_items::<Vec<serde::de::IgnoredAny>>(&json).map(|items| items.len())
        };
        // An object counts as a value, too, and so does the list.
        assert_eq!(read("{}", OBJECTS_LIMIT), Some(OBJECTS_LIMIT));
        assert_eq!(read("{}", OBJECTS_LIMIT + 1), None);
        assert_eq!(read("1", VALUES_LIMIT), Some(VALUES_LIMIT));
        assert_eq!(read("1", VALUES_LIMIT + 1), None);
    }
}
