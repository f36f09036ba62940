//! Stale files of crashed processes, and identity of opened files.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Grace period of temporary files: longer than any upload, extraction or installer run.
pub const STALE_AFTER: Duration = Duration::from_hours(24);

/// Whether a file was last modified more than [`STALE_AFTER`] before `now`.
pub fn is_stale(found: &Metadata, now: SystemTime) -> bool {
    let changed_at = found.modified().ok();
    let age = changed_at.and_then(|changed_at| now.duration_since(changed_at).ok());
    age.is_some_and(|age| age > STALE_AFTER)
}

/// Whether `path` is still the opened file: another process may have removed or replaced it.
pub fn is_same(path: &Path, opened: &Metadata) -> bool {
    fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (opened.dev(), opened.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn files_become_stale_after_the_grace_period() {
        let file = tempfile::tempfile().unwrap();
        let found = file.metadata().unwrap();
        let changed_at = found.modified().unwrap();
        assert!(!is_stale(&found, changed_at + STALE_AFTER));
        let later = changed_at + STALE_AFTER + Duration::from_secs(1);
        assert!(is_stale(&found, later));
        // A clock that was set back makes no file stale.
        assert!(!is_stale(&found, SystemTime::UNIX_EPOCH));
    }

    #[test]
    fn replaced_files_are_not_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let opened = File::create(&path).unwrap();
        let known = opened.metadata().unwrap();
        assert!(is_same(&path, &known));
        fs::remove_file(&path).unwrap();
        assert!(!is_same(&path, &known));
        File::create(&path).unwrap();
        assert!(!is_same(&path, &known));
    }
}
