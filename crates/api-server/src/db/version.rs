//! Versions of stored records.

use model::time::Timestamp;

/// Version of a record: each change of the record changes it. Records of one revision differ in their time
/// after an older state of the database was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordVersion {
    /// Raised with each change.
    pub(crate) revision: i64,
    /// Time of the last change.
    pub(crate) updated_at: Timestamp,
}
