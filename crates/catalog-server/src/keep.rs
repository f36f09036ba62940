//! Keeps one catalog up to date: looks at its source from time to time, makes a cache of what is new there, and lets it
//! take the place of the old one. What cannot be served leaves the old one where it is.

use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catalog::cache::{BuildError, Cache, Key, Refused, prepare, rebuild};
use model::Error;
use oci::Client;
use service::health::Health;

use crate::Catalog;
use crate::http::Shelf;
use crate::numbers::Numbers;
use crate::settings::CatalogConfig;
use crate::source::{Revision, Source, Staging};

/// How soon a source is looked at again while nothing of it is served.
const RETRY: Duration = Duration::from_secs(2);
/// Problems of a catalog that are told one by one; `atoll catalog validate` tells all.
const TOLD_LIMIT: usize = 20;

/// Whoever keeps a catalog.
pub(crate) struct Keeper {
    config: CatalogConfig,
    catalog: Catalog,
    shared: Arc<Shared>,
    numbers: Numbers,
    /// What is served.
    served: Option<Revision>,
    /// What was there last and cannot be served.
    refused: Option<Revision>,
}

/// What all keepers use.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: Client,
    /// For caches, and for what is on its way into them.
    pub(crate) folder: PathBuf,
    /// In place of a folder that cannot be written.
    pub(crate) spare: OnceLock<Staging>,
    /// Where that is made.
    pub(crate) temporary: PathBuf,
    pub(crate) health: Health,
    pub(crate) workers: NonZeroUsize,
    /// A cache that is missing or stale is an error.
    pub(crate) is_cache_enforced: bool,
}

/// Why what is at a source is not served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
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

