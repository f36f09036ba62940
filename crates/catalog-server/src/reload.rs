//! Hot reload of one catalog: polls its source, builds a cache of each new revision, and swaps it in. A revision that
//! cannot be served leaves the previous one in service.

use std::sync::Arc;
use std::time::Duration;

use catalog::cache::{BuildError, BuildReport, CatalogCache};
use catalog::{Advice, CatalogProblems};
use model::Error;
use oci_client::Client;
use service::health::Health;

use crate::caches::{Caches, ReloadError};
use crate::http::ListedCatalog;
use crate::metrics::CatalogMetrics;
use crate::settings::CatalogConfig;
use crate::source::{CatalogSource, Revision};
use crate::{ServedCatalog, Settings};

/// Retry interval while nothing is served.
const RETRY: Duration = Duration::from_secs(2);
/// Exponential backoff: doublings of the interval after failed downloads, as images can be large.
const DOUBLINGS: u32 = 3;
/// Interval of checks for checksum mismatches.
const DAMAGE_CHECK: Duration = Duration::from_secs(2);
/// Validation errors logged individually; `atoll catalog validate` prints all.
const LOGGED_PROBLEMS: usize = 20;
/// Packages named in the state of a catalog.
const NAMED_PACKAGES: usize = 20;

/// Reloader of one catalog.
pub(crate) struct CatalogReloader {
    config: CatalogConfig,
    catalog: ServedCatalog,
    shared: Arc<ReloadContext>,
    client: Client,
    metrics: CatalogMetrics,
    /// The served revision.
    served: Option<Revision>,
    /// The latest revision that failed validation.
    refused: Option<Revision>,
    /// Consecutive failed downloads.
    failures: u32,
    /// The last reported failure.
    reported: Option<String>,
}

/// State shared by all reloaders.
#[derive(Debug)]
pub(crate) struct ReloadContext {
    pub(crate) settings: Settings,
    pub(crate) caches: Arc<Caches>,
    pub(crate) health: Health,
}

