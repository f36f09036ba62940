//! Syntax errors of YAML, with their positions.

/// Syntax error with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct YamlError {
    /// The position.
    pub place: Position,
    /// The mistake.
    pub why: String,
}

/// Position in a text, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column. Units: characters.
    pub column: usize,
}

impl YamlError {
    /// An error at a position.
    pub fn new(place: Position, why: impl Into<String>) -> Self {
        Self {
            place,
            why: why.into(),
        }
    }
}
