//! Documents with schemas of their author's own, as messages.
//!
//! A message is written from its end to its beginning: the length of every part stands before it, and is known only
//! behind it. So neither a large document nor a deep one takes more than its text and its message.

use std::borrow::Cow;

use prost::encoding::encode_varint;

use crate::normal::unescaped;

/// Units: bytes. Of a number of 64 bits.
const LONGEST_VARINT: usize = 10;

/// Tags of the fields of `google.protobuf.Struct`, `ListValue` and `Value`: number and kind.
mod tag {
    /// A member of an object; an item of a list.
    pub(super) const PART: u8 = (1 << 3) | LENGTH;
    /// Of a member.
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
    // Until the object begins.
    while encoder.step().is_some() {}
    encoder.message.reverse();
    encoder.message
}

struct Encoder<'a> {
    /// What is still to be encoded, its end first.
    rest: &'a str,
    /// The last byte first.
    message: Vec<u8>,
    /// Objects and lists that are not begun yet, the innermost last.
    open: Vec<OpenMessage>,
}

#[derive(Clone, Copy)]
struct OpenMessage {
    /// Where in the message it ends.
    end: usize,
    is_object: bool,
}

impl<'a> Encoder<'a> {
    /// Encodes what stands last; nothing where nothing does.
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
                self.placed(end)
            }
            b'"' => {
                let text = self.text()?;
                self.bytes(text.as_bytes());
                self.part(end, tag::TEXT);
                self.placed(end)
            }
            _ => {
                self.scalar()?;
                self.placed(end)
            }
        }
    }

    /// `null`, a truth value or a number.
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

    /// Puts the value that ends at `end` into the object or list that it is in.
    fn placed(&mut self, end: usize) -> Option<()> {
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

    /// The text that stands last, without its quotes.
    fn text(&mut self) -> Option<Cow<'a, str>> {
        let inside = self.rest.strip_suffix('"')?;
        let mut end = inside.len();
        loop {
            end = memchr::memrchr(b'"', &inside.as_bytes()[..end])?;
            let before = inside.as_bytes()[..end].iter().rev();
            // Behind an odd number of backslashes it is part of the text.
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

    /// Makes a field of what has been written since `end`.
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

    /// What a value has to become.
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
        fn every_value_has_its_message(json in values()) {
            let json = json!({ "schema": "x", "value": json });
            let Some(Kind::StructValue(expected)) = value(json.clone()).kind else { panic!() };
            prop_assert_eq!(message(&json), expected);
        }
    }

    #[test]
    fn an_object_without_members_is_an_empty_message() {
        assert_eq!(encode("{}"), [0_u8; 0]);
    }

    /// How deep objects and lists lie in each other in a message that is `depth` of each deep.
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
            // Past the name of a member.
            let is_member = rest.starts_with(&[tag::NAME, 1, b'a', tag::VALUE]);
            message = &rest[if is_member { 3 } else { 0 }..usize::try_from(length).unwrap()];
        }
        depth
    }

    #[test]
    fn the_deepest_document_is_whole() {
        let half = MAX_DEPTH / 2;
        let json = format!("{}{}", r#"{"a":["#.repeat(half), "]}".repeat(half));
        assert_eq!(normalised(&json).as_ref(), Ok(&json));
        assert_eq!(depth(&encode(&json)), MAX_DEPTH - 1);
    }
}
