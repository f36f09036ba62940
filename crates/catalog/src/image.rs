//! Labels and size limits of catalog images. Source: operator-registry, file-based catalogs.

use std::collections::BTreeMap;

/// Label with the catalog's folder.
pub const FOLDER_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// Label of images with an SQLite database instead.
pub const DATABASE_LABEL: &str = "operators.operatorframework.io.index.database.v1";
/// Folder of the catalog in images without a label.
pub const DEFAULT_FOLDER: &str = "/configs";
/// Limit of files and folders in one catalog; large ones have some thousands.
pub const FILES_LIMIT: usize = 250_000;
/// Limit of an unpacked catalog. Units: bytes. The largest have some hundred megabytes.
pub const BYTES_LIMIT: u64 = 8 << 30;

/// Folder of the catalog by the labels of its image; `None` for a database.
pub fn folder(labels: &BTreeMap<String, String>) -> Option<&str> {
    let label = labels.get(FOLDER_LABEL).filter(|folder| !folder.is_empty());
    let is_database = labels.contains_key(DATABASE_LABEL);
    match label {
        Some(folder) => Some(folder),
        None => (!is_database).then_some(DEFAULT_FOLDER),
    }
}
