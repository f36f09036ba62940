//! The one error of the domain: transport-free, with a variant for each party that must act.

use std::error::Error as StdError;

/// An error, by the party that must act.
///
/// Each transport renders it in its own file: HTTP status and body, the registry's error list, a gRPC status.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The named thing does not exist.
    #[error("{kind} {id} was not found")]
    NotFound {
        /// Noun, as the wire spells it.
        kind: &'static str,
        /// Id in the request.
        id: String,
    },
    /// The caller sent an unacceptable value, in any state.
    #[error("{field}: {reason}")]
    Invalid {
        /// Wire name of the field, or of the body.
        field: String,
        /// The problem, and an acceptable value.
        reason: String,
    },
    /// The state forbids it now, or it exists already.
    #[error("{reason}")]
    Conflict {
        /// The reason, and the remedy.
        reason: String,
    },
    /// No or wrong credentials.
    #[error("{reason}")]
    Unauthenticated {
        /// The missing credential.
        reason: String,
    },
    /// Known, but not allowed.
    #[error("{reason}")]
    Forbidden {
        /// The forbidden action.
        reason: String,
    },
    /// More than the stated limit.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// The rejected content.
        what: &'static str,
        /// Units: bytes.
        limit: u64,
    },
    /// A dependency is unavailable: the same call works later.
    #[error("{what} is not available now, try again")]
    Unavailable {
        /// The dependency, by role, never by address.
        what: &'static str,
        /// The cause, for the log.
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    /// A failure of this service, or of its machine.
    #[error("{doing} failed")]
    Internal {
        /// The failed action.
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

    /// `field` holds an unacceptable value.
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

    /// A dependency is unavailable.
    pub fn unavailable(
        what: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self::Unavailable {
            what,
            source: Some(source.into()),
        }
    }

    /// A failure of this service, or of its machine, while `doing`.
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

/// An error and its causes. Unlike [`StdError::source`], also through an I/O error, which hides the error that it
/// wraps.
pub fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |cause| {
        let cause: &'a (dyn StdError + 'static) = *cause;
        let wrapped = cause
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref);
        match wrapped {
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        }
    })
}

/// An error and its causes on one line, without a cause that the text already ends with.
pub fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.extend([": ", &cause_text]);
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
    fn causes_are_printed_once() {
        let io = || std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem);
        let expected = format!("opening the folder failed: {}", io());
        assert_eq!(chain(&Quiet(io())), expected);
        assert_eq!(chain(&Repeating(io())), expected);
        assert_eq!(chain(&std::fmt::Error), std::fmt::Error.to_string());
    }
}
