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

mod build;
mod custom;
mod encode;
mod file;
mod group;
mod header;
mod judged;
mod key;
mod lookup;
mod map;
mod open;
mod order;
mod packages;
mod part;
mod prepare;
mod record;
mod slices;
mod spool;
mod tables;
mod texts;

use crate::Problems;
use judged::Strictness;

pub use judged::Judged;
pub use key::{Key, Look};
pub use lookup::{Channel, Entry, Line, Package};
pub use map::Damaged;
pub use open::{Cache, Refused};
pub use packages::Unusable;
pub use prepare::{Prepared, build_leniently, prepare, rebuild};
pub use record::Span;
pub use slices::Slices;

/// Why there is no cache.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The catalog cannot be served.
    #[error("{0}")]
    Invalid(#[from] Problems),
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
