//! File-based operator catalogs: a folder of files with JSON or YAML documents, each of which is a package, a channel,
//! a bundle, a deprecation or a custom schema.

mod advice;
pub mod api;
mod bundle_images;
pub mod cache;
mod check;
pub mod content;
mod csv;
pub mod diff;
mod document;
pub mod filter;
pub mod graph;
mod ignore;
pub mod image;
pub mod normal;
mod problem;
pub mod range;
mod read;
pub mod registry_v1;
pub mod schema;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod template;
#[cfg(test)]
mod testing;
pub mod version;
mod walk;
pub mod write;

pub use advice::Advice;
pub use bundle_images::bundle_images;
pub use check::PackageProblems;
pub use document::{Document, DocumentOrigin, PACKAGE};
pub use problem::{CatalogProblem, CatalogProblems, Rule};
pub use read::{MAX_DOCUMENT_BYTES, cores, read, read_files, yaml_to_json};
pub use walk::{FolderWalk, walk};
