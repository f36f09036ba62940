//! How images of catalogs say where their files are. Source: operator-registry, file-based catalogs.

use std::collections::BTreeMap;

/// Label that names the folder of the catalog.
pub const FOLDER_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// Label of images that have a database instead.
pub const DATABASE_LABEL: &str = "operators.operatorframework.io.index.database.v1";
/// Where the catalog is when no label says it.
pub const DEFAULT_FOLDER: &str = "/configs";
/// Files and folders of one catalog; large ones have some thousands.
pub const FILES_LIMIT: usize = 250_000;
/// Units: bytes. The largest catalogs have some hundred megabytes.
pub const BYTES_LIMIT: u64 = 8 << 30;

/// Where the files are, by the labels of the image; nothing when it has a database.
pub fn folder(labels: &BTreeMap<String, String>) -> Option<&str> {
    let label = labels.get(FOLDER_LABEL).filter(|folder| !folder.is_empty());
    let is_database = labels.contains_key(DATABASE_LABEL);
    match label {
        Some(folder) => Some(folder),
        None => (!is_database).then_some(DEFAULT_FOLDER),
    }
}
