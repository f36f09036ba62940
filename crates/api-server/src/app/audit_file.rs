//! The copy of the audit log in a file: JSON lines, only ever appended.
//!
//! It is for programs that collect logs, and beyond the reach of the users of the API: records that the database no longer
//! keeps were in it. A disk that takes no more fails no request.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use service::StateLog;

/// Interval of repeated log lines about the same failure.
const REMINDER: Duration = Duration::from_mins(10);
/// Mode of the file: it names users.
const MODE: u32 = 0o640;

/// The file, and the state of the disk.
#[derive(Debug)]
pub(super) struct AuditFile {
    path: PathBuf,
    max_bytes: u64,
    failures: StateLog,
    /// Lines that are missing since the last one that was written.
    missing: usize,
}

impl AuditFile {
    pub(super) fn new(path: PathBuf, max_bytes: u64) -> Self {
        Self {
            path,
            max_bytes,
            failures: StateLog::new(REMINDER),
            missing: 0,
        }
    }

    /// Appends lines. It blocks.
    pub(super) fn append(&mut self, lines: &[u8], count: usize) {
        match self.try_append(lines) {
            Ok(()) if self.missing > 0 => {
                let missing = std::mem::take(&mut self.missing);
                self.failures = StateLog::new(REMINDER);
                tracing::info!(
                    missing,
                    "AUDIT_LOG_FILE is written again: the missing records are at /v2/audit"
                );
            }
            Ok(()) => {}
            Err(error) => {
                self.missing += count;
                let (missing, file) = (self.missing, self.path.display());
                let reason = error.to_string();
                if self.failures.admit(&reason, Instant::now()).is_some() {
                    tracing::error!(%file, reason, missing, "AUDIT_LOG_FILE lacks records");
                }
            }
        }
    }

    fn try_append(&self, lines: &[u8]) -> io::Result<()> {
        let mut file = self.open()?;
        let mut length = file.metadata()?.len();
        if length > 0 && length.saturating_add(lines.len() as u64) > self.max_bytes {
            let mut previous = self.path.clone().into_os_string();
            previous.push(".1");
            fs::rename(&self.path, previous)?;
            (file, length) = (self.open()?, 0);
        }
        let written = file.write_all(lines);
        if written.is_err() {
            // Half a line would spoil the next one.
            file.set_len(length).ok();
        }
        written
    }

    /// Opened for each append: the file may have been moved by programs that rotate logs.
    fn open(&self) -> io::Result<File> {
        let mut options = File::options();
        options.append(true).create(true).mode(MODE);
        options.open(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // limit: audit log file
    #[test]
    fn a_full_file_is_renamed_and_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let mut file = AuditFile::new(path.clone(), 8);
        for lines in ["one\n", "two\n", "three\n", "longer than all\n"] {
            file.append(lines.as_bytes(), 1);
            let length = fs::metadata(&path).unwrap().len();
            assert!(length <= 8 || lines.len() > 8, "{length}");
        }
        let read = |path| fs::read_to_string(path).unwrap();
        assert_eq!(read(path.clone()), "longer than all\n");
        assert_eq!(read(folder.path().join("audit.jsonl.1")), "three\n");
        assert_eq!(file.missing, 0);
    }

    #[test]
    fn a_disk_without_room_loses_whole_lines_and_recovers() {
        let mut full = AuditFile::new("/dev/full".into(), u64::MAX);
        full.append(b"one\n", 1);
        full.append(b"two\nthree\n", 2);
        assert_eq!(full.missing, 3);
        let folder = tempfile::tempdir().unwrap();
        full.path = folder.path().join("audit.jsonl");
        full.append(b"four\n", 1);
        assert_eq!(full.missing, 0);
        assert_eq!(fs::read_to_string(&full.path).unwrap(), "four\n");
    }
}
