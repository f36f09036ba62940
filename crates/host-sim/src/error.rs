//! Errors of simulated machines.

use std::path::PathBuf;

/// Error of a simulated machine or of its input.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}: {doing}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Failed operation.
        doing: &'static str,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// Malformed input: an image, ignition, arguments of a step.
    #[error("{what}: {reason}")]
    Invalid {
        /// The input.
        what: String,
        /// The reason.
        reason: String,
    },
    /// The server could not be reached.
    #[error("{method} {url} had no answer")]
    Unreachable {
        /// HTTP method.
        method: &'static str,
        /// Full address.
        url: String,
        /// The client's failure.
        #[source]
        source: reqwest::Error,
    },
    /// The server answered with a status that is no success.
    #[error("{method} {url}: {status}: {body}")]
    Status {
        /// HTTP method.
        method: &'static str,
        /// Full address.
        url: String,
        /// HTTP status.
        status: u16,
        /// The answer's text, `reason` or `message` where the body has one.
        body: String,
    },
    /// The HTTP client could not be made.
    #[error("cannot make an HTTP client for {url}")]
    Client {
        /// Address that it was meant for.
        url: String,
        /// The client's failure.
        #[source]
        source: reqwest::Error,
    },
}

impl Error {
    pub(crate) fn invalid(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Invalid {
            what: what.into(),
            reason: reason.into(),
        }
    }

    /// The status of the answer, when there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The text with all its causes, for one log line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text.push_str(": ");
            text.push_str(&error.to_string());
            cause = error.source();
        }
        text
    }
}
