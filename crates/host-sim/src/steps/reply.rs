//! Replies to steps.

use serde_json::Value;

/// A step reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StepReply {
    pub(crate) exit_code: i64,
    pub(crate) output: String,
    pub(crate) error: String,
    /// Whether the runner ends after it.
    pub(crate) restarts: bool,
}

impl StepReply {
    pub(super) fn json(value: &Value) -> Self {
        Self {
            output: value.to_string(),
            ..Self::default()
        }
    }

    pub(super) fn failed(exit_code: i64, error: impl Into<String>) -> Self {
        Self {
            exit_code,
            error: error.into(),
            ..Self::default()
        }
    }
}
