//! Failures of a cache build.

use crate::CatalogProblems;

/// Failure of a cache build.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The catalog is invalid.
    #[error("{0}")]
    Invalid(#[from] CatalogProblems),
    #[error("{doing}: {source}")]
    Io {
        doing: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("names and lists of the catalog take more than 4 GiB")]
    TooLarge,
    #[error("the catalog's files change while they are read")]
    Unstable,
}

/// Error for numbers beyond the width of table rows.
pub(super) fn too_large(_: std::num::TryFromIntError) -> BuildError {
    BuildError::TooLarge
}

/// Error for an I/O failure while `doing`.
pub(super) fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> BuildError {
    move |source| BuildError::Io { doing, source }
}
