//! How the cache of a catalog is had: it is there, or it is made of what is at the source.

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

/// Held by the process whose temporary folders are beside it.
const LOCK: &str = ".lock";

/// The folders of caches, and what these are made with.
#[derive(Debug)]
pub(crate) struct Caches {
    /// The last one is written to.
    folders: Vec<PathBuf>,
    /// One of them, that goes with the process.
    _own: Option<Staging>,
    /// Tells others that temporary folders are in use.
    _lock: Option<File>,
    workers: NonZeroUsize,
    /// A cache that is missing or stale is an error.
    is_enforced: bool,
}

/// Why what is at a source is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    /// It could not be had.
    #[error("{}", .0.chain())]
    Source(#[from] Error),
    /// It is no catalog that can be served.
    #[error("{0}")]
    Build(#[from] BuildError),
    #[error("its cache cannot be used, and none is to be made: {0}")]
    Enforced(Refused),
    #[error("it cannot be served, as was told before")]
    Known,
}

impl Caches {
    /// Errors: there is no folder that can be used.
    pub(crate) fn open(settings: &Settings) -> Result<Self, service::Error> {
        let mut folders = Vec::from_iter(settings.catalog_cache_dir.clone());
        let is_enforced = settings.catalog_cache_enforced;
        let lock = folders.first().and_then(|folder| tidy(folder, settings));
        // The root of a pod may be read-only, and what is there another program's.
        let is_open = |folder: &PathBuf| {
            let tried = Staging::new(folder);
            let told = |error: &Error| {
                let error = error.chain();
                tracing::warn!(error, "caches cannot be kept: they go with the process");
            };
            tried.inspect_err(told).is_ok()
        };
        let own = if is_enforced || folders.first().is_some_and(is_open) {
            None
        } else {
            let made = Staging::new(&settings.tmpdir);
            Some(made.map_err(|e| service::Error::new("making a folder for caches", e))?)
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

    /// The cache of `revision`, which is what is at `source`, by the name of `file`. An image is pulled only when there
    /// is none.
    ///
    /// Errors: it can neither be had nor made.
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
        let content = source.content(client, revision, self.written()).await?;
        let work = move || {
            let path = caches.written().join(file);
            Ok(rebuild(content.folder(), &path, &key, caches.workers)?)
        };
        blocking(work).await
    }

    /// What was made in an earlier life, of whatever was at the source then.
    pub(crate) async fn left(self: &Arc<Self>, file: &str) -> Option<Arc<CatalogCache>> {
        let paths = self.paths(file);
        let open = move || {
            Ok(paths
                .iter()
                .find_map(|path| CatalogCache::open_any(path).ok()))
        };
        let opened = blocking(open).await;
        opened.ok().flatten().map(Arc::new)
    }

    /// Has a cache made anew the next time. Where it cannot be removed, it stays.
    pub(crate) fn discard(&self, file: &str) {
        for path in self.paths(file) {
            fs::remove_file(path).ok();
        }
    }

    fn of_folder(&self, folder: &Path, file: &str) -> Result<Arc<CatalogCache>, ReloadError> {
        let path = self.written().join(file);
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

    /// The cache that was built from what `key` is of.
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

    fn written(&self) -> &Path {
        self.folders.last().map_or(Path::new(""), PathBuf::as_path)
    }
}

/// Removes what killed processes left, and what is of no use any more, unless another one works here. A folder that cannot
/// be written may hold caches all the same.
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
            tracing::info!(file = &*name, "removing the cache of an earlier source");
            fs::remove_file(entry.path()).ok();
        }
    }
    Some(lock)
}

/// Whether `file`, or the one beside which it lies, is a cache of `catalog`, whatever its source.
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
    fn caches_are_known_by_their_names() {
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

    /// The process of the next test.
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
