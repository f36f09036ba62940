//! The ClusterServiceVersion built from `olm.csv.metadata`. Source: operator-registry, `pkg/api/model_to_api.go`.

mod json;
mod metadata;
mod package_metadata;
mod quoted;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use json::to_json;
pub(crate) use metadata::{CsvMetadata, metadata_of_csv};
pub use package_metadata::PackageMetadata;
use quoted::Quoted;
pub(crate) use write::write;
