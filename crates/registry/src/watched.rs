//! Files that count from the moment they change.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::SystemTime;

/// Units: bytes. Largest file.
const LIMIT_BYTES: u64 = 4 << 20;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Parse<T> = fn(&str) -> Result<T, BoxError>;

/// The content of a file, read again whenever the file has changed. One that cannot be used leaves the old content
/// in force.
pub(crate) struct Watched<T> {
    path: PathBuf,
    parse: Parse<T>,
    state: RwLock<State<T>>,
}

struct State<T> {
    content: Arc<T>,
    stamp: Option<Stamp>,
}

/// What changes with a file. The time alone would miss a second change within one tick of the clock.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    size: u64,
    inode: u64,
}

impl<T: Send + Sync + 'static> Watched<T> {
    /// Errors: the file cannot be read, is too large or does not parse.
    pub(crate) async fn open(path: &Path, parse: Parse<T>) -> Result<Self, BoxError> {
        // Before the read, so that a change during it is seen.
        let stamp = Stamp::of(path);
        let content = Arc::new(read(path.to_owned(), parse).await?);
        Ok(Self {
            path: path.to_owned(),
            parse,
            state: RwLock::new(State { content, stamp }),
        })
    }

    /// A file that is not there yet: until it is, this is its content.
    pub(super) fn awaiting(path: &Path, parse: Parse<T>, content: T) -> Self {
        let state = State {
            content: Arc::new(content),
            stamp: None,
        };
        Self {
            path: path.to_owned(),
            parse,
            state: RwLock::new(state),
        }
    }

    /// What the file says now, or said when it last could be used.
    pub(crate) async fn get(&self) -> Arc<T> {
        // A thread of its own would cost more than this look.
        let stamp = Stamp::of(&self.path);
        {
            let state = self.state();
            if state.stamp == stamp {
                return state.content.clone();
            }
        }
        {
            let mut state = self.state_mut();
            if state.stamp == stamp {
                return state.content.clone();
            }
            // Read and told once for each change, not with each request.
            state.stamp = stamp;
        }
        let path = self.path.display();
        match read(self.path.clone(), self.parse).await {
            Ok(content) => {
                tracing::info!(%path, "file reloaded");
                let mut state = self.state_mut();
                // A read that was overtaken by a later change knows less than the other.
                if state.stamp == stamp {
                    state.content = Arc::new(content);
                }
            }
            Err(error) => {
                tracing::error!(%path, %error, "file not reloaded, the old content stays in force");
            }
        }
        self.state().content.clone()
    }

    fn state(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_mut(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watched").field(&self.path).finish()
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            modified: metadata.modified().ok()?,
            size: metadata.len(),
            inode: metadata.ino(),
        })
    }
}

async fn read<T: Send + 'static>(path: PathBuf, parse: Parse<T>) -> Result<T, BoxError> {
    tokio::task::spawn_blocking(move || {
        if std::fs::metadata(&path)?.len() > LIMIT_BYTES {
            return Err(format!("larger than {LIMIT_BYTES} bytes").into());
        }
        parse(&std::fs::read_to_string(&path)?)
    })
    .await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_changed_file_counts_at_once_and_a_broken_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("number");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("1");
        let number = Watched::<u32>::open(&path, |text| Ok(text.parse()?))
            .await
            .unwrap();
        assert_eq!(*number.get().await, 1);
        // Of another size, or replaced by another file: seen even within one tick of the clock.
        write("22");
        assert_eq!(*number.get().await, 22);
        std::fs::write(dir.path().join("new"), "33").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        assert_eq!(*number.get().await, 33);
        write("garbage");
        assert_eq!(*number.get().await, 33);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(*number.get().await, 33);
        write("4");
        assert_eq!(*number.get().await, 4);
        write(&"0".repeat(usize::try_from(LIMIT_BYTES).unwrap() + 1));
        assert_eq!(*number.get().await, 4);
    }

    #[tokio::test]
    async fn a_file_that_is_awaited_counts_once_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("number");
        let number = Watched::<u32>::awaiting(&path, |text| Ok(text.parse()?), 7);
        assert_eq!(*number.get().await, 7);
        std::fs::write(&path, "8").unwrap();
        assert_eq!(*number.get().await, 8);
    }

    #[tokio::test]
    async fn nothing_begins_with_a_broken_file() {
        let path = Path::new("/none/file");
        assert!(Watched::open(path, |_| Ok(())).await.is_err());
        let path = Path::new("/proc/version");
        let refused = Watched::<()>::open(path, |_| Err("broken".into())).await;
        assert_eq!(refused.unwrap_err().to_string(), "broken");
    }
}
