//! Custom documents as `google.protobuf.Struct` messages.
//!
//! Messages are written back to front: each part is preceded by its length, which is known only after it. So a large or
//! deep document takes no more memory than its text and its message.

use std::borrow::Cow;

use prost::encoding::encode_varint;

use crate::normal::unescaped;

/// Longest varint of 64 bits. Units: bytes.
const LONGEST_VARINT: usize = 10;

/// Field tags (number and wire type) of `google.protobuf.Struct`, `ListValue` and `Value`.
mod tag {
    /// Member of an object; item of a list.
    pub(super) const PART: u8 = (1 << 3) | LENGTH;
    /// Name of a member.
    pub(super) const NAME: u8 = (1 << 3) | LENGTH;
    pub(super) const VALUE: u8 = (2 << 3) | LENGTH;
    pub(super) const NULL: u8 = 1 << 3;
    pub(super) const NUMBER: u8 = (2 << 3) | DOUBLE;
    pub(super) const TEXT: u8 = (3 << 3) | LENGTH;
    pub(super) const BOOL: u8 = 4 << 3;
    pub(super) const OBJECT: u8 = (5 << 3) | LENGTH;
    pub(super) const LIST: u8 = (6 << 3) | LENGTH;

    const DOUBLE: u8 = 1;
    const LENGTH: u8 = 2;
}

/// The `google.protobuf.Struct` of an object in the normal form.
pub(super) fn encode(json: &str) -> Vec<u8> {
    let mut encoder = Encoder {
        rest: json,
        message: Vec::with_capacity(json.len()),
        open: Vec::new(),
    };
    // Runs until the start of the object.
    while encoder.step().is_some() {}
    encoder.message.reverse();
    encoder.message
}

struct Encoder<'a> {
    /// Remaining JSON, consumed from its end.
    rest: &'a str,
    /// The message, reversed.
    message: Vec<u8>,
    /// Enclosing objects and lists, the innermost last.
    open: Vec<OpenMessage>,
}

#[derive(Clone, Copy)]
struct OpenMessage {
    /// Its end in the message.
    end: usize,
    is_object: bool,
}

impl<'a> Encoder<'a> {
    /// Encodes the last token; `None` at the start of the JSON.
    fn step(&mut self) -> Option<()> {
        let end = self.message.len();
        match self.rest.bytes().last()? {
            b',' => self.pass(1),
            last @ (b'}' | b']') => {
                let is_object = last == b'}';
                self.open.push(OpenMessage { end, is_object });
                self.pass(1)
            }
            b'{' | b'[' => {
                let OpenMessage { end, is_object } = self.open.pop()?;
                self.pass(1)?;
                if self.open.is_empty() {
                    return None;
                }
                self.part(end, if is_object { tag::OBJECT } else { tag::LIST });
                self.wrap(end)
            }
            b'"' => {
                let text = self.text()?;
                self.bytes(text.as_bytes());
                self.part(end, tag::TEXT);
                self.wrap(end)
            }
            _ => {
                self.scalar()?;
                self.wrap(end)
            }
        }
    }

    /// Encodes `null`, a boolean or a number.
    fn scalar(&mut self) -> Option<()> {
        let start = self.rest.rfind([':', ',', '['])? + 1;
        match &self.rest[start..] {
            "null" => self.message.extend([0, tag::NULL]),
            "true" => self.message.extend([1, tag::BOOL]),
            "false" => self.message.extend([0, tag::BOOL]),
            number => {
                let number: f64 = number.parse().ok()?;
                self.message.extend(number.to_be_bytes());
                self.message.push(tag::NUMBER);
            }
        }
        self.rest = &self.rest[..start];
        Some(())
    }

    /// Wraps the value that ends at `end` as a member or item.
    fn wrap(&mut self, end: usize) -> Option<()> {
        if self.open.last()?.is_object {
            self.part(end, tag::VALUE);
            self.pass(1)?;
            let name = self.text()?;
            let end_of_name = self.message.len();
            self.bytes(name.as_bytes());
            self.part(end_of_name, tag::NAME);
        }
        self.part(end, tag::PART);
        Some(())
    }

