//! A catalog as one file that is mapped into memory: replies lie in it as they are sent.
//!
//! ```text
//! header │ documents, one a line │ replies, package by package │ lists of everything │ tables
//! ```
//!
//! The header has a checksum, and so have the tables together: both are compared when the file is opened. Everything
//! else is compared block by block, each before its first byte is sent. So a file that is truncated or damaged anywhere
//! is noticed, and opening takes no longer for a large catalog.
//!
//! A bundle lies once in the file however many channels it is in: a message of protobuf may come in parts, and the part
//! that differs stands aside. So does its ClusterServiceVersion, though it is sent both as such and as an object.

mod batch;
mod build;
mod build_report;
mod custom_schema;
mod encode;
mod group;
mod header;
mod key;
mod lookup;
mod mmap;
mod open;
mod packages;
mod parallel;
mod prepare;
mod record;
mod slices;
mod spool;
mod string_table;
mod tables;
mod writer;

use crate::CatalogProblems;
use build_report::Strictness;

pub use build_report::BuildReport;
pub use key::{CacheKey, FolderStat};
pub use lookup::{CachedChannel, CachedDocument, CachedEntry, CachedPackage};
pub use mmap::Damaged;
pub use open::{CatalogCache, Refused};
pub use packages::PackageReadError;
pub use prepare::{PreparedCache, build_leniently, prepare, rebuild};
pub use record::ByteRange;
pub use slices::Slices;

/// Why there is no cache.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The catalog cannot be served.
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
    Restless,
}

/// For numbers that do not fit into the rows of tables.
fn too_large(_: std::num::TryFromIntError) -> BuildError {
    BuildError::TooLarge
}

/// For what went wrong while `doing`.
fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> BuildError {
    move |source| BuildError::Io { doing, source }
}

#[cfg(test)]
mod tests;
