//! Writes file-based catalogs: a folder with one folder for each package. The same documents always make the same files.

mod folder;
mod json;
#[cfg(test)]
mod tests;
mod yaml;

use std::io::{self, Write};

use crate::Document;
use crate::schema::{BUNDLE, CHANNEL, DEPRECATIONS, PACKAGE};

pub use folder::CatalogWriter;

/// How files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogFormat {
    Json,
    Yaml,
}

impl CatalogFormat {
    /// What the names of its files end with.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

/// Writes one document for people to read, so that it can follow and be followed by others.
///
/// Errors: those of `out`.
pub fn document(json: &str, format: CatalogFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        CatalogFormat::Json => json::write(json, out),
        CatalogFormat::Yaml => yaml::write(json, out),
    }
}

/// The documents of one package in the order in which they are written: package, channels, bundles, those of their
/// author's own, deprecations.
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
