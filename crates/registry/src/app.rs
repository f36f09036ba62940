//! What every handler shares.

use std::sync::Arc;
use std::time::Duration;

use oci::store::DiskStore;
use tokio::sync::Mutex;

use crate::Settings;

/// The store that requests are answered from.
pub(crate) type Store = DiskStore;

/// What every handler shares; clones are cheap.
#[derive(Debug, Clone)]
pub(crate) struct App(Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) is_delete_enabled: bool,
    /// Manifests may need what is not there.
    pub(crate) may_be_sparse: bool,
    pub(crate) is_tls: bool,
    /// How long content stays that nothing needs.
    pub(crate) grace: Duration,
    /// Held by whoever collects garbage.
    pub(crate) collecting: Mutex<()>,
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
    pub(crate) fn new(store: Store, settings: &Settings) -> Self {
        let base = match &settings.registry_http_host {
            _ if settings.registry_http_relativeurls => Base::Relative,
            Some(url) => Base::Fixed(url.trim_end_matches('/').to_owned()),
            None => Base::Request,
        };
        Self(Arc::new(Inner {
            store,
            is_delete_enabled: settings.registry_storage_delete_enabled,
            may_be_sparse: settings.registry_validation_disabled,
            is_tls: settings.tls().is_some(),
            grace: settings.registry_storage_maintenance_gc_grace,
            collecting: Mutex::new(()),
            base,
        }))
    }
}

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
