//! Errors of configurations, data URLs and archives.

use located_yaml::Position;

/// An invalid input, and its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no JSON.
    #[error("line {}, column {}: {reason}", at.line, at.column)]
    Syntax {
        /// Where it stops to be JSON.
        at: Position,
        /// The problem.
        reason: String,
    },
    /// Ignition refuses or ignores a member.
    #[error("{at}: {reason}")]
    Invalid {
        /// Path of the member.
        at: String,
        /// The problem, and an acceptable value.
        reason: String,
    },
    /// The text is no data URL.
    #[error("data URL: {0}")]
    DataUrl(String),
    /// The contents are not those that the configuration was written for.
    #[error("the contents have the hash {found}, another than verification.hash")]
    Hash {
        /// `sha512-<hex>` or `sha256-<hex>`.
        found: String,
    },
    /// The bytes are no archive of the expected kind.
    #[error("archive: {0}")]
    Archive(String),
}
