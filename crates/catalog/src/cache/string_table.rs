//! String table of a cache: each string is stored once.

use std::collections::HashMap;
use std::sync::Arc;

use super::build_error::{BuildError, too_large};
use super::record::TextRef;

/// Builder of the string table.
#[derive(Debug, Clone, Default)]
pub(super) struct StringTable {
    known: HashMap<Arc<str>, TextRef>,
    bytes: Vec<u8>,
}

impl StringTable {
    /// Interns `text`.
    ///
    /// Errors: the table exceeds 4 GiB.
    pub(super) fn add(&mut self, text: &str) -> Result<TextRef, BuildError> {
        if let Some(known) = self.known.get(text) {
            return Ok(*known);
        }
        let place = TextRef {
            offset: u32::try_from(self.bytes.len()).map_err(too_large)?,
            length: u32::try_from(text.len()).map_err(too_large)?,
        };
        self.bytes.extend_from_slice(text.as_bytes());
        self.known.insert(text.into(), place);
        Ok(place)
    }

    /// The string at `place`.
    pub(super) fn get(&self, place: TextRef) -> &str {
        text_at(&self.bytes, place)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The string at `place`; empty for invalid ones.
pub(super) fn text_at(bytes: &[u8], place: TextRef) -> &str {
    let first = place.offset as usize;
    let bytes = bytes
        .get(first..)
        .and_then(|rest| rest.get(..place.length as usize));
    bytes
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_are_stored_once() {
        let mut texts = StringTable::default();
        let (a, b) = (texts.add("alpha").unwrap(), texts.add("beta").unwrap());
        assert_eq!(texts.add("alpha").unwrap(), a);
        assert_eq!((texts.get(a), texts.get(b)), ("alpha", "beta"));
        assert_eq!(texts.bytes().len(), 9);
    }

    #[test]
    fn invalid_references_are_empty() {
        let place = TextRef {
            offset: 2,
            length: 7,
        };
        assert_eq!(text_at(b"abc", place), "");
        let place = TextRef {
            offset: u32::MAX,
            length: u32::MAX,
        };
        assert_eq!(text_at(b"abc", place), "");
    }
}
