//! Small files that are read again when they change.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Units: bytes. Far beyond any hosts file; what follows is not looked at.
const MAX_SIZE: u64 = 16 * 1024 * 1024;
/// A file that was written so shortly before it was read may have been written again in the same tick of the clock.
const SETTLED: Duration = Duration::from_secs(1);

/// What a file says. The few microseconds of looking at it are spent on the caller's thread.
#[derive(Debug)]
pub(super) struct Watched<T> {
    path: PathBuf,
    parse: fn(&str) -> T,
    read: Mutex<Option<(Version, Arc<T>)>>,
}

/// What changes with the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl<T> Watched<T> {
    pub(super) fn new(path: PathBuf, parse: fn(&str) -> T) -> Self {
        Self {
            path,
            parse,
            read: Mutex::new(None),
        }
    }

    /// What the file says now.
    ///
    /// Errors: it cannot be read.
    pub(super) fn current(&self) -> io::Result<Arc<T>> {
        let metadata = std::fs::metadata(&self.path)?;
        let version = Version::of(&metadata);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, content)) = read.as_ref()
            && *known == version
        {
            return Ok(Arc::clone(content));
        }
        *read = None;
        let mut bytes = Vec::new();
        File::open(&self.path)?
            .take(MAX_SIZE)
            .read_to_end(&mut bytes)?;
        let content = Arc::new((self.parse)(&String::from_utf8_lossy(&bytes)));
        let age = metadata
            .modified()
            .ok()
            .and_then(|time| SystemTime::now().duration_since(time).ok());
        if age.is_some_and(|age| age > SETTLED) {
            *read = Some((version, Arc::clone(&content)));
        }
        Ok(content)
    }
}

impl Version {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static PARSED: AtomicUsize = AtomicUsize::new(0);

    fn parse(text: &str) -> String {
        PARSED.fetch_add(1, Ordering::Relaxed);
        text.to_owned()
    }

    #[test]
    fn a_file_is_read_when_it_changes_and_only_then() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        let watched = Watched::new(path.clone(), parse);
        assert_eq!(
            watched.current().unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        for text in ["one", "two"] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(*watched.current().unwrap(), text, "in the same tick");
        }
        let long_ago = SystemTime::now() - Duration::from_mins(1);
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        watched.current().unwrap();
        let parsed = PARSED.load(Ordering::Relaxed);
        watched.current().unwrap();
        assert_eq!(PARSED.load(Ordering::Relaxed), parsed, "it is the same");
        std::fs::remove_file(&path).unwrap();
        watched.current().unwrap_err();
    }
}
