//! Record of a multipart upload in progress: another process aborts the upload by it, or completes the parts that are
//! stored.

use std::fmt;

use object_store::multipart::PartId;
use object_store::path::Path;

/// Longest record: a key, an id, and the tags of all parts. Units: bytes.
pub(super) const RECORD_BYTES_MAX: u64 = 1 << 20;

/// Text form: key, id, and the tag of each stored part, on lines of their own.
#[derive(Debug, Clone)]
pub(super) struct MultipartRecord {
    pub(super) key: Path,
    pub(super) id: String,
    /// The first parts, in order.
    pub(super) parts: Vec<PartId>,
}

impl MultipartRecord {
    /// None for a text that is no record.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(text).ok()?.split('\n');
        let (key, id) = (lines.next()?, lines.next()?);
        let parts = lines.map(|tag| PartId {
            content_id: tag.to_owned(),
        });
        Some(Self {
            key: key.into(),
            id: id.to_owned(),
            parts: parts.collect(),
        })
    }
}

impl fmt::Display for MultipartRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.key, self.id)?;
        self.parts
            .iter()
            .try_for_each(|part| write!(f, "\n{}", part.content_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_are_written() {
        for (text, parts) in [("a/b\n1", 0), ("a/b\n1\n\"x\"", 1), ("a/b\n1\nx\ny", 2)] {
            let record = MultipartRecord::parse(text.as_bytes()).unwrap();
            assert_eq!(record.parts.len(), parts);
            assert_eq!(record.to_string(), text);
        }
        assert!(MultipartRecord::parse(b"a/b").is_none());
        assert!(MultipartRecord::parse(b"\xff\n1").is_none());
    }
}
