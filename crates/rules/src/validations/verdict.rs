//! Verdicts of checks.

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Success(String),
    /// It fails.
    Failure(String),
    /// An input is missing; the text names it.
    Pending(String),
    /// An input is broken.
    Error(String),
    /// It does not apply: neither shown nor blocking.
    Hidden,
}

impl Verdict {
    /// Success.
    pub(crate) fn ok(message: impl Into<String>) -> Self {
        Self::Success(message.into())
    }

    /// Failure: field, value, remedy.
    pub(crate) fn fail(message: impl Into<String>) -> Self {
        Self::Failure(message.into())
    }

    /// An input is missing.
    pub(crate) fn wait(what: impl Into<String>) -> Self {
        Self::Pending(what.into())
    }

    /// Success or failure by a claim.
    pub(crate) fn of(claim: bool, good: impl Into<String>, bad: impl Into<String>) -> Self {
        if claim {
            Self::Success(good.into())
        } else {
            Self::Failure(bad.into())
        }
    }
}
