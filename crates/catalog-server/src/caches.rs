//! Cache folders: opens the cache of a catalog, or rebuilds it from its source.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use catalog::cache::{BuildError, CacheKey, CatalogCache, Refused, prepare, rebuild};
use model::Error;
use oci_client::Client;

use crate::Settings;
use crate::source::{CACHE_SUFFIX, CatalogSource, Revision, Staging};

/// Lock of the process that owns the temporary folders beside it.
const LOCK: &str = ".lock";

/// Cache folders and build options.
#[derive(Debug)]
pub(crate) struct Caches {
    /// Folders in lookup order; caches are written to the last.
    folders: Vec<PathBuf>,
    /// Temporary folder among them, removed at exit.
    _own: Option<Staging>,
    /// Held while temporary folders are in use.
    _lock: Option<File>,
    workers: NonZeroUsize,
    /// Refuse missing and stale caches instead of rebuilding them. Source: `opm serve --cache-enforce-integrity`.
    is_enforced: bool,
}

/// Failure to reload a catalog.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    /// The source is unavailable.
    #[error("{}", .0.chain())]
    Source(#[from] Error),
    /// The catalog is invalid, or its cache cannot be written.
    #[error("{0}")]
    Build(#[from] BuildError),
    #[error("its cache is unusable, and CATALOG_CACHE_ENFORCED forbids a rebuild: {0}")]
    Enforced(Refused),
    #[error("unchanged since the last failure")]
    Known,
}

impl Caches {
    /// Errors: no usable folder.
    pub(crate) fn open(settings: &Settings) -> Result<Self, service::Error> {
        let mut folders = Vec::from_iter(settings.catalog_cache_dir.clone());
        let is_enforced = settings.catalog_cache_enforced;
        let lock = folders.first().and_then(|folder| tidy(folder, settings));
        // A pod's root may be read-only, and its cache folder another program's.
        let is_open = |folder: &PathBuf| {
            let tried = Staging::new(folder);
            let warn = |error: &Error| {
                let error = error.chain();
                tracing::warn!(error, "cache folder not writable: caches are temporary");
            };
            tried.inspect_err(warn).is_ok()
        };
        let own = if is_enforced || folders.first().is_some_and(is_open) {
            None
        } else {
            let made = Staging::new(&settings.tmpdir);
            Some(made.map_err(|e| service::Error::new("creating a folder for caches", e))?)
        };
        folders.extend(own.as_ref().map(|own| own.path().to_owned()));
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        Ok(Self {
            folders,
            _own: own,
            _lock: lock,
            workers: NonZeroUsize::new(settings.catalog_workers).unwrap_or(cores),
            is_enforced,
        })
    }

    /// The cache `file` of `revision` at `source`. Images are pulled only when there is no such cache.
    ///
    /// Errors: the cache can be neither opened nor built.
    pub(crate) async fn of(
        self: &Arc<Self>,
        client: &Client,
        source: &CatalogSource,
        revision: &Revision,
        file: &str,
    ) -> Result<Arc<CatalogCache>, ReloadError> {
        let (caches, file) = (Arc::clone(self), file.to_owned());
        if let CatalogSource::Folder(folder) = source {
            let folder = folder.clone();
            return blocking(move || caches.of_folder(&folder, &file)).await;
        }
        let key = CacheKey::of_text(&revision.to_string());
        let found = {
            let (caches, file) = (Arc::clone(self), file.clone());
            blocking(move || Ok(caches.find(&file, &key))).await?
        };
        match found {
            Ok(cache) => return Ok(cache),
            Err(refused) if self.is_enforced => return Err(ReloadError::Enforced(refused)),
            Err(_) => {}
        }
        let content = source
            .content(client, revision, self.write_folder())
            .await?;
        let work = move || {
            let path = caches.write_folder().join(file);
            Ok(rebuild(content.folder(), &path, &key, caches.workers)?)
        };
        blocking(work).await
    }

    /// The cache of a previous run, at any revision.
    pub(crate) async fn previous(self: &Arc<Self>, file: &str) -> Option<Arc<CatalogCache>> {
        let paths = self.paths(file);
        let open = move || {
            Ok(paths
                .iter()
                .find_map(|path| CatalogCache::open_any(path).ok()))
        };
        let opened = blocking(open).await;
        opened.ok().flatten().map(Arc::new)
    }

    /// Deletes the cache, so that it is rebuilt; best effort.
    pub(crate) fn discard(&self, file: &str) {
        for path in self.paths(file) {
            fs::remove_file(path).ok();
        }
    }

    fn of_folder(&self, folder: &Path, file: &str) -> Result<Arc<CatalogCache>, ReloadError> {
        let path = self.write_folder().join(file);
        let is_elsewhere = || self.paths(file).iter().any(|it| *it != path && it.exists());
        if self.is_enforced || is_elsewhere() {
            let reading = |e| Error::internal(format!("reading {}", folder.display()), e);
            let key = CacheKey::of_folder(folder).map_err(reading)?;
            match self.find(file, &key) {
                Ok(cache) => return Ok(cache),
                Err(refused) if self.is_enforced => return Err(ReloadError::Enforced(refused)),
                Err(_) => {}
            }
        }
        let now = service::clock::now().timestamp();
        Ok(prepare(folder, &path, self.workers, now)?.cache)
    }

    /// Finds the cache with this key.
    fn find(&self, file: &str, key: &CacheKey) -> Result<Arc<CatalogCache>, Refused> {
        let mut refused = Refused::Absent;
        for path in self.paths(file) {
            match CatalogCache::open(&path, key) {
                Ok(cache) => return Ok(Arc::new(cache)),
                Err(why) => refused = why,
            }
        }
        Err(refused)
    }

    fn paths(&self, file: &str) -> Vec<PathBuf> {
        let folders = self.folders.iter();
        folders.map(|folder| folder.join(file)).collect()
    }

    fn write_folder(&self) -> &Path {
        self.folders.last().map_or(Path::new(""), PathBuf::as_path)
    }
}

/// Removes leftovers of killed processes and caches of earlier sources, unless another process holds the lock. A folder
/// that is not writable may still hold caches.
fn tidy(folder: &Path, settings: &Settings) -> Option<File> {
    durable::create_folder(folder).ok()?;
    let options = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .clone();
    let lock = options.open(folder.join(LOCK)).ok()?;
    lock.try_lock().ok()?;
    Staging::clear(folder);
    let catalogs = &settings.catalogs.0;
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_kept = catalogs
            .iter()
            .any(|it| name.starts_with(&it.source.cache_file(&it.name)));
        if !is_kept && catalogs.iter().any(|it| is_cache_of(&it.name, &name)) {
            tracing::info!(file = &*name, "cache of an earlier source removed");
            fs::remove_file(entry.path()).ok();
        }
    }
    Some(lock)
}

