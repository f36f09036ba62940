//! The error of rehearsals.

use std::error::Error as StdError;

/// The operation in texts of errors.
pub(crate) const DOING: &str = "rehearsing the installation";

/// A rehearsal that could not take place, by the party that must act.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A member of the request has an unacceptable value.
    #[error("{field}: {reason}")]
    Invalid {
        /// Name of the member.
        field: &'static str,
        /// The problem, and an acceptable value.
        reason: String,
    },
    /// The server did not respond, or not as the protocol has it.
    #[error("{doing}: {source}")]
    Server {
        /// Failed operation, with the request's address.
        doing: String,
        /// The cause.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// A failure of this process, or of its configuration.
    #[error("{doing}: {source}")]
    Internal {
        /// Failed operation.
        doing: String,
        /// The cause.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
}

impl Error {
    pub(crate) fn invalid(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            field,
            reason: reason.into(),
        }
    }

    pub(crate) fn server(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Server {
            doing: DOING.to_owned(),
            source: source.into(),
        }
    }

    pub(crate) fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Internal {
            doing: DOING.to_owned(),
            source: source.into(),
        }
    }
}
