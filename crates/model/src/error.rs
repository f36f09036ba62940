//! The one error of the domain: transport-free, and every variant says who must act.

use std::error::Error as StdError;

/// What went wrong, in the terms of whoever has to act on it.
///
/// Each transport renders it in its own file: HTTP status and body, the registry's error list, a gRPC status.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The named thing does not exist.
    #[error("{kind} {id} was not found")]
    NotFound {
        /// Noun, as the wire spells it.
        kind: &'static str,
        /// What was asked for.
        id: String,
    },
    /// The caller sent something that cannot be accepted, whatever the state.
    #[error("{field}: {reason}")]
    Invalid {
        /// Wire name of the field, or of the body.
        field: String,
        /// What is wrong with the value, and what would be right.
        reason: String,
    },
    /// The state forbids it now, or it exists already.
    #[error("{reason}")]
    Conflict {
        /// What forbids it, and what to do first.
        reason: String,
    },
    /// No or wrong credentials.
    #[error("{reason}")]
    Unauthenticated {
        /// What is missing.
        reason: String,
    },
    /// Known, but not allowed.
    #[error("{reason}")]
    Forbidden {
        /// What is not allowed.
        reason: String,
    },
    /// More than the stated limit.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What was sent.
        what: &'static str,
        /// Units: bytes.
        limit: u64,
    },
    /// A neighbour is away: the same call works later.
    #[error("{what} is not available now, try again")]
    Unavailable {
        /// The neighbour, by role, never by address.
        what: &'static str,
        /// The cause, for the log.
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// Our fault, or the machine's.
    #[error("{doing} failed")]
    Internal {
        /// What was being done.
        doing: String,
        /// The cause, for the log.
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
}

impl Error {
    /// The named thing does not exist.
    pub fn not_found(kind: &'static str, id: impl std::fmt::Display) -> Self {
        Self::NotFound {
            kind,
            id: id.to_string(),
        }
    }

    /// `field` holds something that cannot be accepted.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            field: field.into(),
            reason: reason.into(),
        }
    }

    /// The state forbids it now.
    pub fn conflict(reason: impl Into<String>) -> Self {
        Self::Conflict {
            reason: reason.into(),
        }
    }

    /// A neighbour is away.
    pub fn unavailable(
        what: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::Unavailable {
            what,
            source: Some(source.into()),
        }
    }

    /// Our fault, or the machine's, while `doing`.
    pub fn internal(
        doing: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::Internal {
            doing: doing.into(),
            source: Some(source.into()),
        }
    }

    /// The error and its causes on one line, for a log.
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// An error and its causes on one line; a cause that the text before it ends with is not told twice.
pub fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let told = cause.to_string();
        if !text.ends_with(&told) {
            text.extend([": ", &told]);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("opening the folder failed")]
    struct Quiet(#[source] std::io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error("opening the folder failed: {0}")]
    struct Repeating(#[source] std::io::Error);

    #[test]
    fn causes_are_told_once() {
        let io = || std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem);
        let told = format!("opening the folder failed: {}", io());
        assert_eq!(chain(&Quiet(io())), told);
        assert_eq!(chain(&Repeating(io())), told);
        assert_eq!(chain(&std::fmt::Error), std::fmt::Error.to_string());
    }
}
