//! What every handler shares.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use blob_store::AnyStore;
use tokio::sync::Mutex;

use crate::Settings;
use crate::notifications::Notifier;
use crate::policy::{Policies, Pulls, Quotas, Turns};
use crate::scrub::Scrub;
use crate::upstream::Upstreams;
use crate::validation::Validation;

/// The store that requests are answered from.
pub(crate) type Store = AnyStore;

/// What every handler shares; clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) upstreams: Upstreams,
    pub(crate) is_delete_enabled: bool,
    /// Why nothing is written, whoever asks; nothing when it may be.
    pub(crate) read_only: Option<String>,
    pub(crate) validation: Validation,
    /// Nothing when nobody is told of anything.
    pub(crate) notifier: Option<Notifier>,
    /// Most entries of a page.
    pub(crate) catalog_limit: usize,
    /// Most entries of a page.
    pub(crate) tags_limit: usize,
    /// Of every answer.
    pub(crate) headers: HeaderMap,
    /// What stands before every path, for the client.
    pub(crate) prefix: String,
    /// Manifests may be of schema 1.
    pub(crate) takes_schema1: bool,
    pub(crate) is_tls: bool,
    /// How long content stays that nothing needs.
    pub(crate) grace: Duration,
    /// Held by whoever collects garbage.
    pub(crate) collecting: Mutex<()>,
    pub(crate) policies: Policies,
    pub(crate) pulls: Pulls,
    pub(crate) quotas: Quotas,
    /// Of those who change tags that stay where they are.
    pub(crate) turns: Turns,
    pub(crate) scrub: Scrub,
    /// Base of Location headers: nothing for paths.
    pub(crate) base: Base,
}

/// What stands before the path in a Location header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// Nothing.
    Relative,
    /// Always this URL.
    Fixed(String),
    /// Scheme and host of the request.
    Request,
}

impl App {
    pub(crate) fn new(
        store: Store,
        upstreams: Upstreams,
        policies: Policies,
        settings: &Settings,
        notifier: Option<Notifier>,
    ) -> Self {
        let base = match &settings.registry_http_host {
            _ if settings.registry_http_relativeurls => Base::Relative,
            Some(url) => Base::Fixed(url.trim_end_matches('/').to_owned()),
            None => Base::Request,
        };
        let read_only = if settings.registry_storage_maintenance_readonly_enabled {
            Some("REGISTRY_STORAGE_MAINTENANCE_READONLY_ENABLED is set".to_owned())
        } else if let Store::Disk(disk) = &store
            && disk.read_only().is_some()
        {
            // The log of the start has the cause, with its path.
            Some("its storage folder is on a read-only medium, or of another user".to_owned())
        } else {
            None
        };
        Self(Arc::new(Inner {
            store,
            upstreams,
            is_delete_enabled: settings.registry_storage_delete_enabled,
            read_only,
            validation: Validation::new(settings),
            notifier,
            catalog_limit: settings.registry_catalog_maxentries.max(1),
            tags_limit: settings.registry_tags_maxtags.max(1),
            headers: settings.registry_http_headers.0.clone(),
            prefix: settings.registry_http_prefix.0.clone(),
            takes_schema1: settings.registry_compatibility_schema1_enabled,
            is_tls: settings.tls().is_some(),
            grace: settings.registry_storage_maintenance_gc_grace,
            collecting: Mutex::new(()),
            policies,
            pulls: Pulls::default(),
            quotas: Quotas::default(),
            turns: Turns::default(),
            scrub: Scrub::default(),
            base,
        }))
    }

    /// The path of a request as its client knows it.
    pub(crate) fn path(&self, head: &Parts) -> String {
        format!("{}{}", self.prefix, head.uri.path())
    }
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
