//! Opens the cache of a folder, or rebuilds it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::build::{Usefulness, build};
use super::build_error::{BuildError, io};
use super::key::{CacheKey, FolderStat, KeyMemo};
use super::open::{CatalogCache, Refused};
use super::spool::WRITING;

/// Attempts to read a catalog that changes while it is read.
const ATTEMPTS: usize = 3;
/// Context of errors while reading file metadata.
const READING_METADATA: &str = "reading the metadata of the catalog's files";

/// An open cache.
#[derive(Debug)]
pub struct PreparedCache {
    pub cache: Arc<CatalogCache>,
    /// Reason of the rebuild; `None` when the cache was usable.
    pub built: Option<Refused>,
}

/// Opens the cache at `path` of the catalog in `folder`; rebuilds it with `workers` threads when it is missing, stale
/// or damaged.
///
/// Units: `now` in seconds since 1970.
///
/// Errors: a catalog of which nothing can be served; a file cannot be read or written.
pub fn prepare(
    folder: &Path,
    path: &Path,
    workers: NonZeroUsize,
    now: i64,
) -> Result<PreparedCache, BuildError> {
    for _ in 0..ATTEMPTS {
        let stat = FolderStat::of_folder(folder).map_err(io(READING_METADATA))?;
        let key = key(folder, &stat, path, now)?;
        let refused = match CatalogCache::open(path, &key) {
            // The caller of a cache that misses files tries to read them again.
            Ok(cache) if !cache.report().is_final() => Refused::Stale,
            Ok(cache) => {
                return Ok(PreparedCache {
                    cache: Arc::new(cache),
                    built: None,
                });
            }
            Err(refused) => refused,
        };
        let is_unchanged = || FolderStat::of_folder(folder).is_ok_and(|now| now == stat);
        if let Some(cache) = replace(folder, path, key, workers, is_unchanged)? {
            return Ok(PreparedCache {
                cache,
                built: Some(refused),
            });
        }
    }
    Err(BuildError::Unstable)
}

/// Rebuilds the cache at `path` under `key` from an unchanging `folder`.
///
/// Errors: a catalog of which nothing can be served; a file cannot be read or written.
pub fn rebuild(
    folder: &Path,
    path: &Path,
    key: &CacheKey,
    workers: NonZeroUsize,
) -> Result<Arc<CatalogCache>, BuildError> {
    replace(folder, path, *key, workers, || true)?.ok_or(BuildError::Unstable)
}

/// Builds the cache at `path`, a new file, to read packages and not to serve them.
///
/// Errors: a catalog of which no package can be read; a file cannot be read or written.
pub fn build_new(
    folder: &Path,
    path: &Path,
    workers: NonZeroUsize,
) -> Result<Arc<CatalogCache>, BuildError> {
    let key = CacheKey::of_folder(folder).map_err(io(READING_METADATA))?;
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(io(WRITING))?;
    build(folder, file, key, workers, Usefulness::Selectable)?;
    let opened = CatalogCache::open(path, &key);
    let cache = opened.map_err(|refused| io(WRITING)(std::io::Error::other(refused)))?;
    Ok(Arc::new(cache))
}

/// Atomic replace: builds under a temporary name and renames if the source `is_current` still. A lock serialises
/// builders in one folder, so a killed one leaves at most one temporary file, which the next overwrites.
fn replace(
    folder: &Path,
    path: &Path,
    key: CacheKey,
    workers: NonZeroUsize,
    is_current: impl FnOnce() -> bool,
) -> Result<Option<Arc<CatalogCache>>, BuildError> {
    let around = path.parent().filter(|around| *around != Path::new(""));
    let around = around.unwrap_or(Path::new("."));
    durable::create_folder(around).map_err(io(WRITING))?;
    let around = File::open(around).map_err(io(WRITING))?;
    around.lock().map_err(io(WRITING))?;
    if let Ok(cache) = CatalogCache::open(path, &key)
        && cache.report().is_final()
    {
        return Ok(Some(Arc::new(cache)));
    }
    let temporary = beside(path, ".building");
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&temporary)
        .map_err(io(WRITING))?;
    let built = build(folder, file, key, workers, Usefulness::Served);
    if built.is_err() || !is_current() {
        fs::remove_file(&temporary).map_err(io(WRITING))?;
        return built.map(|()| None);
    }
    // `build` has synced the content: after a crash the name leads to the old cache or to the whole new one.
    fs::rename(&temporary, path).map_err(io(WRITING))?;
    // The new name is durable only with its folder.
    around.sync_all().map_err(io(WRITING))?;
    let opened = CatalogCache::open(path, &key);
    let opened = opened.map_err(|refused| io(WRITING)(std::io::Error::other(refused)))?;
    Ok(Some(Arc::new(opened)))
}

/// The key of `folder`; reads its files only when their metadata differs from the memo beside the cache.
fn key(folder: &Path, stat: &FolderStat, path: &Path, now: i64) -> Result<CacheKey, BuildError> {
    let memo = beside(path, ".seen");
    let known = fs::read(&memo)
        .ok()
        .and_then(|bytes| KeyMemo::decode(&bytes));
    if let Some(key) = known.and_then(|memo| memo.key(stat)) {
        return Ok(key);
    }
    let key = CacheKey::of_folder(folder).map_err(io(READING_METADATA))?;
    if !stat.is_racy(now) {
        // Best effort: without it, the files are read again the next time.
        fs::write(memo, KeyMemo::new(stat, key).encode()).ok();
    }
    Ok(key)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
