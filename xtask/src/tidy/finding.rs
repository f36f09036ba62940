//! Findings of the rules.

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TidyFinding {
    /// File, with the line where there is one.
    pub(super) place: String,
    /// The remedy.
    pub(super) remedy: String,
}
