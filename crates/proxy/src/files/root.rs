//! The folder of the static files: everything is opened beneath it.
//!
//! The kernel resolves paths (`openat2`), so that no symbolic link leads out of the folder, also while it is changed.
//! Kernels and sandboxes without that call get a walk, component by component.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat2};
use rustix::io::Errno;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::walk;

/// Concurrent threads that open files or read folders: a file system that hangs takes no more.
const OPENERS: usize = 16;
/// Opening again after a rename elsewhere in the tree disturbed the kernel.
const ATTEMPTS: usize = 8;

/// Without blocking (FIFOs), and without becoming a terminal of this process.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
/// Only for its kind, length and time.
const METADATA: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

static OPENING: Semaphore = Semaphore::const_new(OPENERS);
/// Whether the kernel has `openat2`, as far as is known.
static HAS_OPENAT2: AtomicBool = AtomicBool::new(true);

/// How long the open folder is used: another one may be mounted, or take its name.
const FRESH: Duration = Duration::from_secs(1);

/// The folder.
#[derive(Debug, Clone)]
pub(super) struct StaticRoot(Arc<RootFolder>);

#[derive(Debug)]
struct RootFolder {
    path: PathBuf,
    opened: Mutex<Option<(Instant, Arc<OwnedFd>)>>,
}

/// Something open below the root.
#[derive(Debug)]
pub(super) struct OpenedFile {
    pub(super) file: File,
    pub(super) stat: Stat,
}

/// Reason for which nothing is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenError {
    /// The root itself is missing.
    NoRoot,
    NotFound,
    /// Unreadable, out of the root, or neither file nor folder.
    Forbidden,
    /// Too many open files.
    Busy,
    /// Another failure of the file system.
    Failed(Errno),
}

impl OpenedFile {
    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    pub(super) fn is_folder(&self) -> bool {
        self.kind() == FileType::Directory
    }
}

