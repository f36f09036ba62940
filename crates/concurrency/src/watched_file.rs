//! A file whose parsed content is reloaded when the file changes.

use std::fmt;
use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, SystemTime};

use tokio::sync::Mutex;

/// Units: bytes. Largest file.
const LIMIT_BYTES: u64 = 16 << 20;
/// A file that was written this shortly before a read may be written again within the same tick of the clock.
const SETTLED: Duration = Duration::from_secs(1);

/// How often a file is looked at while a change is awaited.
const INTERVAL: Duration = Duration::from_secs(5);

/// An error of a parser.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Parse<T> = fn(&[u8]) -> Result<T, BoxError>;

/// Parsed content of a file. A file that cannot be read or parsed leaves the previous content in force.
///
/// Each use compares the file's metadata: that works on every kind of mount, inotify does not.
pub struct WatchedFile<T> {
    path: PathBuf,
    parse: Parse<T>,
    state: RwLock<LoadedFile<T>>,
    /// Held while there is only the stand-in of a file that exists.
    first: Mutex<()>,
}

struct LoadedFile<T> {
    content: Arc<T>,
    /// Hash of the bytes that `content` was parsed from; None for a stand-in.
    hash: Option<u64>,
    version: FileVersion,
}

/// Changes with the content. The time alone would miss a second change within one tick of the clock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileVersion {
    Absent,
    Present {
        device: u64,
        inode: u64,
        size: u64,
        modified: (i64, i64),
        changed: (i64, i64),
        is_settled: bool,
    },
}

impl<T: Send + Sync + 'static> WatchedFile<T> {
    /// Errors: the file cannot be read, is larger than 16 MiB or does not parse.
    pub async fn open(path: &Path, parse: Parse<T>) -> Result<Self, BoxError> {
        // Before the read, so that a change during it is seen.
        let version = FileVersion::of(path);
        let changed = read(path.to_owned(), parse, None).await?;
        let (content, hash) = changed.ok_or("nothing was read")?;
        Ok(Self::with(path, parse, content, Some(hash), version))
    }

    /// A file that may be absent: until it exists, `content` stands in for it.
    pub fn awaiting(path: &Path, parse: Parse<T>, content: T) -> Self {
        Self::with(path, parse, content, None, FileVersion::Absent)
    }

    fn with(
        path: &Path,
        parse: Parse<T>,
        content: T,
        hash: Option<u64>,
        version: FileVersion,
    ) -> Self {
        let content = Arc::new(content);
        Self {
            path: path.to_owned(),
            parse,
            state: RwLock::new(LoadedFile {
                content,
                hash,
                version,
            }),
            first: Mutex::new(()),
        }
    }

    /// The content of the file now, or when it last could be read and parsed.
    pub async fn get(&self) -> Arc<T> {
        // A blocking task would cost more than one `stat`.
        let version = FileVersion::of(&self.path);
        let is_stand_in = {
            let state = self.state();
            let is_stand_in = state.hash.is_none() && version != FileVersion::Absent;
            if state.is_current(version) && !is_stand_in {
                return state.content.clone();
            }
            is_stand_in
        };
        // Users that come during the first read wait for its content.
        let _first = if is_stand_in {
            Some(self.first.lock().await)
        } else {
            None
        };
        let (is_new, known, mut pending) = {
            let mut state = self.state_mut();
            if state.is_current(version) {
                return state.content.clone();
            }
            // Set before the read: each change is read and logged once, not with each request.
            let is_new = !state.version.is_same_file_state(version);
            let previous = std::mem::replace(&mut state.version, version);
            let pending = PendingRead {
                state: &self.state,
                version,
                previous,
                is_done: false,
            };
            (is_new, state.hash, pending)
        };
        let path = self.path.display();
        let found = read(self.path.clone(), self.parse, known).await;
        pending.is_done = true;
        match found {
            Ok(Some((content, hash))) => {
                tracing::info!(%path, "file reloaded");
                let mut state = self.state_mut();
                // A read that a later change overtook has older content.
                if state.version == version {
                    state.content = Arc::new(content);
                    state.hash = Some(hash);
                }
            }
            Err(error) if is_new => {
                tracing::error!(%path, %error, "file not reloaded, the previous content stays in force");
            }
            // The same bytes keep the same `Arc`: users compare it to notice a change.
            Ok(None) | Err(_) => {}
        }
        self.state().content.clone()
    }

    /// Waits until the content is another than `known`.
    pub async fn changed(&self, known: &Arc<T>) -> Arc<T> {
        loop {
            let content = self.get().await;
            if !Arc::ptr_eq(&content, known) {
                return content;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    fn state(&self) -> RwLockReadGuard<'_, LoadedFile<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, LoadedFile<T>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> LoadedFile<T> {
    fn is_current(&self, version: FileVersion) -> bool {
        self.version == version && version.is_settled()
    }
}

/// A read in progress: one that is cancelled leaves the change to the next use.
struct PendingRead<'a, T> {
    state: &'a RwLock<LoadedFile<T>>,
    version: FileVersion,
    previous: FileVersion,
    is_done: bool,
}

impl<T> Drop for PendingRead<'_, T> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.version == self.version {
            state.version = self.previous;
        }
    }
}

impl<T> fmt::Debug for WatchedFile<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchedFile").field(&self.path).finish()
    }
}

