//! JSON strings that are served verbatim.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON string in the normal form with its quotes; `None` when empty. It is written as it was read, so nothing is
/// escaped again.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Quoted<'a>(Option<&'a RawValue>);

impl<'a> Quoted<'a> {
    pub(super) fn new(text: &'a RawValue) -> Self {
        Self((text.get() != EMPTY).then_some(text))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// `self`, or `other` when `self` is empty.
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }
}

const EMPTY: &str = "\"\"";

impl<'de: 'a, 'a> Deserialize<'de> for Quoted<'a> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(value)?;
        let found = match text.get().bytes().next() {
            Some(b'"') => return Ok(Self::new(text)),
            Some(b'n') => return Ok(Self(None)),
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b't' | b'f') => "a boolean",
            _ => "a number",
        };
        Err(D::Error::invalid_type(
            Unexpected::Other(found),
            &"a string",
        ))
    }
}

impl Serialize for Quoted<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(text) => text.serialize(to),
            None => to.serialize_str(""),
        }
    }
}
