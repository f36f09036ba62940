//! Registries whose content is fetched when somebody asks for it, and kept.
//!
//! What is asked for by digest is served from here once it is here. A tag is looked up at its upstream first, and
//! served from here when that is away. Clients cannot push to such repositories, and what nobody has used for long
//! goes again, but never what was pushed here before.

mod ages;
mod blobs;
mod expire;
mod fetch;
mod lists;
mod manifests;
mod numbers;
mod registry;

use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;
use oci::{Reference, Repository, Tag};
use service::Error;

use crate::Settings;
use crate::storage::Store;
use ages::Ages;
use fetch::Fetches;
use manifests::Lookups;
use registry::Upstream;

pub(crate) use blobs::Remote;
pub(crate) use manifests::Found;
pub(crate) use numbers::{Traffic, pushed};

/// Tags that were looked up lately and need not be again.
const CURRENT_TAGS: u64 = 10_000;

/// Every upstream; clones share what is being fetched.
#[derive(Debug, Clone)]
pub(crate) struct Upstreams(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The longest prefix first.
    registries: Vec<Arc<Upstream>>,
    store: Store,
    /// How long content stays that nobody uses; for ever when zero.
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
    /// Errors: a file that cannot be read, by its variable; the record of what is kept cannot be opened.
    pub(crate) async fn open(settings: &Settings, store: Store) -> Result<Self, Error> {
        numbers::describe();
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
        Ok(Self(Arc::new(Inner {
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
                registry: upstream.registry().to_owned(),
                repository,
                tag: None,
                digest: None,
            },
        })
    }

    /// The name here of what a client calls `name` in the registry `namespace`. Source: containerd, which asks mirrors
    /// with the parameter `ns`.
    pub(crate) fn local_name(&self, name: &Repository, namespace: &str) -> Option<Repository> {
        let mut upstreams = self.0.registries.iter();
        upstreams.find_map(|upstream| upstream.local_name(name, namespace))
    }

    /// Until what is being fetched has come, or `limit` is over.
    pub(crate) async fn finish(&self, limit: Duration) {
        self.0.fetches.finish(limit).await;
    }

    /// Lets go what nobody has used for long, from time to time, for ever.
    pub(crate) async fn expire(&self) {
        expire::run(&self.0).await;
    }

    /// Writes down what was used.
    pub(crate) async fn save(&self) {
        if let Some(ages) = &self.0.ages {
            ages.flush().await;
        }
    }
}