impl FileVersion {
    fn of(path: &Path) -> Self {
        let is_settled = |metadata: &Metadata| {
            let age = SystemTime::now().duration_since(metadata.modified().ok()?);
            // A time in the future is no reason to read the file for ever.
            Some(age.map_or(true, |age| age > SETTLED))
        };
        match std::fs::metadata(path) {
            Err(_) => Self::Absent,
            Ok(metadata) => Self::Present {
                device: metadata.dev(),
                inode: metadata.ino(),
                size: metadata.len(),
                modified: (metadata.mtime(), metadata.mtime_nsec()),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
                is_settled: is_settled(&metadata).unwrap_or(true),
            },
        }
    }

    fn is_settled(&self) -> bool {
        !matches!(
            self,
            Self::Present {
                is_settled: false,
                ..
            }
        )
    }

    /// Equality but for the age.
    fn is_same_file_state(mut self, mut other: Self) -> bool {
        for version in [&mut self, &mut other] {
            if let Self::Present { is_settled, .. } = version {
                *is_settled = true;
            }
        }
        self == other
    }
}

/// The parsed content with the hash of its bytes; None when that hash is `known`.
async fn read<T: Send + 'static>(
    path: PathBuf,
    parse: Parse<T>,
    known: Option<u64>,
) -> Result<Option<(T, u64)>, BoxError> {
    tokio::task::spawn_blocking(move || {
        if std::fs::metadata(&path)?.len() > LIMIT_BYTES {
            return Err(format!("larger than {LIMIT_BYTES} bytes").into());
        }
        let bytes = std::fs::read(&path)?;
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let hash = hasher.finish();
        if known == Some(hash) {
            return Ok(None);
        }
        Ok(Some((parse(&bytes)?, hash)))
    })
    .await?
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use futures_util::FutureExt as _;

    use super::*;

    fn number(bytes: &[u8]) -> Result<u32, BoxError> {
        Ok(std::str::from_utf8(bytes)?.parse()?)
    }

    #[tokio::test]
    async fn a_changed_file_is_reloaded_and_a_broken_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("number");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("1");
        let file = WatchedFile::open(&path, number).await.unwrap();
        let first = file.get().await;
        assert_eq!(*first, 1);
        assert!(Arc::ptr_eq(&first, &file.get().await), "the same bytes");
        // Of the same size and in the same tick of the clock; of another size; another file.
        write("2");
        assert_eq!(*file.get().await, 2);
        write("22");
        assert_eq!(*file.get().await, 22);
        std::fs::write(dir.path().join("new"), "33").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert_eq!(*file.get().await, 33);
        write("garbage");
        assert_eq!(*file.get().await, 33);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(*file.get().await, 33);
        let known = file.get().await;
        write("4");
        assert_eq!(*file.changed(&known).await, 4);
        write(&"0".repeat(usize::try_from(LIMIT_BYTES).unwrap() + 1));
        assert_eq!(*file.get().await, 4);
    }

    #[tokio::test]
    async fn an_unchanged_file_is_not_read_again() {
        static READS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("number");
        std::fs::write(&path, "1").unwrap();
        let settled = SystemTime::now() - 2 * SETTLED;
        let handle = File::options().write(true).open(&path).unwrap();
        handle.set_modified(settled).unwrap();
        let counting = |bytes: &[u8]| {
            READS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            number(bytes)
        };
        let file = WatchedFile::open(&path, counting).await.unwrap();
        for _ in 0..3 {
            assert_eq!(*file.get().await, 1);
        }
        assert_eq!(READS.load(std::sync::atomic::Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn an_absent_file_is_loaded_once_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("number");
        let file = WatchedFile::awaiting(&path, number, 7);
        assert_eq!(*file.get().await, 7);
        std::fs::write(&path, "8").unwrap();
        assert_eq!(*file.get().await, 8);
    }

    /// A file that was written long ago.
    fn settled(path: &Path, text: &str) {
        std::fs::write(path, text).unwrap();
        let handle = File::options().write(true).open(path).unwrap();
        let before = SystemTime::now() - 2 * SETTLED;
        handle.set_modified(before).unwrap();
    }

    #[tokio::test]
    async fn users_during_the_first_read_wait_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("number");
        settled(&path, "8");
        let file = WatchedFile::awaiting(&path, number, 7);
        let (one, two, three) = tokio::join!(file.get(), file.get(), file.get());
        assert_eq!((*one, *two, *three), (8, 8, 8));
        settled(&path, "garbage");
        let broken = WatchedFile::awaiting(&path, number, 7);
        let (one, two) = tokio::join!(broken.get(), broken.get());
        assert_eq!((*one, *two), (7, 7));
    }

    #[tokio::test]
    async fn a_cancelled_read_is_done_by_the_next_user() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("number");
        settled(&path, "8");
        let file = WatchedFile::awaiting(&path, number, 7);
        assert!(file.get().now_or_never().is_none());
        assert_eq!(*file.get().await, 8);
        settled(&path, "99");
        assert!(file.get().now_or_never().is_none());
        assert_eq!(*file.get().await, 99);
    }

    #[tokio::test]
    async fn a_broken_file_is_an_error_at_the_start() {
        let path = Path::new("/none/file");
        assert!(WatchedFile::open(path, |_| Ok(())).await.is_err());
        let path = Path::new("/proc/version");
        let refused = WatchedFile::<()>::open(path, |_| Err("broken".into())).await;
        assert_eq!(refused.unwrap_err().to_string(), "broken");
    }
}