impl CatalogReloader {
    pub(crate) fn new(config: CatalogConfig, client: Client, shared: Arc<ReloadContext>) -> Self {
        shared.health.unready(&*config.name, "not loaded yet");
        Self {
            metrics: CatalogMetrics::of(&config.name),
            config,
            catalog: ServedCatalog::new(),
            shared,
            client,
            served: None,
            refused: None,
            failures: 0,
            reported: None,
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

    /// The catalog for pages.
    pub(crate) fn listed(&self) -> ListedCatalog {
        ListedCatalog {
            name: self.config.name.clone(),
            source: self.config.source.to_string(),
            catalog: self.catalog.clone(),
        }
    }

    /// Reloads the catalog every `interval`; zero: only after a checksum mismatch.
    pub(crate) async fn run(mut self, interval: Duration) {
        loop {
            self.poll().await.ok();
            self.wait(interval).await;
        }
    }

    /// Waits for the next poll.
    async fn wait(&self, interval: Duration) {
        let is_known = self.served.as_ref().is_some_and(Revision::is_known);
        if !is_known {
            let pause = RETRY * 2_u32.pow(self.failures.min(DOUBLINGS));
            return tokio::time::sleep(pause).await;
        }
        let is_polled = !interval.is_zero() && !self.config.source.is_fixed();
        let pause = if is_polled { interval } else { Duration::MAX };
        let damage = async {
            while !self.is_damaged() {
                tokio::time::sleep(DAMAGE_CHECK).await;
            }
        };
        tokio::time::timeout(pause, damage).await.ok();
    }

    /// Polls once and serves a new revision.
    ///
    /// Errors: the revision cannot be served; the previous one stays in service.
    pub(crate) async fn poll(&mut self) -> Result<(), ReloadError> {
        let polled = self.fetch().await;
        match polled {
            Ok(None) => self.succeeded(),
            Ok(Some((revision, cache))) => {
                let (catalog, source) = (&self.config.name, &self.config.source);
                tracing::info!(catalog, %source, %revision, packages = cache.package_count(), "catalog loaded");
                log_problems(catalog, cache.report());
                for advice in Advice::of_templates(&cache).iter().take(LOGGED_PROBLEMS) {
                    tracing::warn!(catalog, %advice, "document without content for clients");
                }
                self.catalog.replace(cache);
                self.served = Some(revision);
                self.metrics.served();
                self.succeeded();
            }
            Err(failure) => {
                if matches!(failure, ReloadError::Source(Error::Unavailable { .. })) {
                    self.serve_previous().await;
                }
                if !matches!(failure, ReloadError::Known) {
                    self.report(&failure);
                }
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Serves the cache of a previous run: the unreachable registry may be one that this catalog is needed to repair.
    async fn serve_previous(&mut self) {
        if self.served.is_some() {
            return;
        }
        if let Some(cache) = self.shared.caches.previous(&self.file()).await {
            let catalog = &self.config.name;
            tracing::warn!(
                catalog,
                "source unavailable: serving the cache of the previous run"
            );
            self.catalog.replace(cache);
            self.served = Some(Revision::unknown());
            self.metrics.served();
            self.shared.health.ready(catalog);
        }
    }

    /// Fetches the current revision unless it is served already.
    async fn fetch(&mut self) -> Result<Option<(Revision, Arc<CatalogCache>)>, ReloadError> {
        self.discard_damaged();
        let source = &self.config.source;
        if self.reported.is_some() && matches!(source, CatalogSource::Registry(_)) {
            // Credentials may have been added or renewed.
            let client = self.shared.settings.registry_client();
            self.client = client.map_err(|e| Error::internal("contacting the registry", e))?;
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
                    // A transient failure: retried with backoff.
                    self.failures = self.failures.saturating_add(1);
                }
                Err(failure)
            }
        }
    }

    /// Schedules the rebuild of a damaged cache; its intact blocks are served meanwhile.
    fn discard_damaged(&mut self) {
        if self.served.is_some() && self.is_damaged() {
            let catalog = &self.config.name;
            tracing::error!(catalog, "cache damaged: rebuilding");
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

    fn succeeded(&mut self) {
        self.failures = 0;
        self.reported = None;
        self.metrics.stale(false);
        self.shared.health.ready(&self.config.name);
        let served = self.catalog.current();
        let left_out = served.as_ref().map(|cache| cache.report().not_served());
        self.metrics.left_out(left_out.map_or(0, |it| it.len()));
        let ailing = served.and_then(|cache| incomplete(cache.report()));
        self.shared.health.ails(&*self.config.name, ailing);
    }

    /// Reports a failure; logs it only when it changes.
    fn report(&mut self, failure: &ReloadError) {
        let (catalog, source) = (&self.config.name, &self.config.source);
        let why = summary(failure);
        let is_new = self.reported.as_ref() != Some(&why);
        if let ReloadError::Build(BuildError::Invalid(problems)) = failure
            && is_new
        {
            log_each(catalog, problems);
        }
        self.metrics.failed();
        if self.served.is_some() {
            if is_new {
                tracing::error!(catalog, %source, why, "reload failed: the previous catalog stays in service");
            }
            self.metrics.stale(true);
            let ailing =
                format!("the previous catalog is served, since {source} cannot be loaded: {why}");
            self.shared.health.ails(&**catalog, Some(ailing));
        } else {
            if is_new {
                tracing::error!(catalog, %source, why, "loading the catalog failed");
            }
            self.shared.health.unready(&**catalog, &*why);
        }
        self.reported = Some(why);
    }
}

/// Logs the packages that a loaded catalog leaves out, its unreadable documents, and the packages that younger versions
/// of opm refuse.
fn log_problems(catalog: &str, report: &BuildReport) {
    log_each(catalog, &report.unread);
    let not_served = report.not_served();
    for (package, problems) in not_served.iter().take(LOGGED_PROBLEMS) {
        let why = first(problems);
        tracing::error!(
            catalog,
            package,
            why,
            "package left out: it breaks rules of catalogs"
        );
    }
    let warned = report.warned.iter();
    let warned = warned.filter(|(package, _)| !not_served.contains_key(package.as_str()));
    for (package, problems) in warned.take(LOGGED_PROBLEMS) {
        let (since, why) = (problems.since().unwrap_or_default(), first(problems));
        tracing::warn!(
            catalog,
            package,
            since,
            why,
            "package served, though younger versions of opm refuse it"
        );
    }
}

fn log_each(catalog: &str, problems: &CatalogProblems) {
    for problem in problems.0.iter().take(LOGGED_PROBLEMS) {
        tracing::warn!(catalog, %problem, "validation error");
    }
}

/// The gaps of the served catalog; `None` when it is complete.
fn incomplete(report: &BuildReport) -> Option<String> {
    let not_served = report.not_served();
    if let Some((name, problems)) = not_served.first_key_value() {
        let names: Vec<_> = not_served.keys().take(NAMED_PACKAGES).copied().collect();
        let more = match not_served.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (names, first) = (names.join(", "), first(problems));
        return Some(format!(
            "packages that break rules are left out: {names}{more} ({name}: {first})"
        ));
    }
    let unread = &report.unread;
    (!unread.0.is_empty()).then(|| format!("documents were not read: {}", first(unread)))
}

/// A one-line summary of a failure.
fn summary(failure: &ReloadError) -> String {
    match failure {
        ReloadError::Build(BuildError::Invalid(problems)) => first(problems),
        failure => failure.to_string(),
    }
}

/// The first problem, and the number of the others.
fn first(problems: &CatalogProblems) -> String {
    match problems.0.as_slice() {
        [] => String::new(),
        [one] => one.to_string(),
        [first, rest @ ..] => format!("{first}; and {} more problems", rest.len()),
    }
}
