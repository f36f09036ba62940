//! Errors of configurations, data URLs and archives.

/// An invalid input, and its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no JSON, or a member has the wrong type.
    #[error("{at}: {reason}")]
    Syntax {
        /// Path of the member, as in `storage.files[0].mode`; `.` is the whole document.
        at: String,
        /// Message of the parser.
        reason: String,
    },
    /// The version is missing or unknown.
    #[error("ignition.version: {found:?} is not supported, expected one of 3.0.0 to 3.5.0")]
    Version {
        /// The version found; empty without one.
        found: String,
    },
    /// Ignition refuses the value of a member.
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
    /// The bytes are no archive of the expected kind.
    #[error("archive: {0}")]
    Archive(String),
}

impl Error {
    pub(crate) fn invalid(at: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            at: at.into(),
            reason: reason.into(),
        }
    }
}
