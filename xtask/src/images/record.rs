//! The record of the last packing, so that the same input is not packed again.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// One packing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PackingRecord {
    /// Hash of the inputs.
    pub(super) inputs: String,
    /// Digest of the resulting image.
    pub(super) digest: String,
}

/// The value at `path`; `None` when it is missing or unreadable.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Replaces the file at `path` by the value.
pub(super) fn write<T: Serialize>(value: &T, path: &Path) -> Result<()> {
    let text = serde_json::to_vec(value)?;
    // Renamed when it is complete: a reader never sees a part.
    let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&unfinished, text)
        .and_then(|()| fs::rename(&unfinished, path))
        .with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("webui.json");
        assert_eq!(read::<PackingRecord>(&path), None);
        let record = PackingRecord {
            inputs: "1f".to_owned(),
            digest: "sha256:2e".to_owned(),
        };
        write(&record, &path).unwrap();
        assert_eq!(read(&path), Some(record));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::write(&path, "{\"inputs\":").unwrap();
        assert_eq!(read::<PackingRecord>(&path), None);
    }
}
