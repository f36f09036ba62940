//! A folder with the metadata of each run, so that a later one may begin where an earlier one ended.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use model::Error;
use model::mirror_metadata::MirrorMetadata;

use super::metadata_file::{read_file, write_file};
use crate::archive::metadata_of;

/// Start and end of the names of files.
const START: &str = "run-";
const END: &str = ".json";

/// The metadata of the last run, or of the last one before a time. Units: seconds since 1970.
///
/// Blocking. Errors: Invalid – malformed metadata; Internal – the folder cannot be read.
pub(super) fn newest(folder: &Path, before: Option<i64>) -> Result<Option<MirrorMetadata>, Error> {
    let mut files = files(folder)?;
    files.sort_by_key(|(sequence, _)| std::cmp::Reverse(*sequence));
    for (_, path) in files {
        let metadata = read_file(&path)?;
        let is_it = |it: &MirrorMetadata| before.is_none_or(|time| it.past_mirror.timestamp < time);
        if let Some(metadata) = metadata.filter(is_it) {
            return Ok(Some(metadata));
        }
    }
    Ok(None)
}

/// Adds the metadata of a run. A run that is repeated replaces its own.
///
/// Blocking. Errors: Invalid – malformed metadata; Internal – the disk.
pub(super) fn add(folder: &Path, metadata: &[u8]) -> Result<(), Error> {
    let sequence = metadata_of(metadata)?.past_mirror.sequence;
    let path = folder.join(format!("{START}{sequence:06}{END}"));
    write_file(&path, metadata)
        .map_err(|e| Error::internal(format!("writing {}", path.display()), e))
}

/// The files, each with the sequence of its run.
fn files(folder: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    let failed = |e| Error::internal(format!("reading {}", folder.display()), e);
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let digits = name.and_then(|it| it.strip_prefix(START)?.strip_suffix(END));
        if let Some(sequence) = digits.and_then(|it| it.parse().ok()) {
            files.push((sequence, path));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn runs_are_found_by_their_times() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("history");
        assert_eq!(newest(&folder, None).unwrap(), None);
        for (sequence, timestamp) in [(1, 100), (2, 200), (10, 300)] {
            let mut metadata = MirrorMetadata::new(Uuid::from_u128(7), false);
            metadata.past_mirror.sequence = sequence;
            metadata.past_mirror.timestamp = timestamp;
            add(&folder, &serde_json::to_vec(&metadata).unwrap()).unwrap();
        }
        for (before, sequence) in [
            (None, Some(10)),
            (Some(301), Some(10)),
            (Some(300), Some(2)),
            (Some(101), Some(1)),
            (Some(100), None),
        ] {
            let found = newest(&folder, before).unwrap();
            let found = found.map(|it| it.past_mirror.sequence);
            assert_eq!(found, sequence, "{before:?}");
        }
        fs::write(folder.join("run-000011.json"), "no metadata").unwrap();
        assert!(newest(&folder, None).is_err());
    }
}
