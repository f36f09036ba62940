//! What killed processes leave behind, and whether a file is still the one that its name leads to.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// No upload, extraction or run of an installer takes as long.
pub(crate) const LEFT_BEHIND_AFTER: Duration = Duration::from_hours(24);

/// Whether what was found is too old at `now` for anybody to be at it.
pub(crate) fn is_left_behind(found: &Metadata, now: SystemTime) -> bool {
    let changed_at = found.modified().ok();
    let age = changed_at.and_then(|changed_at| now.duration_since(changed_at).ok());
    age.is_some_and(|age| age > LEFT_BEHIND_AFTER)
}

/// Whether `path` leads to the file that was opened: somebody else may have removed or replaced it meanwhile.
pub(crate) fn is_same(path: &Path, opened: &Metadata) -> bool {
    fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (opened.dev(), opened.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn what_is_older_than_a_day_is_left_behind() {
        let file = tempfile::tempfile().unwrap();
        let found = file.metadata().unwrap();
        let changed_at = found.modified().unwrap();
        assert!(!is_left_behind(&found, changed_at + LEFT_BEHIND_AFTER));
        let later = changed_at + LEFT_BEHIND_AFTER + Duration::from_secs(1);
        assert!(is_left_behind(&found, later));
        // A clock that was set back makes nothing old.
        assert!(!is_left_behind(&found, SystemTime::UNIX_EPOCH));
    }

    #[test]
    fn a_file_that_took_the_name_is_another() {
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