impl Keeper {
    pub(crate) fn new(config: CatalogConfig, catalog: Catalog, shared: Arc<Shared>) -> Self {
        shared.health.unready(&*config.name, "not read yet");
        Self {
            numbers: Numbers::of(&config.name),
            config,
            catalog,
            shared,
            served: None,
            refused: None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.config.port
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The catalog as pages show it.
    pub(crate) fn shelf(&self) -> Shelf {
        Shelf {
            name: self.config.name.clone(),
            source: self.config.source.to_string(),
            catalog: self.catalog.clone(),
        }
    }

    /// Keeps the catalog, looking every `interval`, or once when that is zero.
    pub(crate) async fn keep(mut self, interval: Duration) {
        loop {
            self.look().await.ok();
            let is_looked_at = !interval.is_zero() && !self.config.source.is_fixed();
            let is_known = self.served.as_ref().is_some_and(Revision::is_known);
            match is_known {
                false => tokio::time::sleep(RETRY).await,
                true if is_looked_at => tokio::time::sleep(interval).await,
                true => return,
            }
        }
    }

    /// Looks once, and serves what is new.
    ///
    /// Errors: what is there cannot be served; what was served still is.
    pub(crate) async fn look(&mut self) -> Result<(), Failure> {
        let looked = self.news().await;
        match looked {
            Ok(None) => self.well(),
            Ok(Some((revision, cache))) => {
                let (catalog, source) = (&self.config.name, &self.config.source);
                tracing::info!(catalog, %source, %revision, packages = cache.package_count(), "serving the catalog");
                self.catalog.replace(cache);
                self.served = Some(revision);
                self.numbers.served();
                self.well();
            }
            Err(Failure::Known) => return Err(Failure::Known),
            Err(failure) => {
                if matches!(failure, Failure::Source(Error::Unavailable { .. })) {
                    self.remember().await;
                }
                self.tell(&failure);
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Serves what was made of the source in an earlier life: its registry may be the one that this catalog is needed
    /// to repair.
    async fn remember(&mut self) {
        if self.served.is_some() {
            return;
        }
        let path = self.path();
        if let Ok(cache) = blocking(move || Cache::open_any(&path).map_err(Failure::Enforced)).await
        {
            tracing::warn!(
                catalog = self.config.name,
                "serving what was there when the source was last reached"
            );
            self.catalog.replace(Arc::new(cache));
            self.served = Some(Revision::unknown());
            self.numbers.served();
            self.shared.health.ready(&self.config.name);
        }
    }

    /// What is at the source, when that is not served.
    async fn news(&mut self) -> Result<Option<(Revision, Arc<Cache>)>, Failure> {
        self.part_with_damaged();
        let source = &self.config.source;
        let revision = source.revision(&self.shared.client).await?;
        if self.served.as_ref() == Some(&revision) {
            self.refused = None;
            return Ok(None);
        }
        if self.refused.as_ref() == Some(&revision) {
            return Err(Failure::Known);
        }
        let made = make(&self.shared, source, &revision, &self.path()).await;
        match made {
            Ok(cache) => {
                self.refused = None;
                Ok(Some((revision, cache)))
            }
            Err(failure) => {
                // What could not be had may be there the next time.
                if matches!(failure, Failure::Build(BuildError::Invalid(_))) {
                    self.refused = Some(revision);
                }
                Err(failure)
            }
        }
    }

    /// Lets a cache be made anew whose bytes were found to be others than were written. Until then what is whole of it is
    /// served.
    fn part_with_damaged(&mut self) {
        let current = self.catalog.current();
        if current.is_some_and(|cache| cache.is_damaged()) {
            let catalog = &self.config.name;
            tracing::error!(catalog, "the cache is damaged: it is made anew");
            // Where it cannot be removed, it is found to be damaged again.
            std::fs::remove_file(self.path()).ok();
            self.served = None;
        }
    }

    fn path(&self) -> PathBuf {
        let CatalogConfig { name, source, .. } = &self.config;
        self.shared.folder.join(source.cache_file(name))
    }

    fn well(&self) {
        self.numbers.stale(false);
        self.shared.health.ready(&self.config.name);
        self.shared.health.ails(&*self.config.name, None);
    }

    fn tell(&self, failure: &Failure) {
        let (catalog, source) = (&self.config.name, &self.config.source);
        if let Failure::Build(BuildError::Invalid(problems)) = failure {
            for problem in problems.0.iter().take(TOLD_LIMIT) {
                tracing::warn!(catalog, %problem, "a problem of the catalog");
            }
        }
        let why = summary(failure);
        self.numbers.failed();
        if self.served.is_some() {
            tracing::error!(catalog, %source, why, "what is there now cannot be served, the old catalog stays");
            self.numbers.stale(true);
            let why = format!("an older state is served, since {source} cannot be: {why}");
            self.shared.health.ails(&*self.config.name, Some(why));
        } else {
            tracing::error!(catalog, %source, why, "the catalog cannot be served");
            self.shared.health.unready(&*self.config.name, why);
        }
    }
}

/// In a few words, also of thousands of problems.
fn summary(failure: &Failure) -> String {
    let Failure::Build(BuildError::Invalid(problems)) = failure else {
        return failure.to_string();
    };
    match problems.0.as_slice() {
        [] => failure.to_string(),
        [one] => one.to_string(),
        [first, rest @ ..] => format!("{first}; and {} more problems", rest.len()),
    }
}

/// The cache at `path` of what is at `source`. An image is pulled only when the cache is of another.
async fn make(
    shared: &Arc<Shared>,
    source: &Source,
    revision: &Revision,
    path: &Path,
) -> Result<Arc<Cache>, Failure> {
    let (workers, path) = (shared.workers, path.to_owned());
    if matches!(source, Source::Folder(_)) {
        let content = source
            .content(&shared.client, revision, &shared.folder)
            .await?;
        if shared.is_cache_enforced {
            return blocking(move || open_folder(content.folder(), &path)).await;
        }
        let now = service::clock::now().timestamp();
        let shared = Arc::clone(shared);
        let work = move || match prepare(content.folder(), &path, workers, now) {
            // The root of a pod may be read-only, and what is there another program's.
            Err(BuildError::Io { source, .. }) if is_closed(source.kind()) => {
                let path = shared.spare_of(&path)?;
                tracing::warn!(path = %path.display(), "the folder for caches cannot be written, this one is taken");
                Ok(prepare(content.folder(), &path, workers, now)?.cache)
            }
            prepared => Ok(prepared?.cache),
        };
        return blocking(work).await;
    }
    let key = Key::of_text(&revision.to_string());
    let refused = {
        let path = path.clone();
        match blocking(move || Ok(Cache::open(&path, &key))).await? {
            Ok(cache) => return Ok(Arc::new(cache)),
            Err(refused) => refused,
        }
    };
    if shared.is_cache_enforced {
        return Err(Failure::Enforced(refused));
    }
    let content = source
        .content(&shared.client, revision, &shared.folder)
        .await?;
    blocking(move || Ok(rebuild(content.folder(), &path, &key, workers)?)).await
}

impl Shared {
    /// Where the cache goes that cannot be written at `path`.
    fn spare_of(&self, path: &Path) -> Result<PathBuf, Error> {
        let spare = if let Some(spare) = self.spare.get() {
            spare
        } else {
            let made = Staging::new(&self.temporary)?;
            self.spare.get_or_init(|| made)
        };
        Ok(spare.path().join(path.file_name().unwrap_or_default()))
    }
}

fn is_closed(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    )
}

fn open_folder(folder: &Path, path: &Path) -> Result<Arc<Cache>, Failure> {
    let key = Key::of_folder(folder).map_err(|e| {
        let doing = format!("reading {}", folder.display());
        Error::internal(doing, e)
    })?;
    let opened = Cache::open(path, &key).map_err(Failure::Enforced)?;
    Ok(Arc::new(opened))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(Error::internal("reading a catalog", error).into()))
}
