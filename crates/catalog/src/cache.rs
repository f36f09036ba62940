//! The catalog cache: one memory-mapped file with replies in wire format.
//!
//! ```text
//! header │ documents, one a line │ replies, package by package │ lists of everything │ tables
//! ```
//!
//! The header has a checksum, as have the tables together: both are verified on open. Everything else is verified block
//! by block, before its first byte is sent. So truncation and damage are detected anywhere, and the time to open does
//! not grow with the catalog.
//!
//! A bundle is stored once for all its channels: protobuf messages may be concatenated from parts, and the part that
//! differs per channel is separate. So is its ClusterServiceVersion, which is sent as `csvJson` and as an object.

mod batch;
mod build;
mod build_error;
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
mod unread;
mod writer;

pub use build_error::BuildError;
pub use build_report::BuildReport;
pub use key::{CacheKey, FolderStat};
pub use lookup::{CachedChannel, CachedDocument, CachedEntry, CachedPackage};
pub use mmap::Damaged;
pub use open::{CatalogCache, Refused};
pub use packages::PackageReadError;
pub use prepare::{PreparedCache, build_new, prepare, rebuild};
pub use record::ByteRange;
pub use slices::Slices;

#[cfg(test)]
mod tests;
