//! Verdicts of checks.

use std::borrow::Cow;
use std::fmt::Display;

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Success(Cow<'static, str>),
    /// It fails.
    Failure(Finding),
    /// An input is missing; the text names it.
    Pending(String),
    /// An input is broken.
    Error(Finding),
    /// It does not apply: neither shown nor blocking.
    Hidden,
}

/// A problem: its message, and its parts for explanations. An empty part follows from the row of the validation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    /// Field, value and remedy in one sentence.
    pub message: String,
    /// The value that was found.
    pub observed: String,
    /// The value that would pass.
    pub required: String,
    /// The remedy.
    pub fix: String,
}

impl Finding {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

impl Verdict {
    /// Success.
    pub(crate) fn ok(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Success(message.into())
    }

    /// Failure: field, value, remedy.
    pub(crate) fn fail(message: impl Into<String>) -> Self {
        Self::Failure(Finding::new(message))
    }

    /// A broken input.
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self::Error(Finding::new(message))
    }

    /// An input is missing.
    pub(crate) fn wait(what: impl Into<String>) -> Self {
        Self::Pending(what.into())
    }

    /// Success or failure by a claim. Most checks pass, so that `bad` is printed only when it fails.
    pub(crate) fn of(claim: bool, good: impl Into<Cow<'static, str>>, bad: impl Display) -> Self {
        if claim {
            Self::Success(good.into())
        } else {
            Self::fail(bad.to_string())
        }
    }

    /// Adds the value that was found, unless the check passes.
    pub(crate) fn observed(mut self, value: impl Display) -> Self {
        if let Some(finding) = self.finding() {
            finding.observed = value.to_string();
        }
        self
    }

    /// Adds the value that would pass; without it, the row's.
    pub(crate) fn required(mut self, value: impl Display) -> Self {
        if let Some(finding) = self.finding() {
            finding.required = value.to_string();
        }
        self
    }

    /// Adds a remedy; without it, the row's.
    pub(crate) fn fix(mut self, sentence: impl Display) -> Self {
        if let Some(finding) = self.finding() {
            finding.fix = sentence.to_string();
        }
        self
    }

    fn finding(&mut self) -> Option<&mut Finding> {
        match self {
            Self::Failure(finding) | Self::Error(finding) => Some(finding),
            Self::Success(_) | Self::Pending(_) | Self::Hidden => None,
        }
    }
}
