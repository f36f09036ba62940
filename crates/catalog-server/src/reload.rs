//! Keeps one catalog up to date: looks at its source from time to time, makes a cache of what is new there, and lets it
//! take the place of the old one. What cannot be served leaves the old one where it is.

use std::sync::Arc;
use std::time::Duration;

use catalog::cache::{BuildError, CatalogCache};
use model::Error;
use oci_client::Client;
use service::health::Health;

use crate::caches::{Caches, ReloadError};
use crate::http::ListedCatalog;
use crate::metrics::CatalogMetrics;
use crate::settings::CatalogConfig;
use crate::source::{self, CatalogSource, Revision};
use crate::{ServedCatalog, Settings};

/// How soon a source is looked at again while nothing of it is served.
const RETRY: Duration = Duration::from_secs(2);
/// How often that doubles when what is there was fetched in vain: images can be large.
const DOUBLINGS: u32 = 3;
/// How often it is asked whether readers have found damage.
const DAMAGE_CHECK: Duration = Duration::from_secs(2);
/// Problems of a catalog that are told one by one; `atoll catalog validate` tells all.
const TOLD_LIMIT: usize = 20;

/// Whoever keeps a catalog.
pub(crate) struct CatalogReloader {
    config: CatalogConfig,
    catalog: ServedCatalog,
    shared: Arc<ReloadContext>,
    client: Client,
    numbers: CatalogMetrics,
    /// What is served.
    served: Option<Revision>,
    /// What was there last and cannot be served.
    refused: Option<Revision>,
    /// How often in a row what was there was fetched in vain.
    failures: u32,
    /// Why the last look has failed.
    told: Option<String>,
}

/// What all keepers use.
#[derive(Debug)]
pub(crate) struct ReloadContext {
    pub(crate) settings: Settings,
    pub(crate) caches: Arc<Caches>,
    pub(crate) health: Health,
}