impl StaticRoot {
    pub(super) fn new(folder: &Path) -> Self {
        Self(Arc::new(RootFolder {
            path: folder.to_owned(),
            opened: Mutex::default(),
        }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Opens a file or folder for reading. Names that the kernel has in memory are opened at once, others by a thread.
    pub(super) async fn open(&self, relative: &[u8]) -> Result<OpenedFile, OpenError> {
        match self.open_cached(relative) {
            Err(Errno::AGAIN | Errno::INVAL | Errno::NOSYS | Errno::PERM) => {}
            opened => return checked(opened),
        }
        let (root, relative) = (self.clone(), relative.to_vec());
        // Boxed, so that the future of a name in memory is small.
        Box::pin(run(move || root.open_blocking(&relative))).await?
    }

    /// [`Self::open`] on a thread that may block.
    pub(super) fn open_blocking(&self, relative: &[u8]) -> Result<OpenedFile, OpenError> {
        let root = self
            .folder()
            .map_err(|errno| match OpenError::from(errno) {
                OpenError::NotFound => OpenError::NoRoot,
                error => error,
            })?;
        checked(open_beneath(root.as_fd(), relative, READ))
    }

    /// Metadata of the target of a symbolic link; none where it dangles or leads out of the root.
    pub(super) fn target(&self, relative: &[u8]) -> Option<Stat> {
        let root = self.folder().ok()?;
        let target = open_beneath(root.as_fd(), relative, METADATA).ok()?;
        fstat(target).ok()
    }

    /// The open folder; it is opened again after a second. May block.
    fn folder(&self) -> rustix::io::Result<Arc<OwnedFd>> {
        if let Some(folder) = self.recent_folder() {
            return Ok(folder);
        }
        let now = Instant::now();
        let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = Arc::new(open(self.path(), folder, Mode::empty())?);
        *self.opened() = Some((now, Arc::clone(&folder)));
        Ok(folder)
    }

    fn recent_folder(&self) -> Option<Arc<OwnedFd>> {
        let opened = self.opened();
        let (since, folder) = opened.as_ref()?;
        (since.elapsed() < FRESH).then(|| Arc::clone(folder))
    }

    fn opened(&self) -> MutexGuard<'_, Option<(Instant, Arc<OwnedFd>)>> {
        let opened = &self.0.opened;
        opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Without a read of the disk; else `AGAIN`. Where the kernel cannot do that, another error that is not the file's.
    fn open_cached(&self, relative: &[u8]) -> rustix::io::Result<OwnedFd> {
        if !HAS_OPENAT2.load(Ordering::Relaxed) {
            return Err(Errno::NOSYS);
        }
        let root = self.recent_folder().ok_or(Errno::AGAIN)?;
        let cached = ResolveFlags::CACHED;
        resolve(root.as_fd(), relative, READ, cached)
    }
}

/// Runs `work` on one of a bounded number of threads.
pub(super) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, OpenError> {
    let _permit = OPENING.acquire().await.map_err(|_| OpenError::Busy)?;
    spawn_blocking(work).await.map_err(|_| OpenError::Busy)
}

fn open_beneath(
    root: BorrowedFd<'_>,
    relative: &[u8],
    flags: OFlags,
) -> rustix::io::Result<OwnedFd> {
    if HAS_OPENAT2.load(Ordering::Relaxed) {
        for _ in 0..ATTEMPTS {
            match resolve(root, relative, flags, ResolveFlags::empty()) {
                Err(Errno::AGAIN) => {}
                // Sandboxes of old container runtimes forbid calls that they do not know.
                Err(Errno::NOSYS | Errno::PERM) => {
                    if HAS_OPENAT2.swap(false, Ordering::Relaxed) {
                        tracing::warn!(
                            "the kernel has no openat2: paths of static files are walked"
                        );
                    }
                    return walk::open(root, relative, flags);
                }
                opened => return opened,
            }
        }
    }
    walk::open(root, relative, flags)
}

fn resolve(
    root: BorrowedFd<'_>,
    relative: &[u8],
    flags: OFlags,
    further: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    let relative = if relative.is_empty() { b"." } else { relative };
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | further;
    openat2(root, relative, flags, Mode::empty(), how)
}

/// Only files and folders are served: nothing else has content of a known length.
fn checked(opened: rustix::io::Result<OwnedFd>) -> Result<OpenedFile, OpenError> {
    let file = opened.map_err(OpenError::from)?;
    let stat = fstat(&file).map_err(OpenError::from)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Directory => Ok(OpenedFile {
            file: file.into(),
            stat,
        }),
        _ => Err(OpenError::Forbidden),
    }
}

impl From<Errno> for OpenError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Self::NotFound,
            Errno::ACCESS | Errno::PERM | Errno::LOOP
            // Out of the root.
            | Errno::XDEV
            // Sockets and devices.
            | Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP => Self::Forbidden,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM => Self::Busy,
            errno => Self::Failed(errno),
        }
    }
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Failed(errno) => errno.into(),
            OpenError::NoRoot | OpenError::NotFound => io::ErrorKind::NotFound.into(),
            OpenError::Forbidden => io::ErrorKind::PermissionDenied.into(),
            OpenError::Busy => io::ErrorKind::ResourceBusy.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, mkfifoat};
    use tempfile::TempDir;

    use super::*;

    type Opener = fn(BorrowedFd<'_>, &[u8], OFlags) -> rustix::io::Result<OwnedFd>;

    /// A root, and a secret beside it.
    fn tree() -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("root/a/b")).unwrap();
        fs::write(path("secret"), "secret").unwrap();
        fs::write(path("root/a/file"), "text").unwrap();
        for (target, link) in [
            ("a/file", "root/inside"),
            ("../file", "root/a/b/up"),
            ("a/b", "root/folder"),
            ("../secret", "root/outside"),
            ("/etc/passwd", "root/absolute"),
            ("missing", "root/dangling"),
            ("loop", "root/loop"),
            ("/proc/self/root", "root/magic"),
            ("..", "root/above"),
        ] {
            symlink(target, path(link)).unwrap();
        }
        mkfifoat(CWD, path("root/fifo"), Mode::RUSR).unwrap();
        UnixListener::bind(path("root/socket")).unwrap();
        folder
    }

    fn kernel(root: BorrowedFd<'_>, relative: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        resolve(root, relative, flags, ResolveFlags::empty())
    }

    #[test]
    fn links_stay_beneath_the_root_with_and_without_the_kernel() {
        let folder = tree();
        let root = File::open(folder.path().join("root")).unwrap();
        let openers: [Opener; 2] = [kernel, walk::open];
        for (index, open) in openers.into_iter().enumerate() {
            let open = |path: &str| checked(open(root.as_fd(), path.as_bytes(), READ));
            for path in ["a/file", "inside", "a/b/up", "folder/up"] {
                let mut text = String::new();
                let mut opened = open(path).unwrap_or_else(|error| panic!("{path}: {error:?}"));
                opened.file.read_to_string(&mut text).unwrap();
                assert_eq!(text, "text", "{path}");
            }
            for path in ["", "a", "folder"] {
                assert!(open(path).unwrap().is_folder(), "{path}");
            }
            for (path, error) in [
                ("outside", OpenError::Forbidden),
                ("absolute", OpenError::Forbidden),
                ("above", OpenError::Forbidden),
                ("above/secret", OpenError::Forbidden),
                ("magic/etc/passwd", OpenError::Forbidden),
                ("loop", OpenError::Forbidden),
                ("fifo", OpenError::Forbidden),
                ("socket", OpenError::Forbidden),
                ("dangling", OpenError::NotFound),
                ("missing", OpenError::NotFound),
                ("a/file/x", OpenError::NotFound),
                (&"x".repeat(300), OpenError::NotFound),
            ] {
                assert_eq!(open(path).unwrap_err(), error, "{path} of {index}");
            }
        }
    }

    #[tokio::test]
    async fn a_missing_root_is_reported_and_may_come_later() {
        let folder = tempfile::tempdir().unwrap();
        let root = StaticRoot::new(&folder.path().join("later"));
        assert_eq!(root.open(b"x").await.unwrap_err(), OpenError::NoRoot);
        fs::create_dir(root.path()).unwrap();
        assert_eq!(root.open(b"x").await.unwrap_err(), OpenError::NotFound);
        assert!(root.open(b"").await.unwrap().is_folder());
    }

    #[test]
    fn targets_of_links_are_known_only_inside() {
        let folder = tree();
        let root = StaticRoot::new(&folder.path().join("root"));
        assert_eq!(root.target(b"inside").unwrap().st_size, 4);
        assert!(root.target(b"outside").is_none());
        assert!(root.target(b"dangling").is_none());
    }
}
