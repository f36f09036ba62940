//! Syntax errors of YAML, with their positions.

/// Syntax error with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    pub place: Position,
    pub why: String,
}

/// Position in a text, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: usize,
    /// Units: characters.
    pub column: usize,
}

impl YamlError {
    pub(super) fn new(place: Position, why: impl Into<String>) -> Self {
        Self {
            place,
            why: why.into(),
        }
    }
}
