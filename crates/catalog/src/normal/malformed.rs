//! Syntax errors of documents.

use std::fmt;

/// Deepest nesting of objects and lists. Source: Go's `encoding/json`, which the peer reads with.
pub const MAX_DEPTH: usize = 10_000;

/// Syntax error in JSON or YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Offset. Units: bytes.
    pub at: usize,
    /// Message.
    pub why: String,
}

impl Malformed {
    pub(crate) fn new(at: usize, why: impl Into<String>) -> Self {
        Self {
            at,
            why: why.into(),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.why)
    }
}

impl std::error::Error for Malformed {}
