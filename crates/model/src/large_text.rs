//! Large texts of records: compressed, and shared by the copies of a record.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is stored more often than read: up to hundreds of kilobytes, of a report or of validations.
///
/// It is kept compressed, and clones share it: a record is copied with each change and cached for each host. On the
/// wire it is a plain text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LargeText(
    /// None: empty. Equal texts have equal bytes, because the compression is deterministic.
    Option<Arc<[u8]>>,
);

impl LargeText {
    /// The text.
    pub fn text(&self) -> String {
        let Some(bytes) = &self.0 else {
            return String::new();
        };
        let text = lz4_flex::decompress_size_prepended(bytes).map(String::from_utf8);
        text.expect("compressed by this type")
            .expect("compressed from a text")
    }

    /// Appends the text to a buffer, without a copy of its own.
    pub fn append_to(&self, buffer: &mut Vec<u8>) {
        let Some(block) = self.0.as_ref().and_then(|bytes| bytes.get(4..)) else {
            return;
        };
        let start = buffer.len();
        buffer.resize(start + self.text_bytes(), 0);
        lz4_flex::block::decompress_into(block, &mut buffer[start..])
            .expect("compressed by this type");
    }

    /// Whether the text has no characters.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Makes it empty.
    pub fn clear(&mut self) {
        self.0 = None;
    }

    /// Replaces the text. Returns whether it differs.
    pub fn set(&mut self, text: &str) -> bool {
        let differs = self.text_bytes() != text.len() || self.text() != text;
        if differs {
            *self = text.into();
        }
        differs
    }

    /// The value that the text describes in JSON; none if it is empty or malformed.
    pub fn parse<T: DeserializeOwned>(&self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        serde_json::from_str(&self.text()).ok()
    }

    /// Length of the text. Units: bytes.
    pub fn text_bytes(&self) -> usize {
        let prefix = self.0.as_ref().and_then(|bytes| bytes.first_chunk());
        prefix.map_or(0, |length| u32::from_le_bytes(*length) as usize)
    }

    /// Memory that the text takes. Units: bytes.
    pub fn compressed_bytes(&self) -> usize {
        self.compressed().len()
    }

    /// The text as it is kept: clones have the same.
    pub fn compressed(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl From<&str> for LargeText {
    fn from(text: &str) -> Self {
        let compress = || lz4_flex::compress_prepend_size(text.as_bytes()).into();
        Self((!text.is_empty()).then(compress))
    }
}

impl From<String> for LargeText {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl fmt::Debug for LargeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl Serialize for LargeText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for LargeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_survive_compression() {
        for text in ["", "[]", "ä\u{0}\"", &"abc".repeat(100_000)] {
            let large = LargeText::from(text);
            assert_eq!(
                (large.text().as_str(), large.is_empty()),
                (text, text.is_empty())
            );
            assert_eq!(large, LargeText::from(text.to_owned()));
            let json = serde_json::to_string(&large).unwrap();
            assert_eq!(json, serde_json::to_string(text).unwrap());
            assert_eq!(serde_json::from_str::<LargeText>(&json).unwrap(), large);
            assert_eq!(large.text_bytes(), text.len());
            let mut buffer = b"before".to_vec();
            large.append_to(&mut buffer);
            assert_eq!(buffer, [b"before", text.as_bytes()].concat());
            assert!(large.compressed_bytes() < 5_000);
        }
    }

    #[test]
    fn differences_are_noticed() {
        let mut text = LargeText::default();
        assert!(!text.set(""));
        assert!(text.set("[1]"));
        assert!(!text.set("[1]"));
        assert_eq!(text.parse::<Vec<u8>>(), Some(vec![1]));
        assert_eq!(text.parse::<bool>(), None, "malformed");
        text.clear();
        assert_eq!(text, LargeText::default());
        assert_eq!(text.parse::<Vec<u8>>(), None);
    }
}
