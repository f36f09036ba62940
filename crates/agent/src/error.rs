//! Errors of the agent.

use std::error::Error as StdError;
use std::fmt::Write as _;

/// A failure, with the action and its cause.
#[derive(Debug, thiserror::Error)]
#[error("{action}")]
pub struct Error {
    action: String,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
    /// Status of an HTTP response.
    status: Option<u16>,
}

impl Error {
    pub(crate) fn new(
        action: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        Self {
            action: action.into(),
            source: Some(source.into()),
            status: None,
        }
    }

    /// A failed operation of the system.
    pub fn io(action: impl Into<String>, source: std::io::Error) -> Self {
        Self::new(action, source)
    }

    /// A failure without a cause below it.
    pub(crate) fn message(text: impl Into<String>) -> Self {
        Self {
            action: text.into(),
            source: None,
            status: None,
        }
    }

    /// An HTTP response that is none of success.
    pub(crate) fn response(action: impl Into<String>, status: u16, text: &str) -> Self {
        Self {
            action: action.into(),
            source: Some(format!("the service answered {status}: {text}").into()),
            status: Some(status),
        }
    }

    /// Status of the HTTP response, when there was one.
    pub(crate) fn status(&self) -> Option<u16> {
        self.status
    }

    /// The failure and its causes in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = self.source();
        while let Some(cause) = source {
            let _ = write!(text, ": {cause}");
            source = cause.source();
        }
        text
    }
}
