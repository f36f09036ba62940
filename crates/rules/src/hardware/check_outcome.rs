//! Results of the checks that precede an installation: of disks and images.

/// Result of a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CheckOutcome {
    /// No result yet.
    #[default]
    Unknown,
    /// The check passed.
    Good,
    /// The check failed.
    Failed,
}
