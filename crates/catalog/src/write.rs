//! Writes file-based catalogs: one folder per package. Output is deterministic.

mod folder;
mod json;
#[cfg(test)]
mod tests;

use std::io::{self, Write};

use located_yaml::portable;

use crate::Document;
use crate::schema::{BUNDLE, CHANNEL, DEPRECATIONS, PACKAGE};

pub use folder::CatalogWriter;

/// Format of catalog files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogFormat {
    Json,
    Yaml,
}

impl CatalogFormat {
    /// File extension.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

/// Writes one indented document that can be concatenated with others.
///
/// Errors: those of `out`; as [`portable::write`] for YAML.
pub fn document(json: &str, format: CatalogFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        CatalogFormat::Json => json::write(json, out),
        CatalogFormat::Yaml => portable::write(json, out),
    }
}

/// Sorts the documents of one package: package, channels, bundles, custom ones, deprecations. Source: `opm render`.
pub fn in_order(documents: &[Document]) -> Vec<&Document> {
    let mut ordered: Vec<&Document> = documents.iter().collect();
    ordered.sort_by_key(|document| {
        let schema = document.schema.as_str();
        let (rank, key) = match schema {
            PACKAGE => (0, ""),
            CHANNEL => (1, document.name.as_str()),
            BUNDLE => (2, document.name.as_str()),
            DEPRECATIONS => (4, ""),
            _ => (3, schema),
        };
        (rank, key)
    });
    ordered
}
