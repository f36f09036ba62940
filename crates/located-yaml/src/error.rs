//! Errors of texts, with their positions.

use super::Position;

/// The text is no document of its format, or above a bound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {reason}")]
pub struct DocumentError {
    /// Where the text stops to be a document.
    pub at: Position,
    /// The problem.
    pub reason: String,
}

impl DocumentError {
    /// An error at a position.
    pub fn new(at: Position, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { at, reason }
    }
}
