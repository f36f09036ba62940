//! A log file with rotation.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use service::{Error, ResultExt as _};

/// Units: bytes. Two files are kept: enough for days of an idle service and hours of a busy one.
const MAX_BYTES: u64 = 10 << 20;

/// Appends lines; a full file is rotated to `<name>.1`, which replaces the previous one.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    written: u64,
    max_bytes: u64,
}

impl LogFile {
    /// Opens `path` for appending.
    ///
    /// Errors: the file cannot be opened.
    pub(crate) fn open(path: PathBuf) -> Result<Self, Error> {
        Self::with_limit(path, MAX_BYTES)
    }

    fn with_limit(path: PathBuf, max_bytes: u64) -> Result<Self, Error> {
        let doing = || format!("opening the log {}", path.display());
        let file = append(&path).doing(doing)?;
        let written = file.metadata().doing(doing)?.len();
        Ok(Self {
            path,
            file,
            written,
            max_bytes,
        })
    }

    /// Path of the log.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Appends one line. Lines are lost on a full disk, which must not stop the service.
    pub(crate) fn line(&mut self, line: &[u8]) {
        if self.written >= self.max_bytes {
            self.rotate();
        }
        let whole = [line, b"\n"].concat();
        if self.file.write_all(&whole).is_ok() {
            self.written += whole.len() as u64;
        }
    }

    fn rotate(&mut self) {
        let mut old = self.path.clone().into_os_string();
        old.push(".1");
        if std::fs::rename(&self.path, old).is_err() {
            return;
        }
        if let Ok(file) = append(&self.path) {
            self.file = file;
            self.written = 0;
        }
    }
}

fn append(path: &std::path::Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_is_rotated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let mut log = LogFile::with_limit(path.clone(), 10).unwrap();
        for line in ["first line", "second", "third line"] {
            log.line(line.as_bytes());
        }
        let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(&path), "second\nthird line\n");
        assert_eq!(read(&dir.path().join("x.log.1")), "first line\n");
    }
}
