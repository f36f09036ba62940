//! Errors of a database import.

use std::fmt;

use super::schema_version::{NEWEST, OLDEST};

/// Failure of an import.
#[derive(Debug)]
pub enum ImportError<E> {
    /// Not a database, or a table is missing.
    Database(rusqlite::Error),
    /// Unsupported migration version; `None` when absent.
    Layout(Option<i64>),
    /// Malformed content of a bundle.
    Bundle { name: String, reason: String },
    /// Error of the callback.
    Each(E),
}

impl<E: fmt::Display> fmt::Display for ImportError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(_) => f.write_str("not a catalog database"),
            Self::Layout(None) => f.write_str("the database has no migration version"),
            Self::Layout(Some(version)) => write!(
                f,
                "the database has migration version {version}; {OLDEST} to {NEWEST} are supported, older ones by opm migrate of operator-registry 1.73"
            ),
            Self::Bundle { name, reason } => write!(f, "bundle {name:?}: {reason}"),
            Self::Each(e) => e.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for ImportError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Database(e) => Some(e),
            Self::Each(e) => e.source(),
            Self::Layout(_) | Self::Bundle { .. } => None,
        }
    }
}

impl<E> From<rusqlite::Error> for ImportError<E> {
    fn from(e: rusqlite::Error) -> Self {
        Self::Database(e)
    }
}
