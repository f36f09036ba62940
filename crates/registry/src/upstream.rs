//! Pull-through cache: content of upstream registries is fetched on demand and stored.
//!
//! Content is served locally by its digest once it is stored. A tag is looked up at the upstream first, and served
//! locally while the upstream is down. Clients cannot push to such repositories. Cached content expires after its last
//! use; content that was pushed before never does.

mod ages;
mod blobs;
mod expire;
mod fetch;
mod in_progress;
mod lists;
mod manifests;
mod metrics;
mod registry;

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use oci::{Reference, Repository, Tag};
use service::Error;

use crate::settings::Settings;
use crate::storage::Store;
use ages::Ages;
use in_progress::{Fetches, Lookups};
use registry::Upstream;

pub(crate) use self::metrics::{Traffic, pushed};
pub(crate) use blobs::Remote;
pub(crate) use manifests::Found;

/// Tags that were looked up lately and need not be again.
const CURRENT_TAGS: u64 = 10_000;

/// Every upstream; clones share the fetches in progress.
#[derive(Debug, Clone)]
pub(crate) struct Upstreams(Arc<UpstreamsInner>);

#[derive(Debug)]
struct UpstreamsInner {
    /// The longest prefix first.
    registries: Vec<Arc<Upstream>>,
    store: Store,
    /// Time to live of content after its last use; for ever when zero.
    ttl: Duration,
    /// Tags that need not be looked up again yet.
    current: Option<Cache<(Repository, Tag), ()>>,
    /// Nothing without upstreams.
    ages: Option<Ages>,
    lookups: Lookups,
    fetches: Fetches,
}

/// A repository whose content comes from an upstream.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    all: Upstreams,
    upstream: Arc<Upstream>,
    /// Its name here.
    name: Repository,
    /// Its name there.
    remote: Reference,
}

/// Whether a repository comes from one of `upstreams`.
fn is_copy(upstreams: &[Arc<Upstream>], name: &Repository) -> bool {
    let mut upstreams = upstreams.iter();
    upstreams.any(|upstream| upstream.remote_name(name).is_some())
}

impl Upstreams {
    /// The upstreams that the settings name.
    ///
    /// Errors: a file that cannot be read, by its variable; the record of last uses cannot be opened.
    pub(crate) async fn open(settings: &Settings, store: Store) -> Result<Self, Error> {
        metrics::describe();
        let mut registries = Vec::new();
        for config in settings.upstreams() {
            registries.push(Arc::new(Upstream::open(&config).await?));
        }
        registries.sort_by_key(|upstream| std::cmp::Reverse(upstream.prefix_length()));
        let root = &settings.registry_storage_filesystem_rootdirectory;
        let ages = if registries.is_empty() {
            Ages::remove(root).await?;
            None
        } else {
            let upstreams = registries.clone();
            Some(Ages::open(root, move |name| is_copy(&upstreams, name)).await?)
        };
        let tag_ttl = settings.registry_proxy_tagttl;
        let current = (!tag_ttl.is_zero()).then(|| {
            let builder = Cache::builder().max_capacity(CURRENT_TAGS);
            builder.time_to_live(tag_ttl).build()
        });
        Ok(Self(Arc::new(UpstreamsInner {
            registries,
            store,
            ttl: settings.registry_proxy_ttl,
            current,
            ages,
            lookups: Lookups::default(),
            fetches: Fetches::default(),
        })))
    }

    /// Where the content of a repository comes from, unless it is pushed here.
    pub(crate) fn find(&self, name: &Repository) -> Option<Source> {
        let mut upstreams = self.0.registries.iter();
        let (upstream, repository) =
            upstreams.find_map(|upstream| Some((upstream, upstream.remote_name(name)?)))?;
        Some(Source {
            all: self.clone(),
            upstream: Arc::clone(upstream),
            name: name.clone(),
            remote: Reference {
                registry: oci::Registry::Host(upstream.registry().to_owned()),
                repository,
                tag: None,
                digest: None,
            },
        })
    }

    /// The local name of the repository `name` of the registry `namespace`. Source: containerd, which asks mirrors
    /// with the parameter `ns`.
    pub(crate) fn local_name(&self, name: &Repository, namespace: &str) -> Option<Repository> {
        let mut upstreams = self.0.registries.iter();
        upstreams.find_map(|upstream| upstream.local_name(name, namespace))
    }

    /// Waits for the fetches in progress, at most for `limit`.
    pub(crate) async fn finish(&self, limit: Duration) {
        self.0.fetches.finish(limit).await;
    }

    /// Expires unused content at intervals, for ever.
    pub(crate) async fn expire(&self) {
        let UpstreamsInner {
            ages, store, ttl, ..
        } = &*self.0;
        match ages {
            Some(ages) => expire::run(ages, store, *ttl).await,
            None => std::future::pending().await,
        }
    }

    /// Writes the last uses.
    pub(crate) async fn save(&self) {
        if let Some(ages) = &self.0.ages {
            ages.flush().await;
        }
    }
}