impl CatalogReloader {
    pub(crate) fn new(config: CatalogConfig, client: Client, shared: Arc<ReloadContext>) -> Self {
        shared.health.unready(&*config.name, "not read yet");
        Self {
            numbers: CatalogMetrics::of(&config.name),
            config,
            catalog: ServedCatalog::new(),
            shared,
            client,
            served: None,
            refused: None,
            failures: 0,
            told: None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    pub(crate) fn port(&self) -> Option<u16> {
        self.config.port
    }

    pub(crate) fn catalog(&self) -> &ServedCatalog {
        &self.catalog
    }

    /// The catalog as pages show it.
    pub(crate) fn shelf(&self) -> ListedCatalog {
        ListedCatalog {
            name: self.config.name.clone(),
            source: self.config.source.to_string(),
            catalog: self.catalog.clone(),
        }
    }

    /// Keeps the catalog, looking every `interval`, or only when the cache turns out to be damaged if that is zero.
    pub(crate) async fn keep(mut self, interval: Duration) {
        loop {
            self.look().await.ok();
            self.rest(interval).await;
        }
    }

    /// Until it is time for the next look.
    async fn rest(&self, interval: Duration) {
        let is_known = self.served.as_ref().is_some_and(Revision::is_known);
        if !is_known {
            let pause = RETRY * 2_u32.pow(self.failures.min(DOUBLINGS));
            return tokio::time::sleep(pause).await;
        }
        let is_looked_at = !interval.is_zero() && !self.config.source.is_fixed();
        let pause = if is_looked_at {
            interval
        } else {
            Duration::MAX
        };
        let damage = async {
            while !self.is_damaged() {
                tokio::time::sleep(DAMAGE_CHECK).await;
            }
        };
        tokio::time::timeout(pause, damage).await.ok();
    }

    /// Looks once, and serves what is new.
    ///
    /// Errors: what is there cannot be served; what was served still is.
    pub(crate) async fn look(&mut self) -> Result<(), ReloadError> {
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
            Err(failure) => {
                if matches!(failure, ReloadError::Source(Error::Unavailable { .. })) {
                    self.remember().await;
                }
                if !matches!(failure, ReloadError::Known) {
                    self.tell(&failure);
                }
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
        if let Some(cache) = self.shared.caches.left(&self.file()).await {
            let catalog = &self.config.name;
            tracing::warn!(
                catalog,
                "serving what was there when the source was last reached"
            );
            self.catalog.replace(cache);
            self.served = Some(Revision::unknown());
            self.numbers.served();
            self.shared.health.ready(catalog);
        }
    }

    /// What is at the source, when that is not served.
    async fn news(&mut self) -> Result<Option<(Revision, Arc<CatalogCache>)>, ReloadError> {
        self.part_with_damaged();
        let source = &self.config.source;
        if self.told.is_some() && matches!(source, CatalogSource::Registry(_)) {
            // Somebody may have logged in, or a login was renewed.
            let client = source::client(&self.shared.settings);
            self.client = client.map_err(|e| Error::internal("asking the registry", e))?;
        }
        let revision = source.revision(&self.client).await?;
        if self.served.as_ref() == Some(&revision) {
            self.refused = None;
            return Ok(None);
        }
        if self.refused.as_ref() == Some(&revision) {
            return Err(ReloadError::Known);
        }
        let (caches, client) = (&self.shared.caches, &self.client);
        let made = caches.of(client, source, &revision, &self.file()).await;
        match made {
            Ok(cache) => {
                self.refused = None;
                Ok(Some((revision, cache)))
            }
            Err(failure) => {
                if matches!(failure, ReloadError::Build(BuildError::Invalid(_))) {
                    self.refused = Some(revision);
                } else {
                    // What could not be had may be there the next time.
                    self.failures = self.failures.saturating_add(1);
                }
                Err(failure)
            }
        }
    }

    /// Lets a cache be made anew whose bytes were found to be others than were written. Until then what is whole of it is
    /// served.
    fn part_with_damaged(&mut self) {
        if self.served.is_some() && self.is_damaged() {
            let catalog = &self.config.name;
            tracing::error!(catalog, "the cache is damaged: it is made anew");
            self.shared.caches.discard(&self.file());
            self.served = None;
        }
    }

    fn is_damaged(&self) -> bool {
        let current = self.catalog.current();
        current.is_some_and(|cache| cache.is_damaged())
    }

    fn file(&self) -> String {
        let CatalogConfig { name, source, .. } = &self.config;
        source.cache_file(name)
    }

    fn well(&mut self) {
        self.failures = 0;
        self.told = None;
        self.numbers.stale(false);
        self.shared.health.ready(&self.config.name);
        self.shared.health.ails(&*self.config.name, None);
    }

    /// Tells what has failed, in the log once for as long as it stays the same.
    fn tell(&mut self, failure: &ReloadError) {
        let (catalog, source) = (&self.config.name, &self.config.source);
        let why = summary(failure);
        let is_news = self.told.as_ref() != Some(&why);
        if let ReloadError::Build(BuildError::Invalid(problems)) = failure
            && is_news
        {
            for problem in problems.0.iter().take(TOLD_LIMIT) {
                tracing::warn!(catalog, %problem, "a problem of the catalog");
            }
        }
        self.numbers.failed();
        if self.served.is_some() {
            if is_news {
                tracing::error!(catalog, %source, why, "what is there now cannot be served, the old catalog stays");
            }
            self.numbers.stale(true);
            let ailing = format!("an older state is served, since {source} cannot be: {why}");
            self.shared.health.ails(&**catalog, Some(ailing));
        } else {
            if is_news {
                tracing::error!(catalog, %source, why, "the catalog cannot be served");
            }
            self.shared.health.unready(&**catalog, &*why);
        }
        self.told = Some(why);
    }
}

/// In a few words, also of thousands of problems.
fn summary(failure: &ReloadError) -> String {
    let ReloadError::Build(BuildError::Invalid(problems)) = failure else {
        return failure.to_string();
    };
    match problems.0.as_slice() {
        [] => failure.to_string(),
        [one] => one.to_string(),
        [first, rest @ ..] => format!("{first}; and {} more problems", rest.len()),
    }
}
