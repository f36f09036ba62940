//! Versions of stored records.

use model::time::Timestamp;

/// Version of a record: each change of the record changes it. The time tells records of the same revision apart, after
/// an older state of the database was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordVersion {
    /// Raised with each change.
    pub(crate) revision: i64,
    /// Time of the last change.
    pub(crate) updated_at: Timestamp,
}