    /// Consumes the last string, without its quotes.
    fn text(&mut self) -> Option<Cow<'a, str>> {
        let inside = self.rest.strip_suffix('"')?;
        let mut end = inside.len();
        loop {
            end = memchr::memrchr(b'"', &inside.as_bytes()[..end])?;
            let before = inside.as_bytes()[..end].iter().rev();
            // A quote after an odd number of backslashes is escaped.
            if before.take_while(|byte| **byte == b'\\').count() % 2 == 0 {
                break;
            }
        }
        self.rest = &inside[..end];
        Some(unescaped(&inside[end + 1..]))
    }

    fn pass(&mut self, count: usize) -> Option<()> {
        let length = self.rest.len().checked_sub(count)?;
        self.rest = self.rest.get(..length)?;
        Some(())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.message.extend(bytes.iter().rev());
    }

    /// Makes a field of everything written since `end`.
    fn part(&mut self, end: usize, tag: u8) {
        let mut length = [0; LONGEST_VARINT];
        let mut rest = &mut length[..];
        encode_varint((self.message.len() - end) as u64, &mut rest);
        let count = LONGEST_VARINT - rest.len();
        self.bytes(&length[..count]);
        self.message.push(tag);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;
    use prost_types::{ListValue, Struct, Value, value::Kind};
    use serde_json::json;

    use super::*;
    use crate::normal::{MAX_DEPTH, normalised};

    fn message(json: &serde_json::Value) -> Struct {
        let normal = normalised(&json.to_string()).unwrap();
        Struct::decode(&*encode(&normal)).unwrap()
    }

    /// The expected message of a value.
    fn value(json: serde_json::Value) -> Value {
        let kind = match json {
            serde_json::Value::Null => Kind::NullValue(0),
            serde_json::Value::Bool(is_true) => Kind::BoolValue(is_true),
            serde_json::Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap()),
            serde_json::Value::String(text) => Kind::StringValue(text),
            serde_json::Value::Array(items) => Kind::ListValue(ListValue {
                values: items.into_iter().map(value).collect(),
            }),
            serde_json::Value::Object(members) => Kind::StructValue(Struct {
                fields: members
                    .into_iter()
                    .map(|(name, it)| (name, value(it)))
                    .collect(),
            }),
        };
        Value { kind: Some(kind) }
    }

    fn values() -> impl Strategy<Value = serde_json::Value> {
        let text = "[a\"\\\\\n{}\\[\\],:é\u{2028}]{0,6}";
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<f64>().prop_map(serde_json::Value::from),
            Just(json!(-0.0)),
            text.prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::from),
                prop::collection::btree_map(text, inner, 0..5)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_json_value_is_encoded(json in values()) {
            let json = json!({ "schema": "x", "value": json });
            let Some(Kind::StructValue(expected)) = value(json.clone()).kind else { panic!() };
            prop_assert_eq!(message(&json), expected);
        }
    }

    #[test]
    fn an_object_without_members_is_an_empty_message() {
        assert_eq!(encode("{}"), [0_u8; 0]);
    }

    /// Nesting depth of a message.
    fn depth(mut message: &[u8]) -> usize {
        let mut depth = 0;
        while let [tag, rest @ ..] = message {
            let mut rest = rest;
            assert!(
                [tag::PART, tag::VALUE, tag::OBJECT, tag::LIST].contains(tag),
                "{tag}"
            );
            let length = prost::encoding::decode_varint(&mut rest).unwrap();
            depth += usize::from([tag::OBJECT, tag::LIST].contains(tag));
            // Skips the name of a member.
            let is_member = rest.starts_with(&[tag::NAME, 1, b'a', tag::VALUE]);
            message = &rest[if is_member { 3 } else { 0 }..usize::try_from(length).unwrap()];
        }
        depth
    }

    #[test]
    fn the_deepest_document_is_encoded_whole() {
        let half = MAX_DEPTH / 2;
        let json = format!("{}{}", r#"{"a":["#.repeat(half), "]}".repeat(half));
        assert_eq!(normalised(&json).as_ref(), Ok(&json));
        assert_eq!(depth(&encode(&json)), MAX_DEPTH - 1);
    }
}
