//! Schema versions of databases.

/// Oldest supported migration: the first with bundle versions.
pub(super) const OLDEST: i64 = 5;
/// Last migration of operator-registry.
pub(super) const NEWEST: i64 = 13;

/// Migration version of the database, which decides its tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SchemaVersion(pub(super) i64);

impl SchemaVersion {
    /// From 6 on, APIs refer to bundles; before, to channel entries.
    pub(super) fn has_apis_of_bundles(self) -> bool {
        self.0 >= 6
    }

    pub(super) fn has_dependencies(self) -> bool {
        self.0 >= 8
    }

    pub(super) fn has_properties(self) -> bool {
        self.0 >= 9
    }
}
