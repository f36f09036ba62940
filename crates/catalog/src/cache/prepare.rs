//! The cache of a folder: the one that is there when it can be used, else a new one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::build::build;
use super::key::{CacheKey, FolderStat, KeyMemo};
use super::open::{CatalogCache, Refused};
use super::spool::WRITING;
use super::{BuildError, BuildReport, Strictness, io};

/// How often a catalog is read again that changes while it is read.
const ATTEMPTS: usize = 3;
/// What is being done when the folder cannot be looked at.
const LOOKING: &str = "looking at the catalog's files";

/// A cache that is opened.
#[derive(Debug)]
pub struct PreparedCache {
    pub cache: Arc<CatalogCache>,
    /// Why it had to be built; nothing when it was there.
    pub built: Option<Refused>,
}

/// Opens the cache at `path` of the catalog in `folder`. Where it is not there, stale or damaged, it is built anew with so
/// many threads.
///
/// `now` is in seconds since 1970.
///
/// Errors: everything that is wrong with the catalog; a file cannot be read or written.
pub fn prepare(
    folder: &Path,
    path: &Path,
    workers: NonZeroUsize,
    now: i64,
) -> Result<PreparedCache, BuildError> {
    for _ in 0..ATTEMPTS {
        let look = FolderStat::at(folder).map_err(io(LOOKING))?;
        let key = key(folder, &look, path, now)?;
        let refused = match CatalogCache::open(path, &key) {
            Ok(cache) => {
                return Ok(PreparedCache {
                    cache: Arc::new(cache),
                    built: None,
                });
            }
            Err(refused) => refused,
        };
        let looks_the_same = || FolderStat::at(folder).is_ok_and(|now| now == look);
        if let Some(cache) = replace(folder, path, key, workers, looks_the_same)? {
            return Ok(PreparedCache {
                cache,
                built: Some(refused),
            });
        }
    }
    Err(BuildError::Restless)
}

/// Builds the cache at `path` of the catalog in `folder`, which is what `key` is of and does not change.
///
/// Errors: everything that is wrong with the catalog; a file cannot be read or written.
pub fn rebuild(
    folder: &Path,
    path: &Path,
    key: &CacheKey,
    workers: NonZeroUsize,
) -> Result<Arc<CatalogCache>, BuildError> {
    replace(folder, path, *key, workers, || true)?.ok_or(BuildError::Restless)
}

/// Builds the new file `path` of the catalog in `folder`, without the packages that break a rule. The file is not for
/// [`prepare`], to which every rule counts.
///
/// Errors: a file cannot be read or written.
pub fn build_leniently(
    folder: &Path,
    path: &Path,
    workers: NonZeroUsize,
) -> Result<(Arc<CatalogCache>, BuildReport), BuildError> {
    let key = CacheKey::of_folder(folder).map_err(io(LOOKING))?;
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(io(WRITING))?;
    let judged = build(folder, file, key, workers, Strictness::Lenient)?;
    let opened = CatalogCache::open(path, &key);
    let cache = opened.map_err(|refused| io(WRITING)(std::io::Error::other(refused)))?;
    Ok((Arc::new(cache), judged))
}

/// Builds under another name and gives it its own when it is whole, if `is_current` then. Others that build in the same
/// folder are waited for, so that an end in the middle leaves one file at most, which the next overwrites.
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
    if let Ok(cache) = CatalogCache::open(path, &key) {
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
    let built = build(folder, file, key, workers, Strictness::Strict);
    if built.is_err() || !is_current() {
        fs::remove_file(&temporary).map_err(io(WRITING))?;
        return built.map(|_| None);
    }
    fs::rename(&temporary, path).map_err(io(WRITING))?;
    around.sync_all().map_err(io(WRITING))?;
    let opened = CatalogCache::open(path, &key);
    let opened = opened.map_err(|refused| io(WRITING)(std::io::Error::other(refused)))?;
    Ok(Some(Arc::new(opened)))
}

/// The key of `folder`; its files are not read where a memo beside the cache knows how they looked.
fn key(folder: &Path, look: &FolderStat, path: &Path, now: i64) -> Result<CacheKey, BuildError> {
    let memo = beside(path, ".seen");
    let known = fs::read(&memo)
        .ok()
        .and_then(|bytes| KeyMemo::decode(&bytes));
    if let Some(key) = known.and_then(|memo| memo.key(look)) {
        return Ok(key);
    }
    let key = CacheKey::of_folder(folder).map_err(io(LOOKING))?;
    if !look.is_racy(now) {
        // Where it cannot be written, the files are read again the next time.
        fs::write(memo, KeyMemo::new(look, key).encode()).ok();
    }
    Ok(key)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}