/// Whether `file` is a cache of `catalog` with any source, or a companion file of one.
fn is_cache_of(catalog: &str, file: &str) -> bool {
    let rest = file.strip_prefix(catalog);
    let Some((source, _)) = rest.and_then(|rest| rest.split_once(CACHE_SUFFIX)) else {
        return false;
    };
    let is_digest = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    source.is_empty() || source.strip_prefix('-').is_some_and(is_digest)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ReloadError> + Send + 'static,
) -> Result<T, ReloadError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("reading a catalog", error).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    use faults::{Campaign, DONE, FOLDER};

    #[test]
    fn caches_are_recognised_by_name() {
        for (file, is_one) in [
            ("red.cache", true),
            ("red-0123456789abcdef.cache", true),
            ("red-0123456789abcdef.cache.building", true),
            ("red.cache.seen", true),
            ("red-hat.cache", false),
            ("redder.cache", false),
            ("red", false),
            ("red.txt", false),
            ("digest", false),
        ] {
            assert_eq!(is_cache_of("red", file), is_one, "{file}");
        }
    }

    /// Child process of the next test.
    #[test]
    fn driver() {
        let Some(folder) = std::env::var_os(FOLDER) else {
            return;
        };
        tidy(&Path::new(&folder).join("a/b"), &Settings::default()).unwrap();
        println!("{DONE}");
        std::process::abort();
    }

    #[test]
    fn the_folders_of_caches_outlive_a_power_failure() {
        let campaign = Campaign {
            driver: "caches::tests::driver",
            state: |_: &Path| String::new(),
            sample: None,
            ends_by_abort: true,
        };
        let unsynced = campaign.unsynced_folders().unwrap();
        assert!(unsynced.is_empty(), "{unsynced:?}");
    }
}
